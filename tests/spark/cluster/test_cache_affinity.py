"""On a cluster of three workers, cached partitions are read only where they are cached."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.support.servers.coordinators import running
from tests.support.spark.clusters import HOSTS, counters
from tests.support.spark.drivers import CachingCluster
from tests.support.tables import hive
from windrow_core.models import CachedFilesReport, Heartbeat
from windrow_service.settings import Settings

pytestmark = pytest.mark.spark

TIMEOUT_S = 60.0
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
CACHED = "ds >= '2026-11-02'"
FILES_PER_DAY = 30
ROWS_PER_FILE = 10
KEY = ("path", "size_bytes", "mtime_ns")


def eventually(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.1)


@dataclass(frozen=True)
class Table:
    """A table of three days in the store; the last two days are cacheable."""

    name: str
    place: CachingCluster

    @property
    def prefix(self) -> str:
        return f"tables/{self.name}"

    def cached_keys(self) -> set[str]:
        paths = hive.data_files(self.place.store.root / self.prefix)
        return {f"{self.prefix}/{path}" for path in paths if DAYS[0] not in path}

    def expected(self, *, first_day: int = 1) -> list[list[Any]]:
        per_day = FILES_PER_DAY * ROWS_PER_FILE
        return sorted(
            [id_, f"name-{id_}", DAYS[id_ // per_day]]
            for id_ in range(first_day * per_day, 3 * per_day)
        )

    def read(self, filter_: str = CACHED) -> list[Any]:
        return self.place.driver.read(self.name, filter=filter_)

    def requested(self) -> set[str]:
        """Return the keys of data files requested since the last call."""
        found = set(self.place.store.data_requests())
        self.place.store.requests.clear()
        return found

    def plan(self) -> windrow.SplitPlan:
        return self.place.client.plan(self.name, filter=CACHED, cached_splits="by_worker")

    def placement(self) -> dict[str, str]:
        """Return the worker of each cacheable file, according to a plan."""
        return {
            f"{self.prefix}/{split['path']}": group["cached_on"]
            for group in self.plan().groups.to_pylist()
            for split in group["splits"]
        }

    def wait_until_cached(self) -> None:
        eventually(lambda: self.plan().summary.cached_files == 2 * FILES_PER_DAY)


@pytest.fixture
def table(place: CachingCluster, request: pytest.FixtureRequest) -> Table:
    """A new table with a cache rule for each test, while all workers are alive."""
    table = Table(f"events.{request.node.name[5:60]}", place)
    hive.write_events(
        place.store.root / table.prefix, files_per_day=FILES_PER_DAY, rows_per_file=ROWS_PER_FILE
    )
    place.client.register_table(table.name, f"s3://{table.prefix}")
    place.client.refresh(table.name)
    place.client.cache_table(table.name, CACHED)
    place.store.requests.clear()
    return table


@pytest.fixture
def cached(table: Table) -> Table:
    """The table after a first read, which has cached it."""
    assert table.read() == table.expected()
    assert table.requested() == table.cached_keys()
    table.wait_until_cached()
    return table


@pytest.mark.nightly
def test_the_second_read_of_cached_partitions_sends_no_request_to_the_store(cached: Table) -> None:
    before = counters(cached.place.client)

    rows = cached.read()

    assert rows == cached.expected()
    assert not cached.requested()
    cached.place.driver.begin("read_of", table=cached.name)
    assert cached.place.driver.finish()["cache_hits"] == 2 * FILES_PER_DAY
    after = counters(cached.place.client)
    assert after.hits - before.hits == 2 * FILES_PER_DAY
    assert after.elsewhere == before.elsewhere
    assert set(cached.placement().values()) == set(HOSTS)


@pytest.mark.nightly
def test_only_files_that_match_the_rule_are_cached(cached: Table) -> None:
    whole = cached.read("id >= 0")
    assert whole == cached.expected(first_day=0)
    others = cached.requested()
    assert others
    assert not others & cached.cached_keys()

    cached.read("id >= 0")

    assert cached.requested() == others


@pytest.mark.nightly
def test_if_a_worker_dies_only_its_files_move_and_it_is_used_again_once_back(
    cached: Table,
) -> None:
    place, lost = cached.place, HOSTS[1]
    before = cached.placement()
    its_files = {key for key, host in before.items() if host == lost}
    assert its_files

    place.cluster.hosts[lost].kill()
    rows_meanwhile = cached.read()
    eventually(lambda: place.live_hosts() == set(HOSTS) - {lost})
    rows_without = cached.read()

    assert rows_meanwhile == rows_without == cached.expected()
    assert cached.requested() == its_files
    moved = cached.placement()
    assert {key for key in before if before[key] != moved[key]} == its_files
    cached.wait_until_cached()

    place.cluster.hosts[lost].start()
    place.cluster.hosts[lost].wait()
    eventually(lambda: place.live_hosts() == set(HOSTS))
    place.driver.wait_for_hosts(HOSTS)
    eventually(lambda: lost in cached.placement().values())
    hits = counters(place.client).hits
    rows_again = cached.read()

    assert rows_again == cached.expected()
    assert not cached.requested()
    assert counters(place.client).hits - hits == 2 * FILES_PER_DAY


@pytest.mark.nightly
def test_the_new_rows_of_an_overwritten_cached_file_are_read(cached: Table, tmp_path: Path) -> None:
    key = sorted(cached.cached_keys())[0]
    new_ids = range(1_000_000, 1_000_000 + ROWS_PER_FILE)
    content = hive.write_file(tmp_path / "new", new_ids).read_bytes()

    cached.place.store.overwrite(key, content)
    cached.place.client.refresh(cached.name)
    cached.requested()
    rows = cached.read()

    old = range(FILES_PER_DAY * ROWS_PER_FILE, (FILES_PER_DAY + 1) * ROWS_PER_FILE)
    kept = [row for row in cached.expected() if row[0] not in old]
    assert rows == sorted([*kept, *([id_, f"name-{id_}", DAYS[1]] for id_ in new_ids)])
    assert cached.requested() == {key}


@pytest.mark.nightly
def test_caches_are_found_again_after_the_map_is_lost_in_the_middle_of_a_job(
    cached: Table,
) -> None:
    place = cached.place
    place.store.latency_s = 0.1
    try:
        place.driver.begin("read", table=cached.name, filter="id >= 0")
        eventually(place.store.data_requests)
        place.redis.flush()
        rows = place.driver.finish()
    finally:
        place.store.latency_s = 0.0

    assert rows == cached.expected(first_day=0)
    cached.requested()
    cached.wait_until_cached()
    assert cached.read() == cached.expected()
    assert not cached.requested()


@pytest.mark.nightly
def test_a_warmed_table_is_read_without_the_store_and_warming_it_again_does_nothing(
    table: Table,
) -> None:
    place = table.place
    place.driver.begin("warm_up", table=table.name)
    warmth = place.driver.finish()

    assert (warmth["fetched_files"], warmth["present_files"]) == (2 * FILES_PER_DAY, 0)
    assert warmth["failed_files"] == warmth["elsewhere_files"] == warmth["unplaced_files"] == 0
    assert table.requested() == table.cached_keys()
    # The workers hold the files even before the coordinator has learnt of them.
    place.driver.begin("warm_up", table=table.name)
    again = place.driver.finish()
    assert (again["fetched_files"], again["present_files"]) == (0, 2 * FILES_PER_DAY)
    table.wait_until_cached()
    # There is no Spark at this address, and none is needed.
    done = windrow_command(place, "cache", "warm", table.name, "--master", "spark://127.0.0.1:1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["present_files"] == 2 * FILES_PER_DAY
    assert table.read() == table.expected()
    assert not table.requested()


@pytest.mark.nightly
def test_warming_reports_if_no_task_runs_on_the_workers(table: Table) -> None:
    done = windrow_command(table.place, "cache", "warm", table.name, "--master", "local[1]")

    assert done.returncode == 1
    assert "60 were seen only by other hosts" in done.stderr
    assert "run the command on each of those hosts" in done.stderr
    assert "repeating" not in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["elsewhere_files"] == 2 * FILES_PER_DAY
    assert not table.requested()


def windrow_command(place: CachingCluster, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "windrow_cli", *words, "--url", place.url, "--json"],
        env=dict(place.cluster.environment),
        capture_output=True,
        text=True,
        check=False,
    )


def fewest_groups(plan: windrow.SplitPlan, workers: int, buckets: int) -> float:
    wanted = plan.summary.size_bytes / plan.info.options.max_split_size + workers * buckets
    return 1.1 * wanted


@pytest.mark.nightly
def test_hundreds_of_small_cached_files_share_few_tasks(place: CachingCluster) -> None:
    name = "many.events"
    folder = place.store.root / f"tables/{name}"
    hive.write_events(folder, days=DAYS[:2], files_per_day=300, rows_per_file=2)
    place.client.register_table(name, f"s3://tables/{name}")
    place.client.refresh(name)
    place.client.cache_table(name, "ds IS NOT NULL")

    first, second = place.driver.read(name), place.driver.read(name)

    expected = sorted([id_, f"name-{id_}", DAYS[id_ // 600]] for id_ in range(1_200))
    assert first == expected
    assert second == expected
    plan = place.client.plan(name, cached_splits="by_worker")
    assert plan.summary.cacheable_files == 600
    assert len(plan) <= fewest_groups(plan, workers=len(HOSTS), buckets=1)


def test_ten_thousand_cached_files_need_about_the_fewest_possible_groups(tmp_path: Path) -> None:
    buckets, count = 8, 10_000
    files = [
        {
            "path": f"ds=2026-11-{1 + n % 3:02}/f{n:05}.parquet",
            "size_bytes": 16_384 + n,
            "mtime_ns": 1_700_000_000_000_000_000,
            "row_count": 10,
            "bucket": n % buckets,
        }
        for n in range(count)
    ]
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    with running(settings) as url, windrow.connect(url) as client:
        client.register_table(
            "many.files",
            str(tmp_path),
            columns={"id": "bigint"},
            partition_columns={"ds": "date"},
            bucket_spec={"columns": ["id"], "count": buckets},
        )
        client.publish("many.files", pa.Table.from_pylist(files))
        client.cache_table("many.files", "ds IS NOT NULL")
        for worker, host in enumerate(HOSTS):
            beat = Heartbeat(host=host, capacity_bytes=2**40, used_bytes=0, ttl_seconds=600)
            session = client.beat(f"w{worker}", beat).session
            # Not in rotation, as the buckets are.
            its_files = [file for n, file in enumerate(files) if n // 7 % 3 == worker]
            report = CachedFilesReport.model_validate(
                {
                    "table": "many.files",
                    "session": session,
                    "added": [{name: file[name] for name in KEY} for file in its_files],
                }
            )
            client.report_cached_files(f"w{worker}", report)

        plan = client.plan("many.files", cached_splits="by_worker")

    assert plan.summary.cached_files == count
    assert len(plan) <= fewest_groups(plan, workers=3, buckets=buckets)
    assert {
        (split["path"], group["cached_on"])
        for group in plan.groups.to_pylist()
        for split in group["splits"]
    } == {(file["path"], HOSTS[n // 7 % 3]) for n, file in enumerate(files)}
