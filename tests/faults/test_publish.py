"""Publishing concurrently, and while the coordinator or its disk fails."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import windrow
import windrow_calls.snapshots
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, CoordinatorProcess, coordinator_process
from windrow_calls.errors import WindrowError
from windrow_core.models import SnapshotInfo

PUBLISHERS = 32
MANY = 200_000


@pytest.fixture
def postgresql(upgraded_postgresql_url: str) -> dict[str, str]:
    """Settings of coordinators on one PostgreSQL database."""
    return {"WINDROW_DATABASE_URL": upgraded_postgresql_url}


@pytest.fixture
def replicas(tmp_path: Path, postgresql: dict[str, str]) -> Iterator[list[CoordinatorProcess]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(coordinator_process(tmp_path / name, tmp_path, **postgresql))
            for name in ("one", "two")
        ]


def register(url: str, folder: Path) -> None:
    definition = {"location": str(folder / "t"), "columns": [{"name": "id", "type": "bigint"}]}
    httpx.put(f"{url}/tables/t", verify=PLAIN, json=definition).raise_for_status()


def entry(path: str) -> dict[str, Any]:
    return {"path": path, "size_bytes": 10, "mtime_ns": 1, "row_count": 1}


def planned(url: str) -> list[str]:
    with windrow.connect(url) as client:
        groups = client.plan("t").groups
        return sorted(split["path"] for group in groups["splits"].to_pylist() for split in group)


def history(url: str) -> list[SnapshotInfo]:
    with windrow.connect(url) as client:
        return list(client.snapshots("t"))


def inventory(count: int, size_bytes: int) -> pa.Table:
    return pa.table(
        {
            "path": [f"part-{number:08d}" for number in range(count)],
            "size_bytes": pa.array([size_bytes] * count),
            "mtime_ns": pa.array(range(count)),
            "row_count": pa.array(range(count)),
        }
    )


def test_exactly_one_of_the_publishers_that_saw_the_same_snapshot_wins(
    replicas: list[CoordinatorProcess], tmp_path: Path
) -> None:
    urls = [replica.url for replica in replicas]
    register(urls[0], tmp_path)
    publish = {"mode": "full", "added": [entry("f")]}
    httpx.post(f"{urls[0]}/tables/t/snapshots", verify=PLAIN, json=publish).raise_for_status()
    kept = ["f"]
    with ThreadPoolExecutor(PUBLISHERS) as threads:
        for round_ in range(3):
            etag = httpx.get(f"{urls[0]}/tables/t", verify=PLAIN).headers["ETag"]

            def change(number: int, url: str, etag: str = etag, round_: int = round_) -> int:
                body = {"mode": "delta", "added": [entry(f"r{round_}-{number}")]}
                answer = httpx.post(
                    f"{url}/tables/t/snapshots",
                    verify=PLAIN,
                    json=body,
                    headers={"If-Match": etag},
                    timeout=120,
                )
                if not answer.is_success:
                    problem_of(answer, 412, "table-changed")
                return answer.status_code

            answers = list(threads.map(change, range(PUBLISHERS), cycle(urls)))

            assert Counter(answers) == {201: 1, 412: PUBLISHERS - 1}
            kept.append(f"r{round_}-{answers.index(201)}")

    assert planned(urls[1]) == sorted(kept)
    assert [(one.snapshot_id, one.file_count) for one in history(urls[1])] == [
        (number, number) for number in (4, 3, 2, 1)
    ]


def test_deltas_without_a_condition_are_all_applied_once(
    replicas: list[CoordinatorProcess], tmp_path: Path
) -> None:
    urls = [replica.url for replica in replicas]
    register(urls[0], tmp_path)
    before = [entry(f"old-{number}") for number in range(PUBLISHERS)]
    httpx.post(
        f"{urls[0]}/tables/t/snapshots", verify=PLAIN, json={"added": before}
    ).raise_for_status()

    def change(number: int, url: str) -> int:
        with windrow.connect(url) as client:
            return client.publish_delta(
                "t", added=[entry(f"new-{number}")], removed=[f"old-{number}"]
            ).snapshot_id

    with ThreadPoolExecutor(PUBLISHERS) as threads:
        ids = list(threads.map(change, range(PUBLISHERS), cycle(urls)))

    assert sorted(ids) == list(range(2, PUBLISHERS + 2))
    assert planned(urls[0]) == sorted(f"new-{number}" for number in range(PUBLISHERS))
    assert [one.file_count for one in history(urls[0])] == [PUBLISHERS] * (PUBLISHERS + 1)


@pytest.mark.parametrize("after_s", [0.1, 0.5, 0.9])
def test_a_replica_killed_during_a_publish_leaves_the_old_snapshot_or_the_whole_new_one(
    tmp_path: Path, postgresql: dict[str, str], after_s: float
) -> None:
    old, new = inventory(1_000, 1), inventory(MANY, 2)
    with coordinator_process(tmp_path / "one", tmp_path, **postgresql) as doomed:
        register(doomed.url, tmp_path)
        with windrow.connect(doomed.url) as client:
            client.publish("t", old)

        def publish() -> bool:
            with windrow.connect(doomed.url, attempts=1, check=False) as client:
                try:
                    client.publish("t", new)
                except WindrowError:
                    return False
                return True

        with ThreadPoolExecutor(1) as thread:
            acknowledged = thread.submit(publish)
            time.sleep(after_s)
            doomed.kill()

    with coordinator_process(tmp_path / "two", tmp_path, **postgresql) as other:
        snapshots = history(other.url)
        sizes = {one.snapshot_id: (one.file_count, one.size_bytes) for one in snapshots}
        whole = {1: (1_000, 1_000), 2: (MANY, 2 * MANY)}
        assert sizes in ({1: whole[1]}, whole)
        assert len(sizes) == 2 or not acknowledged.result()
        assert len(planned(other.url)) == snapshots[0].file_count
        with windrow.connect(other.url) as client:
            assert client.publish("t", new).file_count == MANY


def test_a_full_disk_refuses_a_publish_and_loses_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with coordinator_process(state, tmp_path) as roomy, windrow.connect(roomy.url) as client:
        register(roomy.url, tmp_path)
        client.publish("t", inventory(10, 1))
        assert roomy.stop() in (0, -15)

    # For this process, a limit on file sizes acts like a full disk.
    limit = ("prlimit", "--fsize=600000")
    with coordinator_process(state, tmp_path, prefix=limit) as full:
        stream = windrow_calls.snapshots.inventory_stream(inventory(MANY, 2))
        refused = httpx.post(
            f"{full.url}/tables/t/snapshots", verify=PLAIN, content=stream, timeout=120
        )

        problem_of(refused, 503, "store-unavailable")
        assert httpx.get(f"{full.url}/health/live", verify=PLAIN).is_success
        assert [one.file_count for one in history(full.url)] == [10]
        with windrow.connect(full.url) as client:
            assert client.publish_delta("t", added=[entry("small")]).file_count == 11
        assert full.stop() in (0, -15)

    with coordinator_process(state, tmp_path) as roomy, windrow.connect(roomy.url) as client:
        assert [one.file_count for one in history(roomy.url)] == [11, 10]
        assert client.publish("t", inventory(MANY, 2)).file_count == MANY
