"""Bucketed tables are joined and counted bucket by bucket, with Spark's own rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.laws import a_few
from tests.support.servers import embedded
from windrow_spark.errors import BucketsDifferError
from windrow_tables.errors import UnfitReadError

pytestmark = pytest.mark.usefixtures("interpreted")

SPEC = {"columns": ["id", "kind"], "count": 8}
# Ids of one side only, ids that both have several times, and null; few, so some buckets are empty.
LEFT = "SELECT int(id % 5) AS id, if(id % 7 = 0, null, string(id % 2)) AS kind, id AS l"
RIGHT = "SELECT int(id % 4 + 2) AS id, if(id % 3 = 0, null, string(id % 2)) AS kind, -id AS r"


def written(spark: SparkSession, folder: Path, name: str, query: str, count: int) -> Path:
    """Have Spark write a bucketed table, in two rounds, so that a bucket has several files."""
    for begin in (0, 30):
        rows = spark.sql(f"{query} FROM range({begin}, {begin + 30})").repartition(2)
        writer = rows.write.mode("append").bucketBy(count, "id", "kind").sortBy("id")
        writer.option("path", str(folder / name)).saveAsTable(name)
    return folder / name


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the tables `bucket_left` and `bucket_right` of Spark."""
    folder = tmp_path_factory.mktemp("buckets")
    written(spark, folder, "bucket_left", LEFT, 8)
    written(spark, folder, "bucket_right", RIGHT, 8)
    yield folder
    for name in ("bucket_left", "bucket_right"):
        spark.sql(f"DROP TABLE {name}")


@pytest.fixture(scope="module")
def client(tables: Path) -> Iterator[windrow.Client]:
    with embedded.client(tables / "state", allowed_locations=[str(tables)]) as client:
        for name in ("left", "right"):
            client.register_table(name, str(tables / f"bucket_{name}"), bucket_spec=SPEC)
            client.refresh(name)
        yield client


def rows_of(rows: DataFrame) -> list[str]:
    return sorted(map(repr, rows.select(*sorted(rows.columns)).collect()))


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize(
    "how", a_few(["inner", "left", "right", "full", "left_semi", "left_anti"], 2)
)
def test_a_join_by_bucket_has_the_rows_of_sparks_own_join_and_no_exchange(
    spark: SparkSession, client: windrow.Client, how: str
) -> None:
    ours = client.join_buckets(spark, "left", "right", how=how)
    theirs = spark.table("bucket_left").join(spark.table("bucket_right"), SPEC["columns"], how)

    assert ours.columns == theirs.columns
    assert rows_of(ours) == rows_of(theirs) != []
    assert "Exchange" not in plan_of(ours)
    assert ours.rdd.getNumPartitions() == 8


def test_rows_are_counted_by_bucket_columns_without_an_exchange(
    spark: SparkSession, client: windrow.Client
) -> None:
    ours = client.read_buckets(spark, "left", filter="id < 4", columns=["kind", "id"])
    counted = ours.groupBy("id", "kind").count()

    theirs = spark.table("bucket_left").where("id < 4").groupBy("id", "kind").count()
    assert rows_of(counted) == rows_of(theirs)
    assert "Exchange" not in plan_of(counted)
    assert rows_of(client.join_buckets(spark, "left", "left", how="left_semi")) == rows_of(
        spark.table("bucket_left").where("kind IS NOT NULL")
    )


def test_tables_that_are_bucketed_differently_are_not_joined_by_bucket(
    spark: SparkSession, client: windrow.Client, tables: Path
) -> None:
    client.register_table("other", str(tables / "bucket_left"), bucket_spec=SPEC | {"count": 9})
    client.register_table("none", str(tables / "bucket_left"))

    with pytest.raises(BucketsDifferError, match="'other' 9 buckets by id, kind"):
        client.join_buckets(spark, "left", "other")
    with pytest.raises(BucketsDifferError, match="joined on id bucket by bucket"):
        client.join_buckets(spark, "left", "right", on=["id"])
    with pytest.raises(UnfitReadError, match="'none' has no buckets"):
        client.join_buckets(spark, "left", "none")
    with pytest.raises(UnfitReadError, match="'kind', a bucket column"):
        client.read_buckets(spark, "left", columns=["id"])


def test_a_row_in_the_wrong_bucket_fails_the_query(
    spark: SparkSession, client: windrow.Client, tables: Path
) -> None:
    # The names that Hive gives its files, whose buckets come from another hash.
    folder = tables / "hive"
    folder.mkdir()
    for number, file in enumerate(sorted((tables / "bucket_left").glob("part-*.parquet"))):
        (folder / f"{number % 8:06d}_0_copy_{number}").write_bytes(file.read_bytes())
    client.register_table("hive", str(folder), bucket_spec=SPEC)
    client.refresh("hive")

    with pytest.raises(PySparkException, match="table hive has a row whose bucket is not"):
        client.join_buckets(spark, "hive", "right").collect()


def test_files_without_a_bucket_number_are_read_with_a_warning_and_a_shuffle(
    spark: SparkSession, client: windrow.Client, tables: Path
) -> None:
    folder = tables / "loose"
    folder.mkdir()
    for number, file in enumerate((tables / "bucket_left").glob("part-*.parquet")):
        (folder / f"x{number}.parquet").write_bytes(file.read_bytes())
    client.register_table("loose", str(folder), bucket_spec=SPEC)
    client.refresh("loose")

    with pytest.warns(UserWarning, match="the bucket of some files is not known"):
        ours = client.join_buckets(spark, "loose", "right")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows_of(ours) == rows_of(client.join_buckets(spark, "left", "right"))


def test_tables_are_joined_by_bucket_on_older_spark_as_well(
    on_older_sparks: list[dict[str, Any]],
) -> None:
    for older in on_older_sparks:
        joined = older["joined"]
        assert joined["rows"] == joined["expected"] != [], older["version"]
        assert not joined["shuffles"], older["version"]
