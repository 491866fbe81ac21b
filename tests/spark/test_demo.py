"""The demo, end to end, on the first days of the year."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_the_three_ways_of_reading_agree_and_are_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windrow.cli", "demo", "--days", "3", "--runs", "1", "--json"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    # Results are shown one by one; the quickest reader does not wait for the slowest.
    results = [line for line in done.stderr.splitlines() if line.endswith(" s")]
    assert len(results) == 3 * 3
    assert ["Windrow" in line for line in results] == [True, False, False] * 3
    said = json.loads(done.stdout)
    assert said["agreed"] is True
    fingerprints = list(said["fingerprints"].values())
    assert len(fingerprints) == 3
    assert fingerprints[0]["row_count"] == 2_699
    assert all(found == fingerprints[0] for found in fingerprints)
    assert said["plan"]["files_planned"] == len(list((tmp_path / "data").rglob("*.parquet")))
    assert [set(row) for row in said["sql"]["answer"]] == [{"carrier", "late", "longest"}] * 3
    assert set(said["sql"]["columns"]) == {"carrier", "dep_delay", "day"}
    assert 0 < said["sql"]["plan"]["files_planned"] < said["plan"]["files_planned"] / 2
    sides = {(result["side"], result["query"]) for result in said["results"]}
    assert len(sides) == 6
    assert all(result["seconds"][0] > 0 for result in said["results"])
    tasks = {(found["side"], found["query"]): found["task_count"] for found in said["results"]}
    # One task per group, and one for the final aggregation.
    assert tasks["windrow", "aggregate"] == said["plan"]["group_count"] + 1
    assert tasks["spark-default", "aggregate"] > tasks["windrow", "aggregate"]
    assert min(said["spark_listing_s"], said["windrow_refresh_s"], said["windrow_plan_s"]) > 0


def test_ctrl_c_ends_the_demo_with_one_line_and_stops_its_coordinator(tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    command = [sys.executable, "-m", "windrow.cli", "demo", "--days", "3", "--runs", "1000"]
    with said.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=output, start_new_session=True
        )
    give_up_at = time.monotonic() + 300
    while "Reading on Spark" not in said.read_text():
        assert process.poll() is None
        assert time.monotonic() < give_up_at
        time.sleep(0.1)

    process.send_signal(signal.SIGINT)
    code = process.wait(60)

    assert code == 130
    assert said.read_text().splitlines()[-1] == "windrow: stopped"
    assert "Traceback" not in said.read_text()
    log = (tmp_path / "data" / "demo" / "coordinator.log").read_text()
    assert "Finished server process" in log


def test_writes_explode_without_a_plan_but_not_with_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windrow.cli", "demo", "writes", "--json"]
    size = ["--tasks", "12", "--days", "20", "--rows", "200000", "--target-size", "64KB"]
    picture = tmp_path / "picture.svg"

    done = subprocess.run(
        [*command, *size, "--picture", str(picture)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    said = json.loads(done.stdout)
    assert said["agreed"] is True
    exploded, planned = said["tables"]
    assert exploded["files"] == exploded["small_files"] == 12 * 20
    assert planned["files"] == said["report"]["planned_files"] < 12 * 20 / 4
    assert planned["largest_file_bytes"] < 1.5 * 2**16
    assert exploded["hash_sum"] == planned["hash_sum"]
    assert picture.read_text().startswith("<svg")
