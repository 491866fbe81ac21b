"""The demo on the first days of the year, end to end at night."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.engines.environment import python_with_engines
from windrow_demo.flights import write_flights
from windrow_demo.measuring import fingerprint, time_in_turns
from windrow_demo.sides import flight_queries, sides

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

READS, WRITES, STOPPED = "reads", "writes", "stopped"
COMMANDS = {
    READS: ["--days", "2", "--runs", "1", "--json"],
    WRITES: [
        *("writes", "--json", "--tasks", "9", "--days", "10", "--rows", "30000"),
        *("--target-size", "32KB", "--picture", "picture.svg"),
    ],
    STOPPED: ["--days", "2", "--runs", "1000"],
}
_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    folder: Path

    @property
    def stdout(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def code(self) -> int:
        return int((self.folder / "code").read_text())


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """All commands; the last was stopped by Ctrl-C while it was reading."""
    folder = tmp_path_factory.mktemp("demo")
    for name in COMMANDS:
        (folder / name).mkdir()
    command = [
        sys.executable,
        "-m",
        "tests.programs.demo_commands",
        str(folder),
        json.dumps(COMMANDS),
    ]
    last = folder / STOPPED / "stderr"
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            deadline = time.monotonic() + _TIMEOUT_S
            while not last.exists() or "Reading on Spark" not in last.read_text():
                assert process.poll() is None, "the commands ended early"
                assert time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
    return {name: Done(folder / name) for name in COMMANDS}


def test_the_ways_of_reading_have_the_same_rows_and_answers(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    write_flights(folder / "flights", 1, lambda _: None, lambda _: None)
    client.register_table("demo.flights", str(folder / "flights"))
    client.refresh("demo.flights")
    theirs = spark.read.parquet(str(folder / "flights"))
    ways = sides(theirs, client, "demo.flights")

    timings = time_in_turns(
        spark, ways, flight_queries(), runs=3, on_run=lambda *_: None, warm=False, end_by=0.0
    )

    fingerprints = {fingerprint(spark, way, theirs.columns) for way in ways}
    assert [one.row_count for one in fingerprints] == [842], fingerprints
    assert len(timings) == 2 * len(ways)
    assert {len(one.seconds) for one in timings} == {1}, "a second round would have ended too late"
    assert len({(one.query, one.answer) for one in timings}) == 2


@pytest.mark.nightly
def test_the_four_ways_of_reading_agree_and_are_measured(done: dict[str, Done]) -> None:
    reads = done[READS]

    assert reads.code == 0, reads.stderr
    assert "WARN" not in reads.stderr
    # Results are shown one by one; the quickest reader does not wait for the slowest.
    results = [line for line in reads.stderr.splitlines() if line.endswith(" s")]
    lines = ["Windrow" in line for line in results]
    # The rows of the whole table are compared once for each reader.
    turn = [True, True, False, False]
    assert lines == [*turn, True, True, False, *turn, *turn]
    # The first table of results is shown long before the last.
    assert reads.stderr.count("Windrow is") == 1
    assert reads.stderr.index("Windrow is") < reads.stderr.index("All columns of all rows")
    output = json.loads(reads.stdout)
    assert output["agreed"] is True
    fingerprints = list(output["fingerprints"].values())
    assert len(fingerprints) == 3
    assert fingerprints[0]["row_count"] == 1_785
    assert all(found == fingerprints[0] for found in fingerprints)
    assert output["plan"]["files_planned"] == len(list((reads.folder / "data").rglob("*.parquet")))
    sides = {(result["side"], result["query"]) for result in output["results"]}
    assert len(sides) == 8
    assert all(result["seconds"][0] > 0 for result in output["results"])
    tasks = {(found["side"], found["query"]): found["task_count"] for found in output["results"]}
    # One task per group, and one for the final aggregation.
    assert tasks["windrow", "aggregate"] == output["plan"]["group_count"] + 1
    assert tasks["spark-default", "aggregate"] > tasks["windrow", "aggregate"]
    assert min(output["spark_listing_s"], output["windrow_refresh_s"], output["windrow_plan_s"]) > 0


@pytest.mark.nightly
def test_ctrl_c_ends_the_demo_with_one_line_and_stops_its_coordinator(
    done: dict[str, Done],
) -> None:
    stopped = done[STOPPED]

    assert stopped.code == 130
    assert stopped.stderr.splitlines()[-1] == "windrow: stopped"
    assert "Traceback" not in stopped.stderr
    log = (stopped.folder / "data" / "demo" / "coordinator.log").read_text()
    assert "Finished server process" in log


@pytest.mark.nightly
def test_writes_explode_without_a_plan_but_not_with_one(done: dict[str, Done]) -> None:
    writes = done[WRITES]

    assert writes.code == 0, writes.stderr
    assert "WARN" not in writes.stderr
    output = json.loads(writes.stdout)
    assert output["agreed"] is True
    exploded, planned = output["tables"]
    assert exploded["files"] == exploded["small_files"] == 9 * 10
    assert planned["files"] == output["report"]["planned_files"] < 9 * 10 / 4
    assert planned["largest_file_bytes"] < 1.5 * 2**15
    assert exploded["hash_sum"] == planned["hash_sum"]
    assert (writes.folder / "picture.svg").read_text().startswith("<svg")


@pytest.mark.nightly
def test_engines_read_the_written_rows_from_the_folder_and_by_windrow(tmp_path: Path) -> None:
    command = [python_with_engines(), "-m", "windrow_demo", "engines", "--days", "2", "--json"]

    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )

    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["agreed"] is True
    assert {(one["engine"], one["way"]) for one in output["results"]} == {
        (engine, way)
        for engine in ("duckdb", "polars", "pyiceberg", "spark")
        for way in ("folder", "windrow")
    }
    assert {one["rows"]["all"] for one in output["results"]} == {1_785}
    assert {one["rows"]["day"] for one in output["results"]} == {842}
