"""What Spark's writer honours, every way of writing honours, leaves to Spark, or refuses by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import a_few
from tests.support.queries.accelerations import accelerate
from tests.support.servers import embedded
from windrow.spark import recent_writes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_CODEC = "spark.sql.parquet.compression.codec"
_RECORDS = "spark.sql.files.maxRecordsPerFile"
_numbers = itertools.count()


@dataclass(frozen=True)
class Told:
    """What a write is told, and where: by the table, by the session, by the writer."""

    table: Mapping[str, str] = field(default_factory=dict)
    session: Mapping[str, str] = field(default_factory=dict)
    writer: Mapping[str, str] = field(default_factory=dict)


# Names of columns in options are those of the files.
_BLOOM = {"parquet.bloom.filter.enabled#Id": "true", "parquet.bloom.filter.expected.ndv#Id": "100"}
CASES: Mapping[str, Told] = {
    "nothing": Told(),
    "codec of the table": Told(table={"compression": "gzip"}),
    "codec of the session": Told(session={_CODEC: "zstd"}),
    "another name of the codec": Told(table={"parquet.compression": "zstd"}, session={_CODEC: "gzip"}),
    "both names": Told(table={"parquet.compression": "zstd", "Compression": "gzip"}),
    "no codec": Told(session={_CODEC: "gzip"}, table={"compression": "none"}),
    "codec of the writer": Told(writer={"compression": "zstd"}),
    "level of the codec": Told(table={"compression": "zstd", "parquet.compression.codec.zstd.level": "9"}),
    "row groups": Told(table={"parquet.block.size": "20000"}),
    "row groups of the session": Told(session={"parquet.block.size": "20000"}),
    "records of the table": Told(table={"maxRecordsPerFile": "700"}),
    "records of the session": Told(session={_RECORDS: "900"}),
    "records of the writer": Told(writer={"maxRecordsPerFile": "800"}),
    "Bloom filter": Told(table=_BLOOM),
    "Bloom filter of the writer": Told(writer=_BLOOM),
    "no dictionary": Told(table={"parquet.enable.dictionary": "false"}),
    "no dictionary of a column": Told(table={"parquet.enable.dictionary#Name": "false"}),
    "pages of version 2": Told(session={"parquet.writer.version": "PARQUET_2_0"}),
    "legacy layout": Told(session={"spark.sql.parquet.writeLegacyFormat": "true"}),
    "INT96": Told(session={"spark.sql.parquet.outputTimestampType": "INT96"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder)]) as client:
        yield client


@pytest.fixture(scope="module")
def database(spark: SparkSession, client: windrow.Client, folder: Path) -> Iterator[Path]:
    """A database of this session's own catalog, and a folder for tables of the coordinator."""
    spark.sql(f"CREATE DATABASE options LOCATION '{folder}/options'")
    windrow.register(spark, client)
    with session(spark, {"spark.windrow.warehouse": str(folder / "own")}):
        yield folder
    spark.sql("DROP DATABASE options CASCADE")


@contextmanager
def session(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(3000).select(
        F.col("id").alias("Id"),
        F.concat(F.lit("name "), F.col("id") % 7).alias("Name"),
        F.col("id").cast("decimal(9,2)").alias("Amount"),
        F.timestamp_micros("id").alias("At"),
    ).coalesce(1)  # fmt: skip


COLUMNS = "Id BIGINT, Name STRING, Amount DECIMAL(9,2), At TIMESTAMP"


def properties(folder: Path) -> dict[str, Any]:
    """Return what options say of files, of all files below a folder."""
    metadata = [pq.read_metadata(path) for path in folder.rglob("part-*.parquet")]
    chunks = [
        one.row_group(group).column(column)
        for one in metadata
        for group in range(one.num_row_groups)
        for column in range(one.num_columns)
    ]
    records = [one.num_rows for one in metadata]
    groups = [one.row_group(at).num_rows for one in metadata for at in range(one.num_row_groups)]
    return {
        "rows": sum(records),
        "codecs": {chunk.compression for chunk in chunks},
        "encodings": {(chunk.path_in_schema, *sorted(set(chunk.encodings))) for chunk in chunks},
        "types": {(chunk.path_in_schema, chunk.physical_type) for chunk in chunks},
        "most records": max(records),
        "one row group": max(groups) == max(records),
        "Bloom filters": {
            chunk.path_in_schema for chunk in chunks if chunk.bloom_filter_offset is not None
        },
    }


def write(told: Told, frame: DataFrame, table: str, by: str) -> None:
    """Append rows to a table of Spark's catalog."""
    if by == "INSERT":
        frame.createOrReplaceTempView("option_rows")
        frame.sparkSession.sql(f"INSERT INTO {table} SELECT * FROM option_rows")
    elif by == "insertInto":
        frame.write.options(**told.writer).insertInto(table)
    else:
        frame.write.options(**told.writer).mode("append").saveAsTable(table)


@pytest.mark.parametrize("case", a_few(list(CASES), 7))
def test_accelerated_writes_make_the_files_that_spark_makes(
    spark: SparkSession, client: windrow.Client, database: Path, case: str
) -> None:
    told, number = CASES[case], next(_numbers)
    options = ", ".join(f"'{name}' '{value}'" for name, value in told.table.items())
    by = "INSERT" if not told.writer else ("insertInto", "saveAsTable")[number % 2]
    made = {}
    for kind in ("plain", "fast"):
        table = f"options.{kind}{number}"
        spark.sql(
            f"CREATE TABLE {table} ({COLUMNS}) USING parquet {options and f'OPTIONS ({options})'}"
        )
        if kind == "fast":
            (done,) = client.import_tables(spark, table)
            assert done.outcome == "created", done.reason
        with accelerate(spark, client, f"{table}*", writes=True), session(spark, told.session):
            write(told, rows(spark), table, by)
        made[kind] = properties(database / "options" / f"{kind}{number}")

    assert made["fast"] == made["plain"]
    assert len(recent_writes(table)) == 1


@pytest.mark.parametrize("way", ["save", "writeTo", "saveAsTable", "INSERT"])
@pytest.mark.parametrize("case", a_few([one for one in CASES if not CASES[one].table], 4))
def test_own_ways_make_the_files_that_spark_makes_of_its_own(
    spark: SparkSession, database: Path, case: str, way: str
) -> None:
    told, number = CASES[case], next(_numbers)
    if way == "INSERT" and told.writer:
        pytest.skip("SQL has no options of writers")
    frame = rows(spark)
    spark.sql(f"CREATE TABLE windrow.own.t{number} ({COLUMNS})")
    with session(spark, told.session):
        frame.write.options(**told.writer).parquet(str(database / f"plain{number}"))
        if way == "save":
            writer = frame.write.format("windrow").options(**told.writer)
            writer.mode("append").save(f"own.t{number}")
        elif way == "writeTo":
            frame.writeTo(f"windrow.own.t{number}").options(**told.writer).append()
        else:
            write(told, frame, f"windrow.own.t{number}", way)

    ours = properties(database / "own" / "own" / f"t{number}")
    assert ours == properties(database / f"plain{number}")


def test_without_a_codec_new_files_have_that_of_the_newest(
    spark: SparkSession, client: windrow.Client, database: Path
) -> None:
    name = f"own.t{next(_numbers)}"
    rows(spark).writeTo(f"windrow.{name}").option("compression", "gzip").create()

    client.write(rows(spark), name)
    with session(spark, {_CODEC: "zstd"}):
        client.write(rows(spark), name)

    assert properties(database / "own" / "own" / name[4:])["codecs"] == {"GZIP", "ZSTD"}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TABLE windrow.own.z (id INT) USING windrow OPTIONS ('compression' 'gzip')", "compression"),
        ("CREATE TABLE windrow.own.z (id INT) TBLPROPERTIES ('parquet.compression' 'gzip')", "parquet.compression"),
    ],
)  # fmt: skip
def test_options_that_no_table_of_ours_keeps_are_refused_by_name(
    spark: SparkSession, database: Path, statement: str, reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        spark.sql(statement)


@pytest.mark.parametrize("name", ["codec", "orc.compress", "partitionBy", "header"])
def test_options_that_the_writer_of_parquet_does_not_have_are_refused_by_name(
    spark: SparkSession, database: Path, name: str
) -> None:
    table = f"t{next(_numbers)}"
    spark.sql(f"CREATE TABLE windrow.own.{table} ({COLUMNS})")

    with pytest.raises(Exception, match=f"no option '{name.lower()}' of writes"):
        rows(spark).write.format("windrow").option(name, "x").mode("append").save(f"own.{table}")


ORC = {
    "codec": {"orc.compress": "ZLIB"},
    "Bloom filter": {"orc.bloom.filter.columns": "Id", "orc.bloom.filter.fpp": "0.05"},
    "encodings": {"orc.dictionary.key.threshold": "1.0", "orc.column.encoding.direct": "Name"},
}


@pytest.mark.parametrize("case", a_few(list(ORC), 3))
def test_tables_of_orc_with_options_of_writers_are_accelerated_and_written_by_spark(
    spark: SparkSession, client: windrow.Client, database: Path, case: str
) -> None:
    table = f"options.orc{next(_numbers)}"
    options = ", ".join(f"'{name}' '{value}'" for name, value in ORC[case].items())
    spark.sql(f"CREATE TABLE {table} (Id BIGINT, Name STRING) USING orc OPTIONS ({options})")
    (done,) = client.import_tables(spark, table)
    assert done.outcome == "created", done.reason

    with accelerate(spark, client, f"{table}*", writes=True) as acceleration:
        rows(spark).select("Id", "Name").write.insertInto(table)
        assert spark.table(table).where("Id < 100").count() == 100
        reasons = acceleration.reasons()

    assert set(reasons) == {f"INSERT {table}"}
    assert "orc" in reasons[f"INSERT {table}"]


ORDERS: Mapping[str, tuple[str, bool]] = {
    "DISTRIBUTE BY, SORT BY": ("SELECT Id, Name FROM shuffled DISTRIBUTE BY Name SORT BY Name, Id", True),
    "one column": ("SELECT Id, Name FROM shuffled SORT BY Id", True),
    "ORDER BY": ("SELECT Id, Name FROM shuffled ORDER BY Id", True),
    "another name": ("SELECT number AS Id, Name FROM (SELECT Id AS number, Name FROM shuffled SORT BY number)", True),
    "a filter above": ("SELECT * FROM (SELECT Id, Name FROM shuffled SORT BY Id) WHERE Id > 10", True),
    "descending": ("SELECT -Id AS Id, Name FROM (SELECT Id, Name FROM shuffled) SORT BY Id NULLS LAST", True),
    "an expression": ("SELECT Id, Name FROM shuffled SORT BY Id + 1", False),
    "a column that goes": ("SELECT Id, Name FROM (SELECT Id, Name, Id + 1 AS key FROM shuffled SORT BY key)", False),
}  # fmt: skip


@pytest.mark.parametrize("case", a_few(list(ORDERS), 4))
def test_files_keep_the_order_of_the_rows_or_spark_writes_them(
    spark: SparkSession, client: windrow.Client, database: Path, case: str
) -> None:
    query, is_planned = ORDERS[case]
    number = next(_numbers)
    shuffled = spark.range(2000).selectExpr(
        "cast(pmod(hash(id), 100000) AS bigint) AS Id", "concat('n', id % 3) AS Name"
    )
    shuffled.repartition(2).createOrReplaceTempView("shuffled")
    spark.sql(f"CREATE TABLE options.sorted{number} (Id BIGINT, Name STRING) USING parquet")
    spark.sql(f"CREATE TABLE windrow.own.sorted{number} (Id BIGINT, Name STRING)")
    client.import_tables(spark, f"options.sorted{number}")

    with accelerate(spark, client, f"options.sorted{number}*", writes=True):
        spark.sql(f"INSERT INTO options.sorted{number} {query}")
    spark.sql(f"INSERT INTO windrow.own.sorted{number} {query}")

    def are_sorted(folder: Path) -> bool:
        files = [pq.read_table(path) for path in folder.rglob("part-*.parquet")]
        keys = ["Name", "Id"] if "SORT BY Name" in query else ["Id"]
        return all(
            file.equals(file.sort_by([(key, "ascending") for key in keys])) for file in files
        )

    assert are_sorted(database / "options" / f"sorted{number}")
    assert len(recent_writes(f"options.sorted{number}")) == is_planned
    if is_planned:
        assert are_sorted(database / "own" / "own" / f"sorted{number}")


@pytest.mark.parametrize("kind", ["rows", "filtered", "joined"])
def test_views_of_the_catalog_have_what_their_own_application_writes(
    spark: SparkSession, client: windrow.Client, database: Path, kind: str
) -> None:
    name = f"own.viewed{next(_numbers)}"
    spark.sql(f"CREATE TABLE windrow.{name} (id INT, ds STRING) PARTITIONED BY (ds)")
    spark.sql(f"INSERT INTO windrow.{name} VALUES (1, 'x'), (2, 'y')")
    before = spark.table(f"windrow.{name}")
    view = {
        "rows": before,
        "filtered": before.where("id > 0"),
        "joined": before.join(spark.table(f"windrow.{name}").select("ds").distinct(), "ds"),
    }[kind]
    view.createOrReplaceTempView("viewed")
    pinned = client.read(spark, name)
    versioned = spark.sql(
        f"SELECT * FROM windrow.{name} VERSION AS OF {client.table(name).current_snapshot.snapshot_id}"
    )

    ids = lambda rows: sorted(row.id for row in rows.collect())  # noqa: E731
    spark.sql(f"INSERT INTO windrow.{name} SELECT id + 10, ds FROM viewed")
    assert ids(spark.table("viewed")) == [1, 2, 11, 12]
    client.write(before.selectExpr("id + 100 AS id", "ds"), name)

    assert ids(spark.sql("SELECT id FROM viewed")) == [1, 2, 11, 12, 101, 102, 111, 112]
    assert ids(view) == ids(spark.table(f"windrow.{name}"))
    assert ids(pinned) == ids(versioned) == [1, 2]


def test_values_are_stored_alike_by_save_and_by_insert(spark: SparkSession, database: Path) -> None:
    name = f"own.stored{next(_numbers)}"
    spark.sql(
        f"CREATE TABLE windrow.{name} (id INT, amount DECIMAL(9,2), at TIMESTAMP) PARTITIONED BY (id)"
    )
    new = spark.sql("SELECT DATE'2026-11-01' AS at, 2.256D AS Amount, 7L AS ID")

    new.write.format("windrow").mode("append").save(name)
    spark.sql(f"INSERT INTO windrow.{name} SELECT Amount, at, ID FROM {{new}}", new=new)

    first, second = spark.table(f"windrow.{name}").collect()
    assert first == second
    with pytest.raises(Exception, match="'amount' is string, but decimal"):
        new.withColumn("amount", F.lit("x")).write.format("windrow").mode("append").save(name)
