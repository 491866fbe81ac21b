"""Joins and aggregations of bucketed tables in plain SQL, which need no shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import a_few
from tests.support.servers import embedded
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture(scope="module")
def tables(spark: SparkSession, client: windrow.Client, folder: Path) -> Iterator[None]:
    """Views `orders` and `customers`, of Spark's tables `spark_orders` and `spark_customers`."""
    for name, rows, step in (("orders", 400, 3), ("customers", 300, 2)):
        frame = spark.range(rows).selectExpr(
            f"id * {step} AS id", "id % 7 AS kind", "id % 3 AS day"
        )
        location = folder / name
        frame.repartition(2).write.partitionBy("day").bucketBy(4, "id").option(
            "path", str(location)
        ).saveAsTable(f"spark_{name}")
        client.register_table(name, str(location), bucket_spec={"columns": ["id"], "count": 4})
        client.refresh(name)
        client.create_view(spark, name, name)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    for name in ("orders", "customers"):
        spark.sql(f"DROP TABLE spark_{name}")


def compared(spark: SparkSession, query: str) -> tuple[int, int]:
    """Compare a query's rows with Spark's; return the number of exchanges in both plans."""
    exchanges = []
    rows = []
    for prefix in ("", "spark_"):
        frame = spark.sql(query.format(o=f"{prefix}orders", c=f"{prefix}customers"))
        rows.append(sorted(map(str, frame.collect())))
        plan = frame._jdf.queryExecution().executedPlan().toString()
        exchanges.append(plan.partition("== Initial Plan ==")[0].count("Exchange"))
    assert rows[0] == rows[1], query
    return exchanges[0], exchanges[1]


@pytest.mark.parametrize("adaptive", a_few(["true", "false"], 2))
@pytest.mark.parametrize(
    ("query", "exchanges"),
    [
        ("SELECT o.id, c.kind FROM {o} o JOIN {c} c ON o.id = c.id", 0),
        ("SELECT o.id, max(c.kind) FROM {o} o LEFT JOIN {c} c ON o.id = c.id GROUP BY o.id", 0),
        ("SELECT id, day, count(*) FROM {o} WHERE day < 2 GROUP BY id, day", 0),
        ("SELECT id FROM {o} WHERE day = 9 GROUP BY id", 0),
        ("SELECT kind, count(*) FROM {o} GROUP BY kind", 1),
        ("SELECT o.id FROM {o} o JOIN {c} c ON o.id = c.id + 1 AND o.kind = c.kind", 2),
    ],
)
def test_bucketed_tables_need_no_more_exchanges_than_sparks_own(
    spark: SparkSession, tables: None, query: str, exchanges: int, adaptive: str
) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        ours, theirs = compared(spark, query)
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert ours == exchanges
    assert ours <= theirs


def test_rows_in_wrong_buckets_fail_the_query_and_name_the_remedy(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "wrong"
    spark.range(100).write.bucketBy(4, "id").option("path", str(location)).saveAsTable("right")
    spark.sql("DROP TABLE right")
    files = sorted(location.glob("part-*.parquet"))
    swapped = files[0].with_name(files[0].name.replace("_00000", "_00001"))
    files[0].rename(swapped.with_name("part-x_00001.c000.snappy.parquet"))
    client.register_table("wrong", str(location), bucket_spec={"columns": ["id"], "count": 4})
    client.refresh("wrong")
    client.create_view(spark, "wrong", "wrong")
    query = "SELECT id, count(*) FROM wrong GROUP BY id"

    with pytest.raises(TaskFailedError, match=r"bucketing\.enabled=false"), plain_errors():
        spark.sql(query).collect()
    spark.conf.set("spark.sql.sources.bucketing.enabled", "false")
    try:
        assert len(spark.sql(query).collect()) == 100
    finally:
        spark.conf.unset("spark.sql.sources.bucketing.enabled")


def test_files_that_spark_did_not_name_are_shuffled(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "hive"
    spark.range(100).repartition(2).write.parquet(str(location))
    for number, file in enumerate(sorted(location.glob("part-*.parquet"))):
        file.rename(location / f"{number:06}_0.parquet")
    client.register_table("of_hive", str(location), bucket_spec={"columns": ["id"], "count": 2})
    client.refresh("of_hive")
    client.create_view(spark, "of_hive", "of_hive")

    rows = spark.sql("SELECT id, count(*) FROM of_hive GROUP BY id")
    assert len(rows.collect()) == 100
    assert "Exchange" in rows._jdf.queryExecution().executedPlan().toString()
