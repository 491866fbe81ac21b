"""A Spark worker is lost in the middle of `client.write`: the table has every row once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.faults.readers import listed_ids
from tests.support.spark.clusters import HOSTS
from tests.support.spark.drivers import CachingCluster

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROWS, DAYS, ROWS_PER_FILE = 6_000, 20, 100
TASKS_BEFORE = 5


def wait_for_written_tasks(location: Path) -> None:
    """Wait until some tasks have written their files, which the committer keeps in task folders."""
    deadline = time.monotonic() + 120
    while len(list(location.glob("_windrow/writes/*/data/_temporary/0/task_*"))) < TASKS_BEFORE:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_rows_are_written_once_when_a_worker_dies_in_mid_write(
    place: CachingCluster, tmp_path: Path
) -> None:
    location = tmp_path / "events"
    location.mkdir()
    client, driver, lost = place.client, place.driver, place.cluster.hosts[HOSTS[1]]
    client.register_table("events", str(location), partition_columns={"ds": "string"})

    driver.begin("write", table="events", rows=ROWS, days=DAYS, target_rows=ROWS_PER_FILE)
    wait_for_written_tasks(location)
    # The rows that it has shuffled are lost with it, and the remaining tasks need them.
    lost.kill()
    try:
        (write,) = client.writes("events")
        report = driver.finish()
    finally:
        lost.start()

    assert write.state == "staging"
    assert (report["rows"], report["files"]) == (ROWS, report["planned_files"])
    assert report["scheme"] == "exact"
    assert listed_ids(location) == {
        f"ds=day-{day}": list(range(day, ROWS, DAYS)) for day in range(DAYS)
    }
    assert not (location / "_windrow").exists()
    assert not client.refresh("events", full=True).changed
