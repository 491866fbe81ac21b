"""Only stable columns can be salts; others are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.laws import a_few
from windrow_spark.writing.errors import NoSaltError, UnstableColumnError
from windrow_spark.writing.lineage import lineage_of
from windrow_spark.writing.salts import check_keys, check_salts, default_salts

pytestmark = pytest.mark.spark

Made = Callable[[DataFrame], DataFrame]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(10).selectExpr(
        "id", "id % 3 AS key", "concat('n', id) AS name", "id / 3 AS share", "map('a', id) AS tags"
    )


_BY_KEY = "OVER (PARTITION BY key ORDER BY id)"


@pytest.mark.parametrize(
    ("made", "reason"),
    a_few(
        [
            (lambda df: df.withColumn("x", F.rand(7)), "`rand` differs between attempts"),
            (lambda df: df.withColumn("x", F.floor(F.rand() * 5)), "`rand` differs"),
            (lambda df: df.withColumn("x", F.expr("uuid()")), "`uuid` differs"),
            (
                lambda df: df.withColumn("x", F.monotonically_increasing_id()),
                "monotonically_increas",
            ),
            (lambda df: df.withColumn("x", F.spark_partition_id()), "`spark_partition_id` differs"),
            (lambda df: df.withColumn("x", F.input_file_name()), "`input_file_name` differs"),
            (lambda df: df.withColumn("x", F.current_timestamp()), "time of the query"),
            (lambda df: df.withColumn("x", F.current_date()), "time of the query"),
            (lambda df: df.withColumn("x", F.expr("now()")), "time of the query"),
            (lambda df: df.withColumn("x", F.col("share")), "float or double"),
            (lambda df: df.withColumn("x", F.struct("share", "id")), "float or double"),
            (lambda df: df.withColumn("x", F.col("tags")), "no hash of map"),
            (lambda df: df.withColumn("x", F.array("tags")), "no hash of array<map"),
            (
                lambda df: df.withColumn("x", F.expr(f"row_number() {_BY_KEY}")),
                "`row_number` depends",
            ),
            (lambda df: df.withColumn("x", F.expr(f"lag(id) {_BY_KEY}")), "`lag` depends"),
            (
                lambda df: df.withColumn("x", F.expr(f"first(id) {_BY_KEY}")),
                "may depend on the order",
            ),
            (
                lambda df: df.withColumn(
                    "x", F.expr("sum(id) OVER (PARTITION BY key ORDER BY id ROWS 1 PRECEDING)")
                ),
                "a window over rows",
            ),
            (lambda df: df.withColumn("x", F.udf(lambda n: n + 1, "bigint")("id")), "user-defined"),
            (lambda df: df.groupBy("key").agg(F.first("id").alias("x")), "may depend on the order"),
            (lambda df: df.groupBy("key").agg(F.last("id").alias("x")), "may depend on the order"),
            (lambda df: df.groupBy("key").agg(F.collect_list("id").alias("x")), "collect_list"),
            (
                lambda df: df.groupBy("key").agg(F.approx_count_distinct("id").alias("x")),
                "approx_count_distinct",
            ),
            (
                lambda df: df.groupBy("key").agg(F.sum("share").cast("bigint").alias("x")),
                "`sum` of double numbers differs in its last digits",
            ),
            (
                lambda df: df.dropDuplicates(["key"]).withColumnRenamed("id", "x"),
                "whichever duplicate is first",
            ),
            (
                lambda df: df.mapInPandas(lambda batches: batches, df.schema).selectExpr("id AS x"),
                "and Spark does not show how",
            ),
            (
                lambda df: df.select("id", F.explode(F.array(F.rand(), F.rand())).alias("x")),
                "`rand` differs",
            ),
            (
                lambda df: df.selectExpr("id AS x").union(df.select(F.floor(F.rand() * 5))),
                "`rand` differs",
            ),
            (
                lambda df: df.join(
                    df.selectExpr("key", "rand() AS r").withColumnRenamed("r", "x"), "key"
                ),
                "`rand` differs",
            ),
        ],
        3,
    ),
)
def test_a_column_that_may_differ_in_a_second_attempt_is_refused_with_the_reason(
    rows: DataFrame, made: Made, reason: str
) -> None:
    df = made(rows)

    with pytest.raises(UnstableColumnError, match=f"'x' cannot be a salt: .*{reason}"):
        check_salts(df, ["x"], lineage_of(df).unstable)


@pytest.mark.parametrize(
    "made",
    [
        lambda df: df.withColumn("x", F.xxhash64("name", "key")),
        lambda df: df.withColumn("y", F.rand()).withColumn("x", F.col("id") + 1),
        lambda df: df.where(F.rand() < 2).withColumn("x", F.upper("name")),
        lambda df: df.groupBy("key").agg(F.sum("id").alias("x"), F.first("name")),
        lambda df: df.groupBy("key").agg(F.countDistinct("share").alias("x")),
        lambda df: df.withColumn("x", F.expr(f"rank() {_BY_KEY}")),
        lambda df: df.withColumn("x", F.expr(f"sum(id) {_BY_KEY}")),
        lambda df: df.withColumn("x", F.date_add(F.lit("2026-11-01"), F.col("key").cast("int"))),
        lambda df: df.select("key", F.explode(F.array("id", "key")).alias("x")),
        lambda df: df.selectExpr("id AS x").union(df.select("key")),
        lambda df: df.join(df.selectExpr("key", "name AS x"), "key"),
        lambda df: df.dropDuplicates(["id"]).withColumnRenamed("id", "x").orderBy("x").limit(3),
        lambda df: df.selectExpr("(SELECT max(id) FROM range(3)) AS x"),
        lambda df: df.groupBy("key").pivot("key", [0, 1]).agg(F.count("id").alias("x"))
        .withColumnRenamed("0", "x"),
    ],
)  # fmt: skip
def test_columns_made_only_from_stable_columns_can_be_salts(rows: DataFrame, made: Made) -> None:
    df = made(rows)

    check_salts(df, ["x"], lineage_of(df).unstable)


def test_a_common_table_expression_is_examined(spark: SparkSession, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("salted_rows")

    df = spark.sql(
        "WITH a AS (SELECT id, rand() AS r FROM salted_rows), b AS (SELECT id AS i, r AS q FROM a)"
        " SELECT i, q FROM b"
    )

    assert set(lineage_of(df).unstable) == {"q"}


def test_by_default_all_stable_columns_except_partition_columns_are_salts(rows: DataFrame) -> None:
    df = rows.withColumn("x", F.rand())

    assert default_salts(df, ["key"], lineage_of(df).unstable) == ["id", "name"]


def test_without_any_stable_column_the_remedy_is_named(rows: DataFrame) -> None:
    df = rows.select("key", F.rand().alias("x"), "share")

    with pytest.raises(NoSaltError, match=r"'x': `rand` differs .*checkpoint"):
        default_salts(df, ["key"], lineage_of(df).unstable)


def test_rows_made_by_python_are_stable_once_checkpointed(rows: DataFrame) -> None:
    def same(batch: pd.DataFrame) -> pd.DataFrame:
        return batch

    made = rows.select("id").mapInPandas(lambda batches: map(same, batches), "id bigint")

    assert set(lineage_of(made).unstable) == {"id"}
    assert lineage_of(made.localCheckpoint()).unstable == {}


def test_the_current_date_can_be_a_partition_column_but_random_values_cannot(
    rows: DataFrame,
) -> None:
    df = rows.withColumn("ds", F.current_date()).withColumn("dice", F.floor(F.rand() * 6))
    unstable = lineage_of(df).unstable

    check_keys(["ds", "key"], unstable)
    with pytest.raises(UnstableColumnError, match="'dice' cannot be a partition or bucket column"):
        check_keys(["dice"], unstable)


def test_a_plan_of_many_steps_is_walked_without_recursion(rows: DataFrame) -> None:
    df = rows.select("id")
    for _ in range(120):
        df = df.where("id >= 0").withColumn("id", F.col("id") + 1)

    assert lineage_of(df).unstable == {}
