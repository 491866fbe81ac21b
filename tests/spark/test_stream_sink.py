"""Streams write tables: each row is there once, whatever was interrupted, and in planned files."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import a_few
from tests.support.queries import stream_outcomes, streams
from tests.support.queries.streams import Feed
from tests.support.tables import hive
from windrow.client import Client
from windrow.spark import plain_errors
from windrow_calls.errors import InvalidArgumentError, NotFoundError
from windrow_core.models import Column
from windrow_spark.streaming import sink
from windrow_tables.errors import UnfitReadError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TABLE = "sales.events"
DATA = [
    Column(name="id", type="bigint"),
    Column(name="amount", type="double"),
]
DAYS = {
    "partition_columns": [{"name": "day", "type": "date"}, {"name": "country", "type": "string"}]
}
HELD = {"max_delay": "1h"}


@pytest.fixture
def events(spark: SparkSession, client: Client, folder: Path, tmp_path: Path) -> Iterator[Path]:
    """The location of a table without files, which the format `windrow` has."""
    location = folder / tmp_path.name
    location.mkdir()
    client.register_table(TABLE, str(location), columns=DATA, **DAYS)
    client.refresh(TABLE)
    windrow.register(spark, client)
    yield location
    client.delete_table(TABLE)


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path / "feed")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def ids(client: Client, spark: SparkSession) -> list[int]:
    return sorted(row.id for row in client.read(spark, TABLE).select("id").collect())


def waiting(location: Path) -> list[str]:
    return sorted(path.parent.name for path in location.glob("_windrow/streams/*/*/batch.json"))


def until(condition: Callable[[], bool]) -> None:
    # A condition that reads a table takes seconds itself on a busy machine.
    end_s = time.monotonic() + 120
    while time.monotonic() < end_s:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("nothing happened within two minutes")


def test_each_batch_is_a_planned_write_and_its_rows_are_equal(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    for rows in (40, 1, 25):
        feed.add(rows)
    query = streams.run(feed.stream(spark), TABLE, checkpoint, name="events")

    expected = feed.rows(spark)
    rows = client.read(spark, TABLE).select(*expected.columns)
    assert rows.exceptAll(expected).count() == expected.exceptAll(rows).count() == 0
    assert rows.count() == 66
    (record,) = client.streams(TABLE)
    assert (record.query_id, record.query_name, record.batch_id) == (query.id, "events", 2)
    assert record.checkpoint is not None
    assert record.checkpoint.endswith(str(checkpoint))
    writes = list(client.writes(TABLE))
    assert [one.batch.batch_id for one in writes if one.batch] == [2, 1, 0]
    assert all(one.report and one.report.files == one.report.planned_files for one in writes)
    assert waiting(events) == []


def test_a_second_run_goes_on_where_the_first_one_ended(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    feed.add(10)
    streams.run(feed.stream(spark), TABLE, checkpoint)
    feed.add(5)
    streams.run(feed.stream(spark), TABLE, checkpoint)

    assert ids(client, spark) == feed.ids


def test_a_query_that_is_stopped_within_a_batch_has_not_failed(
    spark: SparkSession,
    client: Client,
    events: Path,
    feed: Feed,
    checkpoint: Path,
    tmp_path: Path,
) -> None:
    begun = tmp_path / "begun"

    def never_ends(_: Any) -> bool:
        begun.touch()
        time.sleep(600)
        return True

    feed.add(12)
    rows = feed.stream(spark)
    held = rows.where(F.udf(never_ends, "boolean", useArrow=False)(rows.columns[0]))
    query = streams.start(held, TABLE, checkpoint, {})
    until(begun.exists)
    query.stop()

    assert query.exception() is None
    assert ids(client, spark) == []
    streams.run(feed.stream(spark), TABLE, checkpoint)
    assert ids(client, spark) == feed.ids


def test_a_batch_that_spark_replays_is_skipped(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    feed.add(10)
    feed.add(10)
    streams.run(feed.stream(spark), TABLE, checkpoint)
    # Spark knows of no batch that was written, as after a kill before its commit.
    shutil.rmtree(checkpoint / "commits")
    feed.add(3)
    streams.run(feed.stream(spark), TABLE, checkpoint)

    assert ids(client, spark) == feed.ids
    assert [one.batch_id for one in client.streams(TABLE)] == [2]


def test_batches_wait_to_be_written_together_in_files_of_their_own(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    query = streams.start(feed.stream(spark), TABLE, checkpoint, HELD)
    for _ in range(3):
        feed.add(12)
        query.processAllAvailable()
    before, batches = ids(client, spark), waiting(events)
    query.stop()
    until(lambda: ids(client, spark) != [])

    assert (before, batches) == ([], ["0", "1", "2"])
    assert ids(client, spark) == feed.ids
    assert len(hive.data_files(events)) == 3
    expected = feed.rows(spark)
    rows = client.read(spark, TABLE).select(*expected.columns)
    assert rows.exceptAll(expected).count() == 0
    until(lambda: waiting(events) == [])


def test_no_row_waits_longer_than_it_may_though_no_batch_follows(
    spark: SparkSession,
    client: Client,
    events: Path,
    feed: Feed,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []

    def failing_once(*arguments: Any) -> Any:
        # Batches look, too, and one that gets no answer ends its query.
        if threading.current_thread().name == "windrow-stream":
            looks.append(arguments)
            if len(looks) == 1:
                raise Py4JError("the JVM has no answer for once")
        return query_of(*arguments)

    query_of = sink.query_of
    monkeypatch.setattr(sink, "query_of", failing_once)
    query = streams.start(feed.stream(spark), TABLE, checkpoint, {"max_delay": "2s"})
    try:
        feed.add(12)
        query.processAllAvailable()
        until(lambda: ids(client, spark) == feed.ids)
    finally:
        query.stop()


def test_batches_wait_no_longer_once_their_files_are_large_enough(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    options = {**HELD, "min_file_size": "600"}
    query = streams.start(feed.stream(spark), TABLE, checkpoint, options)
    try:
        feed.add(9)
        query.processAllAvailable()
        few = ids(client, spark)
        feed.add(3000)
        query.processAllAvailable()
        assert (few, ids(client, spark)) == ([], feed.ids)
    finally:
        query.stop()


def test_no_more_files_are_made_in_an_hour_than_a_stream_may(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    options = {**HELD, "max_files_per_hour": "5"}
    query = streams.start(feed.stream(spark), TABLE, checkpoint, options)
    try:
        for _ in range(2):
            feed.add(9)
            query.processAllAvailable()
        assert ids(client, spark) == list(range(9))
        assert waiting(events) == ["1"]
    finally:
        query.stop()
    until(lambda: ids(client, spark) == feed.ids)


def test_two_streams_write_one_table(
    spark: SparkSession, client: Client, events: Path, feed: Feed, tmp_path: Path
) -> None:
    other = Feed(tmp_path / "other")
    queries = [
        streams.start(one.stream(spark), TABLE, tmp_path / name, HELD, name=name)
        for name, one in (("one", feed), ("two", other))
    ]
    for one in (feed, other, feed, other):
        one.add(6)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    until(lambda: ids(client, spark) == sorted([*feed.ids, *other.ids]))

    assert {one.query_name for one in client.streams(TABLE)} == {"one", "two"}


@pytest.mark.parametrize("options", a_few([{}, HELD], 2))
def test_a_lost_checkpoint_is_refused_until_the_stream_is_said_to_be_new(
    spark: SparkSession,
    client: Client,
    events: Path,
    feed: Feed,
    checkpoint: Path,
    options: dict[str, str],
) -> None:
    feed.add(10)
    query = streams.start(feed.stream(spark), TABLE, checkpoint, options, name="events")
    query.processAllAvailable()
    query.stop()
    until(lambda: ids(client, spark) == feed.ids)
    shutil.rmtree(checkpoint)

    refusal = f"name 'events'.*or, if all rows are new.*'replaces_query', '{query.id}'"
    with pytest.raises(StreamingQueryException, match=f"(?s){refusal}"):
        streams.run(feed.stream(spark), TABLE, checkpoint.with_name("c2"), options, name="events")
    with pytest.raises(StreamingQueryException, match="has written table"):
        streams.run(feed.stream(spark), TABLE, checkpoint, options)
    assert ids(client, spark) == feed.ids
    shutil.rmtree(checkpoint)
    new = {**options, "replaces_query": str(query.id)}
    streams.run(feed.stream(spark), TABLE, checkpoint, new, name="events")
    assert ids(client, spark) == sorted(feed.ids * 2)


def test_a_column_that_comes_or_goes_between_batches_is_named(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    feed.add(10)
    streams.run(feed.stream(spark), TABLE, checkpoint)
    feed.add(5)
    with pytest.raises(StreamingQueryException, match="the table has no column 'more'"):
        streams.run(feed.stream(spark).withColumn("more", F.lit(1)), TABLE, checkpoint)
    with pytest.raises(StreamingQueryException, match="they lack column 'amount'"):
        streams.run(feed.stream(spark).drop("amount"), TABLE, checkpoint)
    assert ids(client, spark) == feed.ids[:10]
    streams.run(feed.stream(spark), TABLE, checkpoint)
    assert ids(client, spark) == feed.ids


def test_values_that_differ_at_each_computation_are_written_once(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    feed.add(30)
    rows = feed.stream(spark).withColumn("country", F.expr("substring(uuid(), 1, 1)"))
    streams.run(rows, TABLE, checkpoint)

    assert ids(client, spark) == feed.ids


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_file_size": "1MB"}, "how long batches may wait at most"),
        ({"max_delay": "soon"}, "'soon' is not a time"),
        ({"max_delai": "1h"}, "max_delai"),
        ({"rows": "7"}, "a stream has no option 'rows'"),
        ({"target_file_size": "-1"}, "target_file_size"),
    ],
)
def test_options_that_are_not_valid_are_refused_when_the_query_starts(
    spark: SparkSession, events: Path, feed: Feed, checkpoint: Path, options: Any, words: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=words), plain_errors():
        streams.start(feed.stream(spark), TABLE, checkpoint, options)


def test_what_a_stream_cannot_do_is_refused_when_the_query_starts(
    spark: SparkSession, events: Path, feed: Feed, checkpoint: Path
) -> None:
    rows = feed.stream(spark)
    counts = rows.groupBy("country", "day").agg(F.max("id").alias("id"))
    writer = counts.writeStream.format("windrow").option("checkpointLocation", str(checkpoint))
    for mode in ("complete", "update"):
        with pytest.raises(UnfitReadError, match=f"append, not {mode}"), plain_errors():
            writer.outputMode(mode).start(TABLE)
    with pytest.raises(InvalidArgumentError, match="by day, country, not by id"), plain_errors():
        streams.start(rows, TABLE, checkpoint, partition_columns=["id"])
    with pytest.raises(NotFoundError, match=r"sales\.other"), plain_errors():
        streams.start(rows, "sales.other", checkpoint)
    with pytest.raises(InvalidArgumentError, match="name a table"), plain_errors():
        rows.writeStream.format("windrow").option("checkpointLocation", str(checkpoint)).start()


def test_partition_columns_may_be_said_again(
    spark: SparkSession, client: Client, events: Path, feed: Feed, checkpoint: Path
) -> None:
    feed.add(4)
    streams.run(feed.stream(spark), TABLE, checkpoint, partition_columns=["day", "country"])

    assert ids(client, spark) == feed.ids


def test_streams_write_and_read_on_older_spark_as_well(
    streams_on_older_sparks: list[dict[str, Any]],
) -> None:
    for older in streams_on_older_sparks:
        outcomes = older["streams"]
        wrong = {
            name: outcome
            for name, outcome in outcomes.items()
            if outcome != ("refused" if name in stream_outcomes.REFUSALS else "same")
        }
        assert (older["version"], wrong) == (older["version"], {})
        assert outcomes.keys() > stream_outcomes.REFUSALS.keys()


def test_a_table_of_the_catalog_is_written_by_its_name_there(
    spark: SparkSession,
    client: Client,
    events: Path,
    feed: Feed,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is cached of it has the new rows, and batches do not list its folders."""
    feed.add(4)
    feed.add(3)
    rows = spark.table(f"windrow.{TABLE}").cache()
    assert rows.count() == 0
    monkeypatch.setattr(client, "refresh", None)

    writer = feed.stream(spark).writeStream.format("windrow").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer.toTable(f"windrow.{TABLE}").awaitTermination()

    assert sorted(row.id for row in spark.table(f"windrow.{TABLE}").collect()) == feed.ids
    assert ids(client, spark) == feed.ids
    spark.catalog.clearCache()


def test_a_table_of_the_catalog_takes_streams_of_the_format_windrow_only(
    spark: SparkSession, events: Path, feed: Feed, checkpoint: Path
) -> None:
    writer = feed.stream(spark).writeStream.option("checkpointLocation", str(checkpoint))
    with pytest.raises(AnalysisException, match="windrow"):
        writer.format("parquet").toTable(f"windrow.{TABLE}")
    assert not checkpoint.exists()
