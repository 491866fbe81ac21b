"""Queries of which the inventory tells the answer, or which files hold the first rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.servers import embedded
from tests.support.tables import hive
from windrow.spark import recent_scans

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COUNTS = "spark.windrow.inventory_counts"


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture(scope="module")
def days(spark: SparkSession, client: windrow.Client, folder: Path) -> str:
    """The view `days`: 60 rows on 3 days, 10 in each file; Spark's own view is `days_of_spark`."""
    location = hive.write_events(folder / "days")
    empty = location / "ds=2026-11-09"
    hive.write_file(empty / "part-0.parquet", range(0))
    client.register_table("days", str(location))
    client.refresh("days")
    client.create_view(spark, "days", "days")
    spark.read.parquet(str(location)).createOrReplaceTempView("days_of_spark")
    return "days"


def files_planned(spark: SparkSession, query: str) -> int | None:
    """Compare a query's rows with Spark's; return how many files its scan planned, if any."""
    before = recent_scans("days")[:1]
    rows = spark.sql(query.format("days")).collect()
    assert sorted(map(str, rows)) == sorted(
        map(str, spark.sql(query.format("days_of_spark")).collect())
    ), query
    now = recent_scans("days")[:1]
    return None if now == before else now[0].plan.summary.files_planned


@pytest.mark.parametrize(
    "query",
    [
        "SELECT min(ds), max(ds) FROM {}",
        "SELECT max(ds) FROM {} WHERE day(ds) < 3",
        "SELECT max(ds) FROM {} WHERE ds > '2030-01-01'",
        "SELECT DISTINCT ds FROM {}",
        "SELECT count(DISTINCT ds), min(month(ds)) FROM {} WHERE ds IS NOT NULL",
        "SELECT day, max(day) FROM (SELECT day(ds) AS day FROM {}) WHERE day > 1 GROUP BY day",
    ],
)
def test_aggregates_of_partition_columns_open_no_file(
    spark: SparkSession, days: str, query: str
) -> None:
    assert files_planned(spark, query) is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {}",
        "SELECT count(*), max(ds) FROM {} WHERE day(ds) = 2",
        "SELECT ds, count(ds) + 1 FROM {} GROUP BY ds HAVING count(*) > 5",
        "SELECT count(*) FROM {} WHERE ds = '2030-01-01'",
        "SELECT day, count(*) FROM (SELECT day(ds) AS day FROM {}) GROUP BY day",
    ],
)
def test_counts_come_from_the_inventory_only_if_the_session_accepts_that(
    spark: SparkSession, days: str, query: str
) -> None:
    assert files_planned(spark, query) is not None
    spark.conf.set(COUNTS, "true")
    try:
        assert files_planned(spark, query) is None
        # Counts of values need the files, whatever the session accepts.
        assert files_planned(spark, "SELECT count(name) FROM {}") == 7
    finally:
        spark.conf.unset(COUNTS)


def test_a_read_with_a_filter_counts_its_own_rows(
    spark: SparkSession, client: windrow.Client, days: str
) -> None:
    spark.conf.set(COUNTS, "true")
    try:
        assert client.read(spark, "days", filter="id < 15").count() == 15
    finally:
        spark.conf.unset(COUNTS)


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT count(*) FROM (SELECT id FROM {} LIMIT 7)", 1),
        ("SELECT count(*) FROM (SELECT id FROM {} WHERE day(ds) = 2 LIMIT 15)", 2),
        ("SELECT ds, id FROM {} ORDER BY ds DESC, id LIMIT 3", 3),
        ("SELECT ds, id FROM {} ORDER BY ds, id LIMIT 20", 2),
        ("SELECT ds, id FROM {} ORDER BY ds, id LIMIT 21", 4),
        ("SELECT ds, id FROM {} WHERE day(ds) > 1 ORDER BY day(ds), id LIMIT 5", 2),
        # The key is an error for the first day, which the condition leaves out.
        ("SELECT ds, id FROM {} WHERE day(ds) > 1 ORDER BY 1 / (day(ds) - 1), id LIMIT 5", 3),
        # Which partitions have the first rows depends on the rows.
        ("SELECT ds, id FROM {} WHERE id > 25 ORDER BY ds, id LIMIT 5", 4),
        ("SELECT ds, id FROM {} ORDER BY id, ds LIMIT 5", 7),
    ],
)
def test_limits_plan_only_files_that_hold_the_first_rows(
    spark: SparkSession, days: str, query: str, files: int
) -> None:
    assert files_planned(spark, query) == files


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (SELECT id FROM late)",
        "id IN (SELECT id FROM late) OR day(ds) = 9",
        "id NOT IN (SELECT id FROM early)",
        "EXISTS (SELECT 1 FROM late l WHERE l.id = t.id)",
        "NOT EXISTS (SELECT 1 FROM early e WHERE e.id = t.id)",
        "id = (SELECT max(l.id) FROM late l WHERE l.id = t.id)",
        # Spark optimizes a subquery on its own, before it makes a join of it.
        "EXISTS (SELECT 1 FROM {0} u WHERE u.id = t.id AND u.id IN (SELECT id FROM late))",
        "id IN (SELECT id FROM (SELECT id FROM {0} WHERE id IN (SELECT id FROM late) LIMIT 10))",
        "is_late(id)",
        "is_late(id) AND day(ds) = 3",
    ],
)
def test_a_limit_counts_the_rows_that_pass_whatever_spark_makes_of_the_condition(
    spark: SparkSession, days: str, condition: str
) -> None:
    spark.range(50, 60).createOrReplaceTempView("late")
    spark.range(50).createOrReplaceTempView("early")
    spark.udf.register("is_late", lambda number: number >= 50, "boolean")
    limited = f"SELECT id FROM {{0}} t WHERE {condition} LIMIT 7"

    assert len(spark.sql(limited.format(days)).collect()) == 7
    files_planned(spark, f"SELECT count(*) FROM ({limited})")


def test_the_optimizer_knows_the_size_of_the_partitions_that_pass(
    spark: SparkSession, days: str
) -> None:
    def size(query: str) -> int:
        plan = spark.sql(query)._jdf.queryExecution().optimizedPlan()
        return int(plan.stats().sizeInBytes())

    whole = size("SELECT * FROM days")
    assert 0.2 * whole < size("SELECT * FROM days WHERE day(ds) = 2") < 0.5 * whole
