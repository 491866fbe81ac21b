"""Statements of Spark's create tables: registered, written as planned, or not there at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import windrow
from windrow.spark import recent_writes
from windrow_core.models import PublishedSnapshot
from windrow_tables.commits import TableWrite

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

ROWS = "SELECT id, date_add(DATE'2026-11-01', CAST(id % 2 AS INT)) AS ds FROM range(6)"
NEW = "windrow.made.new"


@pytest.fixture
def root(
    spark: SparkSession, client: windrow.Client, folder: Path, tmp_path: Path
) -> Iterator[Path]:
    """The folder for new tables, in which nothing is left afterwards."""
    windrow.register(spark, client)
    root = folder / tmp_path.name
    root.mkdir()
    spark.conf.set("spark.windrow.warehouse", str(root))
    yield root
    spark.conf.unset("spark.windrow.warehouse")
    for table in list(client.tables()):
        client.delete_table(table.name)


def ids(spark: SparkSession, table: str = NEW) -> list[int]:
    return sorted(row.id for row in spark.table(table).select("id").collect())


def test_a_query_makes_a_table(spark: SparkSession, client: windrow.Client, root: Path) -> None:
    spark.sql(f"CREATE TABLE {NEW} USING windrow PARTITIONED BY (ds) AS {ROWS}")

    assert ids(spark) == [0, 1, 2, 3, 4, 5]
    table = client.table("made.new")
    assert table.definition.location == str(root / "made" / "new")
    assert [column.name for column in table.definition.partition_columns or ()] == ["ds"]
    assert recent_writes("made.new")[0].report.files == 2
    spark.sql(f"INSERT INTO {NEW} VALUES (7, DATE'2026-11-03')")
    assert ids(spark) == [0, 1, 2, 3, 4, 5, 7]


def test_a_table_is_there_with_its_rows_and_not_before(
    spark: SparkSession,
    client: windrow.Client,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = TableWrite.commit
    looks: list[Any] = []

    def look_first(write: TableWrite, *arguments: Any, **more: Any) -> PublishedSnapshot:
        looks.append([row[0] for row in spark.sql("SHOW NAMESPACES IN windrow").collect()])
        for statement in (
            f"SELECT * FROM {NEW}",
            f"CREATE TABLE {NEW} PARTITIONED BY (ds) AS {ROWS}",
        ):
            with pytest.raises(
                Exception, match=r"no snapshot yet|another statement is creating it"
            ):
                spark.sql(statement)
        return commit(write, *arguments, **more)

    monkeypatch.setattr(TableWrite, "commit", look_first)
    spark.sql(f"CREATE TABLE {NEW} PARTITIONED BY (ds) AS {ROWS}")

    assert looks == [["default"]]
    assert ids(spark) == [0, 1, 2, 3, 4, 5]
    assert [one.file_count for one in client.snapshots("made.new")] == [2]
    monkeypatch.undo()
    spark.sql(f"CREATE TABLE windrow.made.empty PARTITIONED BY (ds) AS {ROWS} LIMIT 0")
    assert ids(spark, "windrow.made.empty") == []
    spark.sql("CREATE OR REPLACE TABLE windrow.made.bare (id BIGINT)")
    assert ids(spark, "windrow.made.bare") == []


def test_a_name_is_taken_again_only_by_the_statement_whose_driver_died(
    spark: SparkSession, client: windrow.Client, root: Path
) -> None:
    # All that a driver leaves that dies before it writes.
    location = root / "made" / "new"
    location.mkdir(parents=True)
    client.register_table(
        "made.new", str(location), columns={"id": "bigint"}, partition_columns={"ds": "date"}
    )

    with pytest.raises(Exception, match=r"client\.delete_table\('made\.new'\) frees the name"):
        spark.sql(f"CREATE TABLE {NEW} AS {ROWS}")
    spark.range(6).selectExpr("id", "DATE'2026-11-01' AS ds").write.partitionBy("ds").saveAsTable(
        NEW, format="windrow"
    )
    assert ids(spark) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql(f"CREATE TABLE {NEW} PARTITIONED BY (ds) AS {ROWS}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {NEW} PARTITIONED BY (ds) AS {ROWS}")
    assert ids(spark) == [0, 1, 2, 3, 4, 5]


def test_a_table_lies_where_the_statement_says(
    spark: SparkSession, client: windrow.Client, root: Path
) -> None:
    spark.conf.unset("spark.windrow.warehouse")
    location = root / "elsewhere"

    spark.sql(f"CREATE TABLE {NEW} (id BIGINT, ds DATE) PARTITIONED BY (ds) LOCATION '{location}'")
    spark.sql(f"INSERT INTO {NEW} {ROWS}")

    assert ids(spark) == [0, 1, 2, 3, 4, 5]
    assert client.table("made.new").definition.location == str(location)
    # The same folder once more: its rows are there.
    spark.sql(
        f"CREATE TABLE windrow.made.again (id BIGINT, ds DATE) PARTITIONED BY (ds) "
        f"LOCATION '{location}'"
    )
    assert ids(spark, "windrow.made.again") == [0, 1, 2, 3, 4, 5]


# tests/spark/test_inserts.py creates tables by writers every day.
@pytest.mark.nightly
def test_writers_create_and_replace_tables(
    spark: SparkSession, client: windrow.Client, root: Path
) -> None:
    rows = spark.sql(ROWS)

    rows.writeTo("windrow.made.v2").using("windrow").partitionedBy(F.col("ds")).create()
    rows.write.format("windrow").partitionBy("ds").saveAsTable(NEW)
    assert ids(spark, "windrow.made.v2") == ids(spark) == [0, 1, 2, 3, 4, 5]

    rows.where("id > 3").write.format("windrow").partitionBy("ds").mode("overwrite").option(
        "target_rows", "1"
    ).saveAsTable(NEW)
    assert ids(spark) == [4, 5]
    assert recent_writes("made.new")[0].options == {"target_rows": 1}
    spark.sql(f"CREATE OR REPLACE TABLE {NEW} PARTITIONED BY (ds) AS {ROWS}")
    assert ids(spark) == [0, 1, 2, 3, 4, 5]
    rows.where("id < 0").write.format("windrow").partitionBy("ds").mode("overwrite").saveAsTable(
        NEW
    )
    assert ids(spark) == []


def test_a_query_that_fails_leaves_neither_a_table_nor_a_folder(
    spark: SparkSession, client: windrow.Client, root: Path
) -> None:
    fail = F.udf(lambda id_: 1 // (id_ - 3), LongType())
    spark.range(6).select(fail("id").alias("id")).createOrReplaceTempView("failing")

    with pytest.raises(Exception, match="ZeroDivisionError"):
        spark.sql(f"CREATE TABLE {NEW} AS SELECT * FROM failing")

    assert not list(client.tables())
    assert not list(root.iterdir())
    spark.sql(f"CREATE TABLE {NEW} AS {ROWS}")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        spark.sql(
            f"CREATE OR REPLACE TABLE {NEW} AS SELECT id, DATE'2026-11-01' AS ds FROM failing"
        )
    assert ids(spark) == [0, 1, 2, 3, 4, 5]
    spark.catalog.dropTempView("failing")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"CREATE TABLE {NEW} (id BIGINT NOT NULL)", "'id' is NOT NULL"),
        (f"CREATE TABLE {NEW} (id BIGINT, v VARCHAR(3))", r"'v' is VARCHAR\(3\), whose length"),
        (f"CREATE TABLE {NEW} (id BIGINT) USING orc", "its files are Parquet, not orc"),
        (f"CREATE TABLE {NEW} (id BIGINT) TBLPROPERTIES (a = 'b')", "no property 'a'"),
        (
            f"CREATE TABLE {NEW} (id BIGINT) CLUSTERED BY (id) INTO 4 BUCKETS",
            "by more than columns",
        ),
        (f"CREATE TABLE {NEW} (id BIGINT) LOCATION '/nowhere'", "/nowhere"),
        (f"CREATE TABLE {NEW} (id BIGINT) LOCATION 'hdfs://host/t'", "only on local paths"),
        (f"CREATE TABLE {NEW} LOCATION '{{full}}' AS SELECT 1 AS id", "is not empty"),
    ],
)
def test_what_a_table_cannot_have_is_refused_by_name(
    spark: SparkSession, client: windrow.Client, root: Path, statement: str, words: Any
) -> None:
    (root / "full").mkdir()
    (root / "full" / "file").touch()

    with pytest.raises(Exception, match=words):
        spark.sql(statement.format(full=root / "full"))

    assert not list(client.tables())
    assert [path.name for path in root.iterdir()] == ["full"]


def test_a_table_of_other_columns_is_not_replaced(
    spark: SparkSession, client: windrow.Client, root: Path
) -> None:
    spark.sql(f"CREATE TABLE {NEW} PARTITIONED BY (ds) AS {ROWS}")

    for statement in (
        f"CREATE OR REPLACE TABLE {NEW} AS {ROWS}",
        f"CREATE OR REPLACE TABLE {NEW} PARTITIONED BY (ds) AS SELECT id AS i, ds FROM ({ROWS})",
    ):
        with pytest.raises(Exception, match="are others than those of the new rows"):
            spark.sql(statement)
    with pytest.raises(Exception, match="has deleted nothing"):
        spark.sql(f"CREATE OR REPLACE TABLE {NEW} (id BIGINT, ds DATE) PARTITIONED BY (ds)")
    assert ids(spark) == [0, 1, 2, 3, 4, 5]


def test_without_a_folder_for_new_tables_the_error_names_the_setting(
    spark: SparkSession, client: windrow.Client, root: Path
) -> None:
    spark.conf.unset("spark.windrow.warehouse")

    with pytest.raises(Exception, match=r"LOCATION, or SET spark\.windrow\.warehouse"):
        spark.sql(f"CREATE TABLE {NEW} AS {ROWS}")
    assert not list(client.tables())
