"""The progress display of a write, and its passes over the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import a_few
from tests.support.servers import embedded
from windrow_spark.writing.lineage import lineage_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_GROUP = "spark.jobGroup.id"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[windrow.Client]:
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        client.register_table("t", str(tmp_path / "t"), partition_columns={"key": "int"})
        yield client


@pytest.mark.parametrize(
    ("progress", "is_terminal", "shown"),
    a_few([(None, True, True), (None, False, False), (False, True, False), (True, False, True)], 2),
)
def test_a_write_shows_its_phases_in_a_terminal_or_on_request(
    spark: SparkSession,
    client: windrow.Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    progress: bool | None,
    is_terminal: bool,
    shown: bool,
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if is_terminal else "0")
    rows = spark.range(100).selectExpr("id", "cast(id % 3 AS int) AS key")
    spark.sparkContext.setLocalProperty(_GROUP, "mine" if is_terminal else "")

    client.write(rows, "t", target_rows=50, progress=progress)

    err = capsys.readouterr().err
    for phase in ("counting", "writing", "checking", "moving"):
        assert (f"t: {phase}" in err) is shown
    # The caller's job group is restored, as the caller may cancel jobs by it.
    assert spark.sparkContext.getLocalProperty(_GROUP) == ("mine" if is_terminal else "")


@pytest.mark.parametrize(
    ("made", "repeatable"),
    a_few([
        (lambda df: df, True),
        (lambda df: df.withColumn("now", F.current_timestamp()), True),
        (lambda df: df.join(df.groupBy("key").agg(F.sum("id").alias("n")), "key"), True),
        (lambda df: df.mapInPandas(lambda batches: batches, df.schema).localCheckpoint(), True),
        (lambda df: df.where(F.rand() < 0.5), False),
        (lambda df: df.where(F.udf(lambda number: number > 1, "boolean")("id")), False),
        (lambda df: df.where(F.udf(lambda number: number > 1, "boolean")("id")).select("key"), False),
        (lambda df: df.withColumn("x", F.udf(lambda n: n, "bigint")("id")).drop("x"), False),
        (lambda df: df.withColumn("x", F.udf(lambda n: n, "bigint")("id")), False),
        (lambda df: df.mapInPandas(lambda batches: batches, df.schema), False),
        (lambda df: df.dropDuplicates(["key"]), False),
        (lambda df: df.limit(3), False),
        (lambda df: df.sample(0.5), False),
        (lambda df: df.rdd.map(lambda row: row).toDF(df.schema), False),
    ], 3),
)  # fmt: skip
def test_rows_are_hashed_while_counting_only_if_they_may_change_before_writing(
    spark: SparkSession,
    tmp_path: Path,
    made: Callable[[DataFrame], DataFrame],
    repeatable: bool,
) -> None:
    spark.range(9).selectExpr("id", "id % 3 AS key").write.parquet(str(tmp_path / "rows"))
    df = made(spark.read.parquet(str(tmp_path / "rows")))

    assert lineage_of(df).is_repeatable is repeatable


def test_rows_read_by_windrow_are_not_hashed_twice(
    spark: SparkSession, client: windrow.Client
) -> None:
    rows = spark.range(100).selectExpr("id", "cast(id % 3 AS int) AS key")
    client.write(rows, "t", target_rows=50)

    assert lineage_of(client.read(spark, "t").where("id > 3")).is_repeatable


def test_a_column_with_the_time_of_the_query_can_be_written(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    rows = spark.range(100).selectExpr("id", "now() AS at", "cast(id % 3 AS int) AS key")

    assert client.write(rows, "t", target_rows=50).rows == 100
    assert client.read(spark, "t").select("at").distinct().count() == 1
