"""Tables read without Spark have the rows that Spark reads, for every format and every oddity."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.tables.acid_tables import AcidTable, random_history
from tests.support.tables.delta_tables import PUBLISHED
from tests.support.tables.iceberg import published_table
from windrow_tables.errors import OnlySparkReadsError
from windrow_tables.executor.errors import OldTimeError

pytestmark = pytest.mark.usefixtures("interpreted")

ODD = """
    SELECT id,
      CAST(id % 100 AS TINYINT) AS tiny, CAST(id AS SMALLINT) AS small,
      CAST(id / 3 AS FLOAT) AS real, CAST(id / 7 AS DOUBLE) AS wide,
      CAST(id * 1.01 AS DECIMAL(9, 2)) AS money,
      CAST('12345678901234567890123456789.123456789' AS DECIMAL(38, 9)) + id AS large,
      CAST(CAST(id AS STRING) AS BINARY) AS bytes, CAST(id % 2 AS BOOLEAN) AS flag,
      DATE'1582-10-15' + CAST(id AS INT) * 100 AS day,
      TIMESTAMP'1969-12-31 23:59:59.999999' + make_interval(0, 0, 0, id) AS at,
      CAST(DATE'2026-11-01' + CAST(id AS INT) AS TIMESTAMP_NTZ) AS local,
      IF(id % 3 = 0, NULL, 'é' || id) AS text,
      IF(id % 4 = 0, NULL, array(id, NULL)) AS list,
      IF(id % 5 = 0, NULL, named_struct('a', id, 'B c', named_struct('d', 'x'))) AS nest,
      map(CAST(id AS STRING), id / 2) AS pairs,
      element_at(array('a/b', 'ü %=', ' ', NULL, '1'), CAST(id % 5 AS INT) + 1) AS part,
      IF(id % 2 = 0, NULL, DATE'1582-10-15') AS ds
    FROM range(40)
"""
CONDITIONS = [
    "id > 11 AND money < 30.5",
    "text IS NULL OR large > 12345678901234567890123456800",
    "day < DATE'1600-01-01' AND flag = false",
    "at >= TIMESTAMP'1970-01-05 00:00:00Z' AND real <= 10.3",
    "text LIKE 'é1%' AND ds IS NULL",
    "part IN ('a/b', 'ü %=') OR part IS NULL",
]


def cells(rows: pa.Table) -> list[str]:
    """Return rows as texts that do not depend on their order, nor on the zone of instants."""
    schema = pa.schema(
        [
            field.with_type(pa.timestamp("us", "UTC"))
            if pa.types.is_timestamp(field.type) and field.type.tz is not None
            else field
            for field in rows.schema
        ]
    )
    return sorted(repr(list(row.values())) for row in rows.cast(schema).to_pylist())


def assert_same(client: windrow.Client, name: str, theirs: DataFrame, **options: Any) -> None:
    scan = client.scan(name, **options)
    expected = theirs.select(*(f"`{column}`" for column in scan.schema.names)).toArrow()

    assert scan.schema.names
    assert cells(scan.to_table()) == cells(expected)
    parts = [split.read() for split in scan.splits(3)]
    assert cells(pa.concat_tables(parts)) == cells(expected)


@pytest.mark.parametrize("format_", ["parquet", pytest.param("orc", marks=pytest.mark.nightly)])
def test_odd_values_and_evolved_columns_are_read_as_by_spark(
    spark: SparkSession, client: windrow.Client, folder: Path, format_: str
) -> None:
    name, is_orc = f"odd_{format_}", format_ == "orc"
    location = str(folder / name)
    odd = spark.sql(ODD)
    odd.repartition(3).write.partitionBy("part", "ds").format(format_).save(location)
    # Files that lack columns, and that have other types and names in another case.
    other_id = "id AS ID" if is_orc else "CAST(id AS INT) AS ID"
    more = odd.selectExpr(other_id, "tiny", "upper(text) AS Text", "part", "ds")
    more.write.mode("append").partitionBy("part", "ds").format(format_).save(location)
    client.register_table(name, location=location, format=format_)
    client.refresh(name)
    theirs = spark.read.schema(odd.schema).format(format_).load(location)

    columns = [column for column in odd.columns if not (is_orc and column == "at")]
    assert_same(client, name, theirs, columns=columns)
    for text in CONDITIONS:
        if not is_orc or "at" not in text.split():
            assert_same(client, name, theirs.where(text), filter=text, columns=["id", "text"])
    if is_orc:
        with pytest.raises(OnlySparkReadsError, match=r"file 'part=.*leave the column out"):
            client.scan(name, columns=["at"])


def test_times_of_old_writers_are_read_as_by_spark_or_refused_by_name(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    settings = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    }
    for setting, value in settings.items():
        spark.conf.set(setting, value)
    try:
        days = "DATE'1200-01-01' + CAST(id AS INT) * 20000 AS day"
        times = "TIMESTAMP'2020-01-01 00:00:00' + make_interval(0, 0, 0, id) AS at"
        location = folder / "old_times"
        spark.range(9).selectExpr("id", days, times).write.parquet(str(location / "k=1"))
        spark.range(1).selectExpr("id", "TIMESTAMP'1700-01-01 00:00:00' AS at").write.parquet(
            str(location / "k=2")
        )
    finally:
        for setting in settings:
            spark.conf.unset(setting)
    client.register_table("old_times", location=str(location))
    client.refresh("old_times")

    theirs = spark.read.parquet(str(location)).where("k = 1")
    assert_same(client, "old_times", theirs, filter="k = 1")
    with pytest.raises(OldTimeError, match=r"k=2/.*time zone .*rewrite the file with Spark"):
        client.scan("old_times").to_table()


@pytest.mark.parametrize("name", ["vectors", "inline-vectors", "mapped-by-id", "type-widening"])
def test_delta_tables_are_read_as_by_the_grouped_reader(
    spark: SparkSession, client: windrow.Client, folder: Path, name: str
) -> None:
    location = folder / name
    shutil.copytree(PUBLISHED / name, location)
    client.register_table(name, location=str(location), format="delta")
    client.refresh(name)

    assert_same(client, name, client.read(spark, name, reader="grouped"))


@pytest.mark.parametrize(
    "name",
    [
        "iceberg_migrated_alter_test",
        "iceberg_v2_partitioned_position_deletes",
        "iceberg_v3_default_value",
        "iceberg_v3_row_lineage",
    ],
)
def test_iceberg_tables_are_read_as_by_the_grouped_reader(
    spark: SparkSession, client: windrow.Client, folder: Path, name: str
) -> None:
    client.register_table(name, str(published_table(name, folder)), "iceberg")
    client.refresh(name)

    assert_same(client, name, client.read(spark, name, reader="grouped"))


def test_transactional_tables_are_read_as_by_the_grouped_reader(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    table = AcidTable(folder / "scanned_acid", ["ds=1/", "ds=2/"], buckets=2)
    random_history(table, random.Random(5), 30)
    client.register_table("scanned_acid", str(table.location), "orc", transactional="full")
    client.refresh("scanned_acid", valid_write_ids=table.now().text)

    assert client.plan("scanned_acid").summary.delete_opens
    assert_same(client, "scanned_acid", client.read(spark, "scanned_acid", reader="grouped"))
