"""`windrow_jobs.maintain`: what is due gets done, also if a worker dies, and a writer always wins."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.processes.forks import fork_module
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow.client import Client
from windrow_calls.transport import Transport
from windrow_core.models import WriteRecord, WriteUpdate
from windrow_jobs.maintain import maintain
from windrow_service.settings import Settings
from windrow_spark.writing.counting import sum_rows

pytestmark = pytest.mark.usefixtures("interpreted")

EAGER: dict[str, Any] = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 1_000.0}
LEASE_S = 5


@pytest.fixture(scope="module")
def tables_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def coordinator(tables_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("state"), allowed_locations=(str(tables_root),)
    )
    with running(settings) as url:
        yield url


@pytest.fixture(scope="module")
def client(coordinator: str) -> Iterator[Client]:
    with windrow.connect(coordinator) as client:
        yield client


def table_of(client: Client, root: Path, name: str, **policy: Any) -> Path:
    location = hive.write_events(root / name, files_per_day=4)
    client.register_table(name, str(location))
    client.refresh(name)
    client.set_policy(name, **EAGER | policy)
    return location


def test_one_worker_does_what_is_due_and_a_second_run_does_nothing(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = table_of(client, tables_root, "due")
    left_alone = table_of(client, tables_root, "left_alone", enabled=False)
    before = sum_rows(spark.read.parquet(str(location)), [])
    told: list[str] = []

    first = maintain(lambda: spark, client, on_progress=told.append)
    again = maintain(lambda: pytest.fail("Spark was started"), client)

    assert (first.done, first.failed, first.gave_up) == (1, 0, 0)
    assert (first.files_before, first.files_after) == (12, 3)
    assert again.items == 0
    assert (len(hive.data_files(location)), len(hive.data_files(left_alone))) == (3, 12)
    assert sum_rows(spark.read.parquet(str(location)), []) == before
    receipts = {one.state: one for one in client.receipts("due")}
    outcome = receipts["done"].outcome
    assert outcome is not None
    assert (outcome.partitions, outcome.rows) == (3, 120)
    assert outcome.core_seconds > 0
    assert "12 files" in receipts["done"].text
    assert "no partition has small files to merge" in receipts["left_alone"].text
    assert any("12 files" in text for text in told)


def test_only_files_below_the_size_of_a_work_item_are_rewritten(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "smallest"
    for number in range(10):
        hive.write_file(location / f"tiny-{number}.parquet", range(number * 10, number * 10 + 10))
    for number in range(3):
        hive.write_file(location / f"large-{number}.parquet", range(60_000))
    client.register_table("smallest", str(location))
    client.refresh("smallest")
    client.set_policy("smallest", target_file_size="4MB", **EAGER)
    before = sum_rows(spark.read.parquet(str(location)), [])

    total = maintain(lambda: spark, client, pattern="smallest")

    assert (total.done, total.files_before, total.files_after) == (1, 10, 1)
    assert sum(Path(name).name.startswith("large") for name in hive.data_files(location)) == 3
    assert sum_rows(spark.read.parquet(str(location)), []) == before
    texts = [one.text for one in client.receipts("smallest") if one.state == "done"]
    assert ["10 files below 512 KB" in text for text in texts] == [True]


def test_two_workers_at_once_share_the_work(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    locations = [table_of(client, tables_root, f"shared.t{number}") for number in range(3)]
    outcomes = []

    def work(name: str) -> None:
        outcomes.append(maintain(lambda: spark, client, pattern="shared.*", worker=name))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(one.done for one in outcomes) == 3
    assert sum(one.failed + one.gave_up for one in outcomes) == 0
    for location in locations:
        assert len(hive.data_files(location)) == 3
        assert spark.read.parquet(str(location)).count() == 120


class _Meddling(Client):
    """A client that changes a file after its replacement has been staged."""

    def __init__(self, transport: Transport, file: Path) -> None:
        super().__init__(transport)
        self._file = file

    def put_write(self, table: str, write_id: str, update: WriteUpdate) -> WriteRecord:
        if update.state == "committing":
            hive.write_file(self._file, range(900, 905))
        return super().put_write(table, write_id, update)


def test_a_worker_that_meets_a_writer_gives_up_and_the_partition_waits(
    spark: SparkSession, client: Client, coordinator: str, tables_root: Path
) -> None:
    location = table_of(client, tables_root, "busy", filter="ds = '2026-11-01'")
    changed = location / "ds=2026-11-01" / "part-00003.parquet"

    with httpx.Client(base_url=coordinator, timeout=60) as http:
        meddling = _Meddling(Transport(http), changed)
        total = maintain(lambda: spark, meddling, pattern="busy")
    client.refresh("busy")
    later = maintain(lambda: spark, client, pattern="busy")

    assert (total.done, total.gave_up, total.failed) == (0, 1, 0)
    assert later.items == 0
    texts = {one.reason: one.text for one in client.receipts("busy")}
    assert "a writer was faster: ds=2026-11-01: " in texts["gave_up"]
    assert "ds=2026-11-01 must wait; the first is free in 15 minutes" in texts["backing_off"]
    ids = sorted(row["id"] for row in spark.read.parquet(str(location)).collect())
    assert ids == [*range(30), *range(40, 120), *range(900, 905)]


def test_a_partition_that_a_writer_is_at_is_left_when_its_turn_comes(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = table_of(client, tables_root, "quiet", min_age_seconds=3_600)
    old = time.time() - 7_200
    for path in hive.data_files(location):
        os.utime(location / path, (old, old))
    client.refresh("quiet")
    # The coordinator, whose snapshot is older, decides on all three partitions.
    hive.write_file(location / "ds=2026-11-02" / "new.parquet", [900])

    total = maintain(lambda: spark, client, pattern="quiet")

    (receipt,) = (one for one in client.receipts("quiet") if one.state == "done")
    assert (total.done, total.gave_up, total.failed) == (1, 0, 0)
    assert receipt.prediction is not None
    assert receipt.outcome is not None
    assert (receipt.prediction.partitions, receipt.outcome.partitions) == (3, 2)
    assert receipt.outcome.files_before == 8
    assert "left alone: 1, ds=2026-11-02: it was written to " in receipt.text
    assert len(list((location / "ds=2026-11-02").glob("part-*"))) == 4


def test_work_of_a_killed_worker_is_done_by_another_and_no_row_is_lost(
    spark: SparkSession, client: Client, coordinator: str, tables_root: Path, tmp_path: Path
) -> None:
    location = table_of(client, tables_root, "killed")
    before = sum_rows(spark.read.parquet(str(location)), [])
    log = tmp_path / "log"
    process = fork_module(
        *("windrow_cli", "maintain", "--once", "--tables", "killed"),
        *("--url", coordinator, "--lease-seconds", str(LEASE_S)),
        output=log,
    )
    try:
        # It is about to stage the new files.
        while "files: 12" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
    finally:
        process.kill()
    soon = maintain(lambda: spark, client, pattern="killed")
    while not (later := maintain(lambda: spark, client, pattern="killed")).items:
        time.sleep(0.5)

    assert (soon.items, later.done) == (0, 1)
    assert len(hive.data_files(location)) == 3
    assert sum_rows(spark.read.parquet(str(location)), []) == before
    (receipt,) = [one for one in client.receipts("killed") if one.state == "done"]
    assert receipt.times == 2
