"""A disk that fills up stops a stream with a clear error, and every row is there once after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.faults.disks import nearly_full, small_disk
from tests.support.queries import streams
from tests.support.queries.streams import Feed
from windrow.client import Client
from windrow.spark import plain_errors
from windrow_calls.errors import WindrowError
from windrow_spark.streaming import stream
from windrow_spark.streaming.waiting import WaitingFolder

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TABLE = "sales.disk"
# What a stream does when the disk fills up.
STEPS: dict[str, tuple[Any, str]] = {
    "it writes the rows of a batch": (stream.Stream, "_stage"),
    "it keeps a batch": (WaitingFolder, "keep"),
    "it gathers batches": (stream.Stream, "_write"),
    "it writes batches together": (stream, "write"),
}


@pytest.fixture(scope="module")
def disk(spark: SparkSession, client: Client, folder: Path) -> Iterator[Path]:
    """A disk of 4 MiB with the table."""
    with small_disk(folder / "disk", 4 * 2**20) as disk:
        location = disk / "events"
        location.mkdir()
        client.register_table(
            TABLE,
            str(location),
            columns={"id": "bigint", "amount": "double"},
            partition_columns={"day": "date", "country": "string"},
        )
        client.refresh(TABLE)
        windrow.register(spark, client)
        yield disk
        client.delete_table(TABLE)


@pytest.mark.parametrize(("holder", "name"), STEPS.values(), ids=STEPS)
def test_a_disk_that_fills_up_is_named_and_no_row_is_lost_or_doubled(
    spark: SparkSession,
    client: Client,
    disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    holder: Any,
    name: str,
) -> None:
    before = client.read(spark, TABLE).count()
    feed = Feed(tmp_path / "feed")
    feed.add(9)
    streams.run(feed.stream(spark), TABLE, tmp_path / "checkpoint")
    feed.add(3000)
    original = getattr(holder, name)

    def on_a_full_disk(*arguments: Any, **options: Any) -> Any:
        with nearly_full(disk, 0):
            return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(holder, name, on_a_full_disk)
        with (
            pytest.raises(WindrowError, match=r"No space left on device.*make room"),
            plain_errors(),
        ):
            streams.run(feed.stream(spark), TABLE, tmp_path / "checkpoint")
    feed.add(9)
    streams.run(feed.stream(spark), TABLE, tmp_path / "checkpoint")

    rows = client.read(spark, TABLE).select("id").collect()
    assert len(rows) == before + len(feed.ids)
    assert {row.id for row in rows} == set(feed.ids)
    assert not list(disk.glob("events/_windrow/*/*"))
