"""A Spark worker is lost in the middle of `client.write`: the table has every row once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import windrow
from tests.support.clusters import HOSTS, Cluster, spark_cluster
from tests.support.drivers import Driver, driver_of
from tests.support.looking import listed_ids
from tests.support.servers import running
from windrow_service.settings import Settings

pytestmark = pytest.mark.spark

ROWS, DAYS, ROWS_PER_FILE = 12_000, 40, 100
TASKS_BEFORE = 5


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), HOSTS[:2]) as cluster:
        yield cluster


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url:
        yield url


@pytest.fixture
def driver(cluster: Cluster, url: str, tmp_path: Path) -> Iterator[Driver]:
    with driver_of(cluster, url, tmp_path / "driver.log") as driver:
        yield driver


def wait_for_written_tasks(location: Path) -> None:
    """Wait until some tasks have written their files, which the committer keeps in task folders."""
    deadline = time.monotonic() + 120
    while len(list(location.glob("_windrow/writes/*/data/_temporary/0/task_*"))) < TASKS_BEFORE:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_rows_are_written_once_when_a_worker_dies_in_mid_write(
    cluster: Cluster, url: str, driver: Driver, tmp_path: Path
) -> None:
    location = tmp_path / "events"
    location.mkdir()
    with windrow.connect(url) as client:
        client.register_table("events", str(location), partition_columns={"ds": "string"})

        driver.begin("write", table="events", rows=ROWS, days=DAYS, target_rows=ROWS_PER_FILE)
        wait_for_written_tasks(location)
        # Its shuffled rows are lost with it, and the remaining tasks need them.
        cluster.hosts[HOSTS[1]].kill()
        (write,) = client.writes("events")
        report = driver.finish()

        assert write.state == "staging"
        assert (report["rows"], report["files"]) == (ROWS, report["planned_files"])
        assert report["scheme"] == "exact"
        assert listed_ids(location) == {
            f"ds=day-{day}": list(range(day, ROWS, DAYS)) for day in range(DAYS)
        }
        assert not (location / "_windrow").exists()
        assert not client.refresh("events", full=True).changed
