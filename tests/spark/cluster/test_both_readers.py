"""On a cluster, scans by either reader run where the plan says, and lost tasks change no row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.spark.clusters import HOSTS
from tests.support.spark.drivers import CachingCluster
from tests.support.tables import hive
from windrow_spark.relation.recent_scans import Figures

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

FILES = 60
READERS = ("grouped", "native")


@pytest.fixture
def location(place: CachingCluster, tmp_path: Path) -> Path:
    """Files of different sizes, each of ten rows that all hold its number."""
    for number in range(FILES):
        path = tmp_path / "table" / f"ds={number % 2}" / f"{number:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = [f"{number}-{row}" * (number + 1) for row in range(10)]
        pq.write_table(pa.table({"number": [number] * 10, "text": text}), path)
    return tmp_path / "table"


def registered(place: CachingCluster, location: Path, name: str) -> str:
    place.client.register_table(name, str(location))
    place.client.refresh(name)
    return name


def tasks_of(rows: Sequence[Sequence[object]]) -> dict[object, tuple[object, set[object]]]:
    """Return where the task of each partition ran, and the numbers of the files that it read."""
    tasks: dict[object, tuple[object, set[object]]] = {}
    for index, host, number, *_ in rows:
        tasks.setdefault(index, (host, set()))[1].add(number)
    return tasks


@pytest.mark.parametrize("reader", READERS)
def test_tasks_run_on_the_hosts_that_the_plan_prefers(
    place: CachingCluster, location: Path, reader: str
) -> None:
    table = registered(place, location, f"placed.{reader}")
    # Hosts hold files neither in rotation nor in equal shares. Every third file has a second host.
    holders = {n: [HOSTS[(n * n) % 3], *[HOSTS[2]] * (n % 3 == 0)] for n in range(FILES)}
    files = [
        {
            "path": path,
            "size_bytes": (location / path).stat().st_size,
            "mtime_ns": (location / path).stat().st_mtime_ns,
            "row_count": 10,
            "hosts": holders[int(Path(path).stem)],
        }
        for path in hive.data_files(location)
    ]
    place.client.publish(table, pa.Table.from_pylist(files))
    plan = place.client.plan(table, parallelism=20)
    preferred = {
        int(Path(split["path"]).stem): set(group["hosts"])
        for group in plan.groups.to_pylist()
        for split in group["splits"]
    }

    place.driver.begin("read_with_places", table=table, reader=reader, parallelism=20)
    found = place.driver.finish()

    assert found["native_files"] == (FILES if reader == "native" else 0)
    assert sorted(row[2] for row in found["rows"]) == [n for n in range(FILES) for _ in range(10)]
    tasks = tasks_of(found["rows"])
    assert len(tasks) >= 10
    at_home = [
        host for host, numbers in tasks.values() if all(host in preferred[n] for n in numbers)
    ]
    assert len(at_home) >= 0.95 * len(tasks), (tasks, preferred)
    assert set(at_home) == {host for hosts in preferred.values() for host in hosts}


@pytest.mark.parametrize("reader", READERS)
def test_every_row_arrives_once_whatever_happens_to_tasks(
    place: CachingCluster, location: Path, tmp_path: Path, reader: str
) -> None:
    table = registered(place, location, f"disturbed.{reader}")
    options: Mapping[str, object] = {"reader": reader, "parallelism": 12}

    place.driver.begin("read_disturbed", table=table, folder=str(tmp_path), **options)
    found = place.driver.finish()

    assert found["native_files"] == (FILES if reader == "native" else 0)
    assert sorted(row[3] for row in found["rows"]) == [n for n in range(FILES) for _ in range(10)]
    attempts = {index: attempt for index, attempt, *_ in found["rows"]}
    # One task failed, the executor of another was killed, and a third task was slow.
    assert attempts[0] > 0
    assert attempts[1] > 0
    assert (tmp_path / "twin").exists()
    # Files that were read again are not counted twice.
    sizes = [(location / path).stat().st_size for path in hive.data_files(location)]
    figures = Figures(files=FILES, bytes=sum(sizes), rows=10 * FILES, cache_hits=0)
    assert found["read"] == asdict(figures)
