"""Receipts of maintenance beside a foreign writer count what an independent walk of the folder finds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.processes.forks import fork_module
from tests.support.servers.coordinators import running
from tests.support.tables.foreign import DAYS, Changes, ForeignWriter, Walks, walk
from windrow_core.models import MaintenanceReceipt
from windrow_jobs.maintain import maintain
from windrow_service.settings import MaintenanceSettings, Settings

pytestmark = pytest.mark.usefixtures("interpreted")

TABLE = "sales.foreign"
ROUNDS, NIGHTLY_S, MOST_ROUNDS = 3, 600.0, 500
WORKER_S = 300.0


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "tables" / "foreign"


@pytest.fixture
def coordinator(location: Path, tmp_path: Path) -> Iterator[str]:
    location.mkdir(parents=True)
    settings = Settings(
        state_dir=tmp_path / "state",
        allowed_locations=(str(location.parent),),
        # Rounds are those of the test, so that walks lie between them.
        maintenance=MaintenanceSettings(every=timedelta(days=1)),
    )
    with running(settings) as url:
        yield url


def ended(client: windrow.Client) -> dict[int, MaintenanceReceipt]:
    """Return the receipts of work that has ended, by their numbers."""
    return {one.number: one for one in client.receipts(TABLE) if one.outcome is not None}


def rounds_beside_a_writer(
    url: str, location: Path, work: Callable[[], object], *, seconds: float
) -> list[MaintenanceReceipt]:
    """Compare the receipts of each round with a walk, and return them, the oldest first.

    Args:
        url: URL of the coordinator.
        location: Folder of the table, which is empty.
        work: Lets a worker do what is due.
        seconds: For how long to go on after the first work that is done.
    """
    writer = ForeignWriter(location)
    for day in DAYS:
        for _ in range(3):
            writer.add(day, 100)
    with windrow.connect(url) as client:
        client.register_table(TABLE, str(location))
        client.refresh(TABLE)
        client.set_policy(TABLE, min_age_seconds=2, min_gain=0.0, reads_per_day=10_000.0)
        receipts: dict[int, MaintenanceReceipt] = {}
        walks, began_s = Walks(writer), time.monotonic()
        with writer:
            for _ in range(MOST_ROUNDS):
                done = sum(one.state == "done" for one in receipts.values())
                if done >= ROUNDS and time.monotonic() - began_s > seconds:
                    break
                client.refresh(TABLE)
                work()
                changes = walks.changes()
                fresh = {at: one for at, one in ended(client).items() if at not in receipts}
                assert_counts(changes, list(fresh.values()))
                receipts |= fresh
    after = walk(location)
    ids = pa.concat_arrays(
        [pq.read_table(location / name, columns=["id"])["id"].combine_chunks() for name in after]
    )
    assert sorted(ids.to_pylist()) == list(range(writer.rows))
    return [receipts[number] for number in sorted(receipts)]


def assert_counts(changes: Changes, receipts: list[MaintenanceReceipt]) -> None:
    outcomes = [one.outcome for one in receipts if one.outcome is not None]
    old, new = changes.old, changes.new
    walked = {
        "partitions": len({name.rpartition("/")[0] for name in old}),
        "files_before": len(old),
        "files_after": len(new),
        "bytes_before": sum(one.size_bytes for one in old.values()),
        "bytes_after": sum(one.size_bytes for one in new.values()),
        "rows": sum(one.rows for one in old.values()),
    }
    assert {name: sum(getattr(one, name) for one in outcomes) for name in walked} == walked
    assert walked["rows"] == sum(one.rows for one in new.values())


def test_receipts_count_what_a_walk_finds_while_somebody_else_writes(
    spark: SparkSession, coordinator: str, location: Path
) -> None:
    def work() -> None:
        with windrow.connect(coordinator) as client:
            maintain(lambda: spark, client, pattern=TABLE)

    receipts = rounds_beside_a_writer(coordinator, location, work, seconds=0.0)

    assert sum(one.state == "done" for one in receipts) >= ROUNDS
    assert all(one.prediction is not None for one in receipts)


@pytest.mark.nightly
def test_receipts_of_a_worker_count_what_a_walk_finds_for_ten_minutes(
    coordinator: str, location: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    command = ("windrow_cli", "maintain", "--tables", TABLE, "--url", coordinator)
    worker = fork_module(*command, output=log)

    def work() -> None:
        with windrow.connect(coordinator) as client:
            client.decide_maintenance()
            end_s = time.monotonic() + WORKER_S
            while any(one.state in ("waiting", "running") for one in client.receipts(TABLE)):
                assert worker.poll() is None, log.read_text()
                assert time.monotonic() < end_s, log.read_text()
                time.sleep(0.5)

    try:
        receipts = rounds_beside_a_writer(coordinator, location, work, seconds=NIGHTLY_S)
    finally:
        worker.kill()
    assert sum(one.state == "done" for one in receipts) > 10
    tell(receipts)


def tell(receipts: list[MaintenanceReceipt]) -> None:
    """Print what was predicted beside what it was: a test says nothing of time."""
    ratios = []
    for one in receipts:
        assert one.prediction is not None
        assert one.outcome is not None
        done, predicted_s = one.outcome, one.prediction.cost_seconds
        if one.state == "done":
            ratios.append(done.core_seconds / predicted_s)
        sys.stdout.write(
            f"{one.number} {one.state}: {done.files_before} files in {done.partitions} partitions "
            f"became {done.files_after}; predicted {predicted_s:.2f} s, real {done.core_seconds:.2f} s\n"
        )
    sys.stdout.write(
        f"real / predicted of {len(ratios)}: median {median(ratios):.2f}, "
        f"without the first ten {median(ratios[10:]):.2f}\n"
    )
