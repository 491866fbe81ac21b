"""A worker dies amid a retention removal: old partitions go whole or stay, and young ones stay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from signal import SIGKILL

import pytest

import windrow
from tests.support.faults.killed_workers import drop_and_die
from tests.support.faults.readers import listed_ids, looking
from tests.support.processes.forks import fork
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow.client import Client
from windrow_jobs.maintain import maintain
from windrow_service.settings import Settings
from windrow_tables.commits import begin

LEASE_S = 5
IDS = {300: range(10), 200: range(10, 20), 10: range(20, 30)}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, allowed_locations=("/",))) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with windrow.connect(url) as client:
        yield client


def folder(age: int) -> str:
    return f"ds={datetime.now(timezone.utc).date() - timedelta(days=age)}"


# How the work ends that a worker left at each step of the commit.
ENDINGS = {
    # Undone, and done once more.
    "staged": "2 partitions with 2 files",
    # Finished by the next write, which finds nothing left.
    "exchanged": "nothing was left to drop",
    # Done, but nobody was told.
    "published": "nothing was left to drop",
}


def test_what_killed_workers_left_is_finished_and_young_partitions_stay(
    url: str, client: Client, tmp_path: Path
) -> None:
    folders = {folder(age): sorted(ids) for age, ids in IDS.items()}
    for step in ENDINGS:
        for name, ids in folders.items():
            hive.write_file(tmp_path / step / name / "a.parquet", ids)
        client.register_table(f"killed.{step}", str(tmp_path / step))
        client.refresh(f"killed.{step}")
    client.set_policy("killed.*", keep_days=90)
    # The first round says what the second does.
    client.decide_maintenance()
    client.decide_maintenance()

    log = tmp_path / "log"
    with ExitStack() as stack:
        looks = [stack.enter_context(looking(partial(listed_ids, tmp_path / s))) for s in ENDINGS]
        workers = [
            fork(drop_and_die, url, f"killed.{step}", step, LEASE_S, output=log) for step in ENDINGS
        ]
        assert [worker.wait() for worker in workers] == [-SIGKILL] * 3, log.read_text()
        soon = maintain(_no_spark, client, pattern="killed.*")
        while True:
            maintain(_no_spark, client, pattern="killed.*")
            receipts = [one for one in client.receipts() if one.removal is not None]
            if all(one.state != "running" for one in receipts):
                break
            time.sleep(0.5)

    assert soon.items == 0
    assert len(receipts) == 3
    for receipt in receipts:
        step = receipt.table.removeprefix("killed.")
        assert (receipt.state, receipt.times) == ("done", 2)
        assert ENDINGS[step] in receipt.text
        young = {folder(10): folders[folder(10)]}
        assert {name: ids for name, ids in listed_ids(tmp_path / step).items() if ids} == young
        # Each write first recovers dead ones.
        with begin(client, receipt.table):
            pass
        assert not list(client.writes(receipt.table, open_only=True))
        status = client.refresh(receipt.table, full=True)
        assert (status.changed, status.files_removed) == (False, 0)
    for look in (one for of_table in looks for one in of_table):
        assert look[folder(10)] == folders[folder(10)]
        for name, ids in look.items():
            assert ids in (None, [], folders[name])


def _no_spark() -> None:
    pytest.fail("Spark was started")
