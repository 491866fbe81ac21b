"""Statements on tables of Spark's catalog become planned writes, where the rows are the same."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import examples
from tests.support.queries import random_statements as inserts
from tests.support.queries.accelerations import accelerate
from tests.support.queries.random_statements import VALUES, Statement, text_of, value_of
from tests.support.servers import embedded
from windrow.spark import recent_writes
from windrow_spark.acceleration.accelerating import Acceleration

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TABLE = "writing.events"
_MODE = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture(scope="module")
def database(spark: SparkSession, folder: Path) -> Iterator[str]:
    """A database of this session's own catalog."""
    spark.sql(f"CREATE DATABASE writing LOCATION '{folder}/writing'")
    yield "writing"
    spark.sql("DROP DATABASE writing CASCADE")


@pytest.fixture
def acceleration(
    spark: SparkSession, client: windrow.Client, database: str
) -> Iterator[Acceleration]:
    """Acceleration with writes, of an imported table with a row on one day."""
    spark.sql(f"CREATE TABLE {TABLE} (id BIGINT, ds STRING) USING parquet PARTITIONED BY (ds)")
    spark.sql(f"INSERT INTO {TABLE} VALUES (0, '2026-11-01')")
    (done,) = client.import_tables(spark, TABLE)
    assert done.outcome == "created"
    with accelerate(spark, client, "writing.*", writes=True) as acceleration:
        yield acceleration
    spark.sql(f"DROP TABLE {TABLE}")
    client.delete_table(TABLE)


def rows_of(spark: SparkSession, table: str = TABLE) -> list[tuple[int, str]]:
    return sorted(tuple(row) for row in spark.table(table).collect())


def partitions_of(spark: SparkSession, table: str = TABLE) -> list[str]:
    return sorted(row[0] for row in spark.sql(f"SHOW PARTITIONS {table}").collect())


def writes() -> int:
    return len(recent_writes(TABLE))


def test_statements_become_planned_writes_with_partitions_in_the_catalog(
    spark: SparkSession, client: windrow.Client, acceleration: Acceleration
) -> None:
    before = writes()
    spark.sql(f"INSERT INTO {TABLE} SELECT id, '2026-11-02' FROM range(1, 3)")
    assert acceleration.reasons() == {}
    assert writes() == before + 1
    assert partitions_of(spark) == ["ds=2026-11-01", "ds=2026-11-02"]
    assert rows_of(spark) == [(0, "2026-11-01"), (1, "2026-11-02"), (2, "2026-11-02")]

    spark.sql(f"INSERT OVERWRITE {TABLE} PARTITION (ds = '2026-11-02') SELECT 5L")
    assert rows_of(spark) == [(0, "2026-11-01"), (5, "2026-11-02")]

    new = spark.sql("SELECT 7L AS id, 'a/b' AS ds")
    new.write.mode("append").format("parquet").partitionBy("ds").saveAsTable(TABLE)
    spark.conf.set(_MODE, "dynamic")
    new.write.insertInto(TABLE, overwrite=True)
    spark.conf.unset(_MODE)
    assert partitions_of(spark) == ["ds=2026-11-01", "ds=2026-11-02", "ds=a%2Fb"]
    assert rows_of(spark) == [(0, "2026-11-01"), (5, "2026-11-02"), (7, "a/b")]

    spark.sql(f"INSERT OVERWRITE {TABLE} SELECT id, '' FROM range(9, 10)")
    assert partitions_of(spark) == ["ds=__HIVE_DEFAULT_PARTITION__"]
    assert rows_of(spark) == [(9, None)]
    assert writes() == before + 5, acceleration.reasons()
    assert client.read(spark, TABLE).count() == 1


def test_cached_rows_and_statistics_follow(spark: SparkSession, acceleration: Acceleration) -> None:
    spark.conf.set("spark.sql.statistics.size.autoUpdate.enabled", "true")
    spark.sql(f"CACHE TABLE {TABLE}")
    rows = spark.table(TABLE)
    assert rows.count() == 1
    spark.sql(f"INSERT INTO {TABLE} VALUES (1, '2026-11-01'), (2, '2026-11-03')")
    assert len(rows_of(spark)) == 3
    assert spark.table(TABLE).storageLevel.useMemory
    (text,) = (
        row.data_type
        for row in spark.sql(f"DESCRIBE EXTENDED {TABLE}").collect()
        if row.col_name == "Statistics"
    )
    assert int(text.split(" ")[0]) > 0
    spark.sql(f"UNCACHE TABLE {TABLE}")
    spark.conf.unset("spark.sql.statistics.size.autoUpdate.enabled")


def test_what_is_not_certain_to_be_the_same_is_left_to_spark_with_a_reason(
    spark: SparkSession, client: windrow.Client, acceleration: Acceleration, folder: Path
) -> None:
    before = writes()
    spark.sql(f"INSERT OVERWRITE {TABLE} PARTITION (ds = '2026-11-01') IF NOT EXISTS SELECT 3L")
    assert acceleration.reasons() == {f"INSERT {TABLE}": "it says IF NOT EXISTS"}
    spark.conf.set("spark.windrow.accelerate", "false")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1, '2026-11-01')")
    spark.conf.unset("spark.windrow.accelerate")
    assert "spark.windrow.accelerate" in acceleration.reasons()[f"INSERT {TABLE}"]
    spark.sql(f"ALTER TABLE {TABLE} ADD PARTITION (ds = 'far') LOCATION '{folder}/writing/far'")
    spark.sql(f"INSERT INTO {TABLE} VALUES (2, 'far')")
    assert "not in the folder of its name" in acceleration.reasons()[f"INSERT {TABLE}"]
    assert writes() == before
    assert rows_of(spark) == [(0, "2026-11-01"), (1, "2026-11-01"), (2, "far")]
    acceleration.off()
    with accelerate(spark, client, "writing.*") as reads:
        spark.sql(f"INSERT INTO {TABLE} VALUES (4, '2026-11-04')")
        assert reads.reasons() == {}
    assert writes() == before


def test_a_statement_that_fails_leaves_the_rows(
    spark: SparkSession, acceleration: Acceleration
) -> None:
    with pytest.raises(Exception, match="raised on purpose"):
        spark.sql(f"INSERT INTO {TABLE} SELECT raise_error('raised on purpose'), 'new'")
    assert rows_of(spark) == [(0, "2026-11-01")]
    assert partitions_of(spark) == ["ds=2026-11-01"]


def test_a_statement_that_fails_raises_what_sparks_own_would(
    spark: SparkSession, acceleration: Acceleration
) -> None:
    raised = []
    for accelerated in ("true", "false"):
        spark.conf.set("spark.windrow.accelerate", accelerated)
        with pytest.raises(PySparkException) as error:
            spark.sql(f"INSERT INTO {TABLE} SELECT 1 / id, 'new' FROM {TABLE}")
        raised.append((type(error.value), error.value.getCondition()))
    spark.conf.unset("spark.windrow.accelerate")
    assert raised[0] == raised[1]
    tables = [one.table for one in acceleration.decisions() if one.target == f"INSERT {TABLE}"]
    assert tables == [TABLE, None]


# Not shrunk: each step writes two tables.
@examples(4, phases=[Phase.generate])
@given(
    type_=st.sampled_from(sorted(VALUES)),
    steps=st.lists(inserts.statements, min_size=3, max_size=6),
)
def test_rows_and_partitions_are_those_that_sparks_own_writer_leaves(
    spark: SparkSession,
    client: windrow.Client,
    database: str,
    type_: str,
    steps: list[Statement],
) -> None:
    law = f"{database}.law_{uuid.uuid4().hex}"
    copy = f"{law}_copy"
    for table in (law, copy):
        spark.sql(
            f"CREATE TABLE {table} USING parquet PARTITIONED BY (p) "
            f"AS SELECT 0L AS id, CAST(null AS {type_}) AS p"
        )
    client.import_tables(spark, law)
    try:
        with accelerate(spark, client, law, writes=True) as acceleration:
            for nth, step in enumerate(steps):
                # Spark names no partition by an empty text.
                if step.kind == "partition" and value_of(step, type_) == "":
                    continue
                text = text_of(step, type_, 10 * (nth + 1))
                spark.conf.set(_MODE, "dynamic" if step.kind == "dynamic" else "static")
                for table in (law, copy):
                    # Spark itself cannot overwrite what it reads.
                    spark.table(table).localCheckpoint().createOrReplaceTempView("law_source")
                    spark.sql(text.format(t=table, s="law_source"))

                assert inserts.rows_of(spark, law) == inserts.rows_of(spark, copy), text
                assert partitions_of(spark, law) == partitions_of(spark, copy), text
                # Spark writes the copy, which is not registered.
                assert f"INSERT {law}" not in acceleration.reasons()
                keys = recent_writes(law)[0].report.keys
                if keys is not None and keys.planned_files is not None:
                    for files, planned in zip(keys.files, keys.planned_files, strict=True):
                        assert files <= planned + 1
    finally:
        spark.conf.unset(_MODE)
        spark.catalog.dropTempView("law_source")
        for table in (law, copy):
            spark.sql(f"DROP TABLE {table}")
        client.delete_table(law)
