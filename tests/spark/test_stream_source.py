"""Streams read tables: what is there, and then what each snapshot adds, each row once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from windrow.client import Client
from windrow.spark import plain_errors
from windrow_calls.errors import InvalidArgumentError
from windrow_jobs.compact import compact
from windrow_spark.streaming.errors import (
    RemovedFilesError,
    SnapshotsGoneError,
    StreamColumnsError,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TABLE = "sales.history"


@pytest.fixture
def table(spark: SparkSession, client: Client, folder: Path, tmp_path: Path) -> Iterator[Path]:
    """The location of a table of four files, which the format `windrow` has."""
    location = folder / tmp_path.name
    for number in range(4):
        add(location, number)
    client.register_table(TABLE, str(location))
    client.refresh(TABLE)
    windrow.register(spark, client)
    yield location
    client.delete_table(TABLE)


def add(location: Path, number: int, **more: Any) -> None:
    """Add a file with ten rows in one of two partitions."""
    path = location / f"ds=2026-11-0{1 + number % 2}" / f"{number:03d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = pa.array(range(10 * number, 10 * number + 10), pa.int64())
    pq.write_table(pa.table({"id": ids, **{name: [one] * 10 for name, one in more.items()}}), path)


Run = Callable[..., tuple[list[int], list[int]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Read what a stream has not read yet; return the new ids, and the rows of each batch."""

    def read(where: str | None = None, **options: Any) -> tuple[list[int], list[int]]:
        sizes: list[int] = []
        ids: list[int] = []

        def take(rows: Any, _: int) -> None:
            batch = [row.id for row in rows.select("id").collect()]
            sizes.append(len(batch))
            ids.extend(batch)

        rows = spark.readStream.format("windrow").options(**options).load(TABLE)
        if where is not None:
            rows = rows.where(where)
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        with plain_errors():
            writer.trigger(availableNow=True).foreachBatch(take).start().awaitTermination()
        return sorted(ids), [one for one in sizes if one]

    return read


def test_a_stream_reads_the_table_and_then_what_is_added(
    client: Client, table: Path, run: Run
) -> None:
    assert run() == (list(range(40)), [40])
    assert run() == ([], [])
    for number in (4, 5):
        add(table, number)
        client.refresh(TABLE)

    assert run() == (list(range(40, 60)), [10, 10])


@pytest.mark.parametrize("name", ["spark", "other"])
def test_a_table_of_a_catalog_is_a_stream_by_its_name_too(
    spark: SparkSession, client: Client, table: Path, tmp_path: Path, name: str
) -> None:
    sizes: list[int] = []
    spark.catalog.setCurrentCatalog("windrow" if name == "other" else "spark_catalog")
    try:
        stream = spark.readStream.option("maxFilesPerTrigger", 3)
        rows = stream.table(TABLE if name == "other" else f"windrow.{TABLE}")
        with pytest.raises(InvalidArgumentError, match="'nonsense'"), plain_errors():
            spark.readStream.option("nonsense", 1).table(f"windrow.{TABLE}")
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
    writer = rows.where("ds = '2026-11-02'").writeStream.trigger(availableNow=True)
    query = writer.foreachBatch(lambda rows, _: sizes.append(rows.count())).start()
    query.awaitTermination()

    assert rows.columns == ["id", "ds"]
    assert sizes == [10, 10]


def test_batches_are_limited_in_files_and_in_bytes(client: Client, table: Path, run: Run) -> None:
    add(table, 4)
    client.refresh(TABLE)

    assert run(maxFilesPerTrigger=2) == (list(range(50)), [20, 20, 10])
    add(table, 5)
    add(table, 6)
    client.refresh(TABLE)
    assert run(maxBytesPerTrigger="1B") == (list(range(50, 70)), [10, 10])


def test_conditions_of_the_query_prune_files(client: Client, table: Path, run: Run) -> None:
    ids, _ = run("ds = '2026-11-02' AND id > 12")

    assert ids == [*range(13, 20), *range(30, 40)]
    scan = windrow.spark.recent_scans(TABLE)[0]
    assert scan.plan.summary.files_planned == 2


def test_a_replayed_batch_has_the_same_rows(
    client: Client, table: Path, run: Run, tmp_path: Path
) -> None:
    first = run(maxFilesPerTrigger=3)
    # Spark knows what the last batch was to read, but not that it has been written.
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    add(table, 4)
    client.refresh(TABLE)

    ids, sizes = run(maxFilesPerTrigger=3)
    assert first[1] == [30, 10]
    assert sizes == [10, 10]
    assert sorted({*first[0], *ids}) == list(range(50))


def test_compactions_are_skipped_and_what_follows_them_is_read(
    spark: SparkSession, client: Client, table: Path, run: Run
) -> None:
    run()
    compact(lambda: spark, client, TABLE)
    assert len(list(table.glob("ds=*/*.parquet"))) == 2
    add(table, 6)
    client.refresh(TABLE)

    assert run() == (list(range(60, 70)), [10])


@pytest.mark.parametrize(("starting", "expected"), [(1, 20), ("latest", 10)])
def test_a_stream_may_start_after_a_snapshot(
    client: Client, table: Path, run: Run, starting: Any, expected: int
) -> None:
    add(table, 4)
    client.refresh(TABLE)
    before, _ = run(startingSnapshot=starting)
    add(table, 5)
    client.refresh(TABLE)
    after, _ = run(startingSnapshot=starting)

    assert len(before) + len(after) == expected
    assert after == list(range(50, 60))


def test_removed_files_stop_a_stream_unless_they_are_ignored(
    client: Client, table: Path, run: Run
) -> None:
    run()
    (table / "ds=2026-11-01" / "000.parquet").unlink()
    add(table, 5)
    client.refresh(TABLE)

    with pytest.raises(RemovedFilesError, match=r"lacks 1 .*'removedFiles', 'ignore'"):
        run()
    assert run(removedFiles="ignore") == (list(range(50, 60)), [10])


def test_dropped_snapshots_stop_a_stream(client: Client, table: Path, run: Run) -> None:
    run()
    for number in (4, 5):
        add(table, number)
        client.refresh(TABLE)
    # Plans of the second snapshot do not exist.
    assert 2 in client.expire_snapshots(TABLE, keep_last=1, max_age=timedelta(0))
    with pytest.raises(SnapshotsGoneError, match="startingSnapshot"):
        run()


def test_figures_of_a_batch_are_those_of_its_files(
    spark: SparkSession, client: Client, table: Path, tmp_path: Path
) -> None:
    add(table, 4)
    client.refresh(TABLE)
    spark.conf.set("spark.windrow.inventory_counts", "true")
    try:
        rows = spark.readStream.format("windrow").option("startingSnapshot", 1).load(TABLE)
        writer = rows.groupBy("ds").count().writeStream.outputMode("complete").format("memory")
        writer = writer.option("checkpointLocation", str(tmp_path / "counts"))
        query = writer.queryName("counts").trigger(availableNow=True).start()
        query.awaitTermination()
    finally:
        spark.conf.unset("spark.windrow.inventory_counts")

    assert [row["count"] for row in spark.table("counts").collect()] == [10]


def test_a_new_column_stops_a_stream_until_it_starts_again(
    spark: SparkSession, client: Client, table: Path, run: Run, tmp_path: Path
) -> None:
    query = (
        spark.readStream.format("windrow")
        .load(TABLE)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .format("noop")
        .start()
    )
    query.processAllAvailable()
    add(table, 5, amount=1.5)
    client.refresh(TABLE)

    with pytest.raises(StreamColumnsError, match="columns 'amount'"), plain_errors():
        query.processAllAvailable()
    assert run()[0] == list(range(50, 60))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger"),
        ({"removedFiles": "keep"}, "removedFiles"),
        ({"startingSnapshot": "first"}, "startingSnapshot"),
        ({"maxFiles": "1"}, "maxfiles"),
    ],
)
def test_options_that_are_not_valid_are_refused(
    spark: SparkSession, table: Path, options: Any, words: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=words), plain_errors():
        spark.readStream.format("windrow").options(**options).load(TABLE)
