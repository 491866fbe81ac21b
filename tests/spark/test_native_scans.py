"""Large files read by Spark's own reader, small ones in groups, and both in one scan."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import a_few
from tests.support.queries import hybrids
from tests.support.servers import embedded
from tests.support.tables import hive
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_spark.relation.recent_scans import Figures, recent_scans

pytestmark = pytest.mark.spark

UTC = dt.timezone.utc
READERS = ("auto", "grouped", "native")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


def registered(client: windrow.Client, location: Path, name: str) -> str:
    client.register_table(name, str(location))
    client.refresh(name)
    return name


def sorted_rows(rows: DataFrame) -> list[str]:
    return sorted(str(row) for row in rows.collect())


def native_files(rows: DataFrame, table: str) -> int:
    """Return how many files of a table Spark's own reader reads for a query with one scan."""
    rows.collect()
    return recent_scans(table)[0].native_files


def gives_batches(rows: DataFrame) -> bool:
    return "ColumnarToRow" in str(rows._jdf.queryExecution().executedPlan().toString())


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture(scope="module")
def mixed(folder: Path, spark: SparkSession) -> Path:
    """Partitions of many types, and files of which only some suit Spark's reader."""
    location = folder / "mixed"
    odd = location / "ds=2026-11-01" / "at=2026-11-01 10%3A30%3A00" / "who=a%2Fb %C3%A9"
    null = location / "ds=__HIVE_DEFAULT_PARTITION__" / "at=2026-11-02 00%3A00%3A00" / "who=x"
    text, days = pa.array(["é", None, ""]), [dt.date(1500, 1, 1), None, dt.date(2026, 11, 1)]
    money = pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pa.decimal128(9, 2))
    seen = pa.array(
        [dt.datetime(1850, 1, 1, tzinfo=UTC), None, dt.datetime(2026, 1, 1, tzinfo=UTC)],
        pa.timestamp("us", "UTC"),
    )
    ids = pa.array([1, 2, 3], pa.int64())
    write(odd / "whole file.parquet", id=ids, name=text, day=days, money=money, seen=seen)
    write(null / "without-some.parquet", id=pa.array([4, None], pa.int64()))
    write(odd / "narrow.parquet", id=pa.array([5, 6], pa.int32()), name=pa.array(["n", "m"]))
    nanos = pa.array([1_700_000_000_000_000_001], pa.timestamp("ns", "UTC"))
    write(null / "nanoseconds.parquet", id=pa.array([7], pa.int64()), seen=nanos)
    dictionary = pa.array(["d", "d"]).dictionary_encode()
    write(null / "dictionary.parquet", id=pa.array([8, 9], pa.int64()), name=dictionary)
    # As Spark 2 wrote it, in the old calendar.
    days_of_old = pa.array([dt.date(1500, 1, 1)])
    old = pa.table({"id": pa.array([10], pa.int64()), "day": days_of_old})
    pq.write_table(
        old.replace_schema_metadata({"org.apache.spark.version": "2.4.8"}), null / "old.parquet"
    )
    return location


@pytest.mark.parametrize("reader", READERS)
def test_partition_columns_have_their_values_in_whichever_order_they_are_asked_for(
    spark: SparkSession, client: windrow.Client, folder: Path, reader: str
) -> None:
    location = folder / f"ordered-{reader}"
    write(location / "p=1" / "q=2" / "r=3" / "f.parquet", a=[10], b=[20])
    table = registered(client, location, f"native.ordered_{reader}")
    values = {"a": 10, "b": 20, "p": 1, "q": 2, "r": 3}

    for columns in a_few(list(itertools.permutations(values, 4)), 17):
        rows = client.read(spark, table, reader=reader, columns=columns).collect()
        assert [row.asDict() for row in rows] == [{name: values[name] for name in columns}]


# tests/spark/test_query_laws.py mixes both readers every day.
@pytest.mark.nightly
def test_both_readers_and_a_mix_of_them_give_the_same_rows(
    spark: SparkSession, client: windrow.Client, mixed: Path
) -> None:
    table = registered(client, mixed, "native.mixed")
    views = {reader: client.read(spark, table, reader=reader) for reader in READERS}
    for reader, rows in views.items():
        rows.createOrReplaceTempView(f"mixed_{reader}")
    for query in (
        "SELECT * FROM {0}",
        "SELECT count(*) FROM {0}",
        "SELECT ds, who, count(*), sum(id), max(day), min(seen) FROM {0} GROUP BY ds, who",
        "SELECT upper(name), at FROM {0} WHERE id % 2 = 1 AND who LIKE 'a/%'",
        "SELECT id FROM {0} WHERE ds IS NULL OR length(who) > 3",
        "SELECT a.id, b.who FROM {0} a JOIN {0} b ON a.id = b.id WHERE hour(a.at) = 10",
        "SELECT id, row_number() OVER (PARTITION BY who ORDER BY id) AS place FROM {0} LIMIT 100",
    ):
        grouped, *others = (
            sorted_rows(spark.sql(query.format(f"mixed_{reader}")))
            for reader in ("grouped", "native", "auto")
        )
        assert len(grouped) > 0, query
        assert others == [grouped, grouped], query

    assert native_files(spark.sql("SELECT * FROM mixed_native"), table) == 3
    assert recent_scans(table)[0].plan.summary.files_planned == 6
    # The types of a file matter only for the requested columns.
    assert native_files(spark.sql("SELECT id FROM mixed_native"), table) == 5
    assert native_files(spark.sql("SELECT money FROM mixed_native"), table) == 6
    assert native_files(spark.sql("SELECT * FROM mixed_grouped"), table) == 0


def test_spark_reads_whole_tables_natively_as_it_would_by_itself(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "own"
    spark.sql(
        "SELECT id, array(id, null) AS list, struct(id AS a, 'x' AS b) AS s, map('k', id) AS m, "
        "cast(id AS decimal(38, 2)) AS d, timestamp_ntz '1850-01-01' AS n, "
        "cast(id % 2 AS double) AS part FROM range(50)"
    ).repartition(1).write.partitionBy("part").parquet(str(location))
    table = registered(client, location, "native.own")
    own = spark.read.parquet(str(location))
    rows = client.read(spark, table, reader="native")

    assert sorted_rows(rows.select(*own.columns)) == sorted_rows(own)
    assert rows.select("s.b", "part").where("part = 1").count() == 25
    assert native_files(rows.where("part = 1"), table) == 1
    assert recent_scans(table)[0].plan.summary.files_planned == 1


def test_a_scan_keeps_to_the_settings_of_the_users_session(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = hive.write_events(folder / "many", files_per_day=12)
    table = registered(client, location, "native.many")
    rows = client.read(spark, table, reader="native")
    before = spark.conf.get("spark.sql.files.openCostInBytes")

    # With Spark's default cost of opening files there would be more partitions.
    assert rows.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism + 1
    assert spark.conf.get("spark.sql.files.openCostInBytes") == before
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        one_by_one = rows.select("id")
        assert not gives_batches(one_by_one)
        assert sorted(row.id for row in one_by_one.collect()) == list(range(360))
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert gives_batches(rows.select("id"))


def test_slots_read_equally_many_files_of_one_size(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    for number in range(12):
        write(folder / "sizes" / f"{number}.parquet", id=pa.array(range(1_000), pa.int64()))
    table = registered(client, folder / "sizes", "native.sizes")

    for slots in (1, 2, 3, 6):
        rows = client.read(spark, table, reader="native", parallelism=slots)

        tasks = rows.groupBy(F.spark_partition_id()).agg(F.count_distinct("_metadata.file_path"))
        assert [files for _, files in tasks.collect()] == [12 // slots] * slots


def test_a_file_of_fewer_bytes_than_there_are_slots_is_read(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    (folder / "tiny").mkdir()
    (folder / "tiny" / "one.csv").write_text("a")
    client.register_table(
        "native.tiny", str(folder / "tiny"), format="csv", columns={"name": "string"}
    )
    client.refresh("native.tiny")

    assert client.read(spark, "native.tiny", parallelism=8).collect() == [("a",)]


def test_other_sessions_of_the_application_divide_scans_as_well(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = hive.write_events(folder / "other")
    table = registered(client, location, "native.other")
    rows = client.read(spark, table, reader="native")
    other = spark.newSession()
    rows.createOrReplaceGlobalTempView("other_events")

    found = other.table("global_temp.other_events")
    assert native_files(found, table) == 6
    assert sorted_rows(found) == sorted_rows(rows)
    spark.catalog.dropGlobalTempView("other_events")


def test_a_given_filter_leaves_out_the_same_rows_with_every_reader(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = hive.write_events(folder / "filtered")
    table = registered(client, location, "native.filtered")
    for filter, native in (("id >= 25", 4), ("ds = '2026-11-02'", 2), ("id <> 33", 6)):
        rows = {r: client.read(spark, table, filter=filter, reader=r) for r in READERS}
        assert 0 < native_files(rows["native"], table) <= native, filter
        assert sorted_rows(rows["native"]) == sorted_rows(rows["grouped"])


def test_a_file_that_changed_before_its_scan_fails_the_scan_and_is_named(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = hive.write_events(folder / "changing")
    table = registered(client, location, "native.changing")
    rows = client.read(spark, table, reader="native")
    assert rows.count() == 60
    changed = location / "ds=2026-11-02" / "part-00001.parquet"
    hive.write_file(changed, range(500, 520))

    with pytest.raises(TaskFailedError, match=r"part-00001\.parquet"), plain_errors():
        rows.select("id").collect()


def test_a_file_that_changes_after_its_scan_was_planned_fails_the_scan_and_is_named(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = hive.write_events(folder / "replaced", days=["2026-11-01"])
    table = registered(client, location, "native.replaced")
    rows = client.read(spark, table, reader="native").select("id")
    assert len(rows.collect()) == 20

    file = location / "ds=2026-11-01" / "part-00001.parquet"
    written = file.stat()
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns + 5_000_000))
    changed = r"part-00001\.parquet' has changed since the plan was made: modification time"
    with pytest.raises(TaskFailedError, match=changed) as failed, plain_errors():
        rows.collect()
    assert "refresh the table" in str(failed.value)
    hive.write_file(file, range(30))
    with (
        pytest.raises(TaskFailedError, match=r"part-00001\.parquet' .* size in bytes"),
        plain_errors(),
    ):
        rows.collect()
    file.unlink()
    with pytest.raises(TaskFailedError, match=r"part-00001\.parquet' has vanished"), plain_errors():
        rows.collect()


def test_every_supported_spark_divides_scans_and_its_tasks_count_and_check_files(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    also_on_older_sparks: list[dict[str, Any]],
) -> None:
    for found in (
        hybrids.outcome(spark, client, folder),
        *(older["hybrid"] for older in also_on_older_sparks),
    ):
        assert found["ids"] == [*range(10, 30), 100]
        assert found["native_files"] == 2
        assert "part-00000.parquet' has changed since the plan was made" in found["failure"]
        figures = Figures(files=3, bytes=found["bytes"], rows=21, cache_hits=0)
        assert found["read"] == asdict(figures)


def test_scans_report_what_their_tasks_have_read(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = hive.write_events(folder / "counted", days=["2026-11-01"], rows_per_file=5_000)
    sizes = [(location / path).stat().st_size for path in hive.data_files(location)]
    table = registered(client, location, "native.counted")
    for reader in READERS:
        rows = client.read(spark, table, reader=reader)
        one = rows.where("upper(name) = 'NAME-7'").select("id")
        assert len(one.collect()) == 1
        scan = recent_scans(table)[0]
        assert scan.read == Figures(files=2, bytes=sum(sizes), rows=10_000, cache_hits=0), reader
        # Reading the files again with the same plan adds to the figures.
        one.collect()
        assert scan.read.rows == 20_000, reader
        assert rows.count() == 10_000
        assert (recent_scans(table)[0].read.rows, scan.read.rows) == (10_000, 20_000), reader


def test_explain_read_gives_the_reader_of_files_and_the_reason(
    spark: SparkSession, client: windrow.Client, mixed: Path
) -> None:
    table = registered(client, mixed, "native.explained")
    told = {
        reader: client.explain_read(
            spark, table, columns=["id"], filter="ds IS NULL", reader=reader
        )
        for reader in READERS
    }

    assert told["native"].native_files == 4
    assert told["native"].grouped_files == 0
    assert "4 files" in told["native"].reason
    assert (told["grouped"].native_files, told["grouped"].groups > 0) == (0, True)
    assert "as asked for" in told["grouped"].reason
    assert told["auto"].native_files + told["auto"].grouped_files == 4
