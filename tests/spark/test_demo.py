"""The demo, end to end, on the first days of the year."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_all_three_ways_of_reading_agree_and_are_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windrow.cli", "demo", "--days", "3", "--runs", "1", "--json"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    said = json.loads(done.stdout)
    assert said["agreed"] is True
    fingerprints = list(said["fingerprints"].values())
    assert len(fingerprints) == 3
    assert fingerprints[0]["row_count"] == 2_699
    assert all(found == fingerprints[0] for found in fingerprints)
    assert said["plan"]["files_planned"] == len(list((tmp_path / "data").rglob("*.parquet")))
    sides = {(result["side"], result["query"]) for result in said["results"]}
    assert len(sides) == 6
    assert all(result["seconds"][0] > 0 for result in said["results"])
    tasks = {(found["side"], found["query"]): found["task_count"] for found in said["results"]}
    # One task per group, and one for the end of the aggregate.
    assert tasks["windrow", "aggregate"] == said["plan"]["group_count"] + 1
    assert tasks["spark-default", "aggregate"] > tasks["windrow", "aggregate"]
    assert min(said["spark_listing_s"], said["windrow_refresh_s"], said["windrow_plan_s"]) > 0
