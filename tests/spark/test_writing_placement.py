"""Rows are placed and staged as planned, judged by the files and by Spark's bucketed reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.plans.write_plans import exact_keys, plan_of, table_of
from windrow_core.models import BucketSpec, KeyFiles
from windrow_spark.writing import place, stage
from windrow_spark.writing.placing import int_with_hash

pytestmark = pytest.mark.spark

_COLUMNS = {"day": "date", "region": "string", "hour": "int"}
_DAYS = (None, "2026-11-01", "2026-11-02")
_REGIONS = (None, "de", "fr")
_HOURS = (None, 7, 8)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """5,000 rows with 27 planned keys and the unplanned region `unseen`; some regions are empty."""
    id_ = F.col("id")
    made = spark.range(5_000).select(
        "id",
        (id_ * 7919 % 5_003).alias("value"),
        F.when(id_ % 3 != 0, F.expr("date_add(date'2026-10-31', cast(id % 3 AS int))")).alias(
            "day"
        ),
        F.when(id_ % 50 == 0, "unseen")
        .when(id_ % 7 < 2, "de")
        .when(id_ % 7 < 5, "fr")
        .when(id_ % 7 == 5, "")
        .alias("region"),
        F.when(id_ % 5 < 2, 7).when(id_ % 5 < 4, 8).alias("hour"),
    )
    return made.cache()


def all_keys() -> tuple[KeyFiles, int]:
    keys = [(day, region, hour) for day in _DAYS for region in _REGIONS for hour in _HOURS]
    return exact_keys(_COLUMNS, {key: 1 + at % 4 for at, key in enumerate(keys)})


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_every_row_goes_to_the_task_of_the_exact_plan(
    spark: SparkSession, rows: DataFrame, adaptive: str
) -> None:
    keys, tasks = all_keys()
    plan = plan_of("exact", tasks, _COLUMNS, keys=keys)

    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        placed = place(rows, plan)
        found = placed.select(
            "*", F.spark_partition_id().alias("task"), F.xxhash64("id").alias("hash")
        ).collect()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before)

    planned = {
        key: (first, files)
        for *key_, first, files in zip(*keys.values, keys.first_task, keys.files, strict=True)
        for key in [tuple(key_)]
    }
    assert placed.columns == rows.columns
    assert sorted(row.id for row in found) == list(range(5_000))
    seen = 0
    for row in found:
        key = (None if row.day is None else str(row.day), row.region or None, row.hour)
        if row.region != "unseen":
            first, files = planned[key]
            assert row.task == first + row.hash % files
            seen += 1
    assert 4_000 < seen < 5_000


def test_each_of_many_keys_goes_to_its_task(spark: SparkSession) -> None:
    count, tasks = 3_000, 20
    values = [*range(count - 1), None]
    first = [number * 7 % tasks for number in range(count)]
    columns = {"k": "bigint"}
    keys = exact_keys(columns, {(value,): 1 for value in values})[0]
    plan = plan_of("exact", tasks, columns, keys=keys.model_copy(update={"first_task": first}))
    rows = spark.range(count).select(F.when(F.col("id") < count - 1, F.col("id")).alias("k"))

    placed = place(rows, plan).select("k", F.spark_partition_id().alias("task")).collect()

    assert {row.k: row.task for row in placed} == dict(zip(values, first, strict=True))
    assert len(placed) == count


def test_older_spark_gets_ints_that_hash_to_the_tasks(spark: SparkSession) -> None:
    tasks = [*range(300), 2**31 - 1, 2**31, 2**32 - 1]

    ints = spark.createDataFrame([(int_with_hash(task), task) for task in tasks], "v int, t bigint")
    placed = ints.select(F.hash("v").alias("h"), "t").collect()

    assert [row.h % 2**32 for row in placed] == [row.t for row in placed]


@pytest.mark.parametrize(
    ("scheme", "salts"),
    [
        ("coalesce", None),
        ("repartition", None),
        ("columns", None),
        ("salted", 2),
        ("range_hash", None),
        ("exact", None),
    ],
)
def test_every_scheme_keeps_all_rows_and_their_order(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, scheme: str, salts: int | None
) -> None:
    keys, tasks = exact_keys({"hour": "int"}, {(7,): 3, (8,): 2})
    plan = plan_of(
        scheme,
        tasks,
        {"hour": "int"},
        salts=salts,
        keys=keys if scheme == "exact" else None,
    )
    table = table_of(str(tmp_path / "table"), sort_columns=[{"name": "value", "descending": True}])

    stage(rows, plan, table, str(tmp_path / "staged"))

    files = [path for path in (tmp_path / "staged").rglob("*") if path.is_file()]
    ids: Counter[int] = Counter()
    for file in files:
        columns = pq.ParquetFile(file).read()
        assert columns.column_names == ["id", "value", "day", "region"]
        assert columns["value"].to_pylist() == sorted(columns["value"].to_pylist(), reverse=True)
        ids.update(columns["id"].to_pylist())
    assert ids == Counter(range(5_000))


@pytest.mark.parametrize("scheme", ["exact", "columns"])
def test_spark_reads_staged_buckets_as_its_own(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, scheme: str
) -> None:
    spec = BucketSpec(columns=["id", "region"], count=2)
    table = table_of(str(tmp_path), bucket_spec=spec, sort_columns=[{"name": "id"}])
    staged = tmp_path / "staged"
    columns = {"day": "date"}
    if scheme == "exact":
        keys, tasks = exact_keys(
            columns, {(day, b): 1 + b for day in _DAYS for b in range(2)}, bucketed=True
        )
        plan = plan_of("exact", tasks, columns, keys=keys)
    else:
        plan = plan_of("columns", 5, columns)

    stage(rows, plan, table, str(staged))

    own = tmp_path / "own"
    writer = rows.limit(0).write.partitionBy("day").bucketBy(2, "id", "region").sortBy("id")
    name = f"buckets_{scheme}"
    writer.option("path", str(own)).saveAsTable(name)
    try:
        spark.sql(f"ALTER TABLE {name} SET LOCATION 'file://{staged}'")
        spark.catalog.recoverPartitions(name)
        read = spark.table(name).select("id", F.input_file_name().alias("file"))
        named = spark.table(name).select(
            F.pmod(F.hash("id", "region"), F.lit(2)).alias("bucket"),
            F.regexp_extract(F.input_file_name(), r"_(\d{5})\.c000", 1).cast("int").alias("named"),
        )
        counted = spark.table(name).groupBy("id", "region").count()
        assert sorted(row.id for row in read.collect()) == list(range(5_000))
        assert named.where("bucket != named OR named IS NULL").count() == 0
        # Spark trusts the buckets, so it groups rows without a shuffle.
        assert counted.where("count = 1").count() == 5_000
        assert "Exchange" not in counted._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_an_unpartitioned_write_without_rows_leaves_no_file(
    rows: DataFrame, tmp_path: Path
) -> None:
    stage(rows.limit(0), plan_of("repartition", 3, {}), table_of(str(tmp_path)), f"{tmp_path}/new")

    assert [path for path in (tmp_path / "new").rglob("*") if path.is_file()] == []


def test_new_files_get_the_codec_of_the_tables_newest_file(rows: DataFrame, tmp_path: Path) -> None:
    location = tmp_path / "table"
    plain = rows.select("id", "day")
    plain.write.option("compression", "gzip").partitionBy("day").parquet(str(location))

    stage(plain, plan_of("columns", 2, {"day": "date"}), table_of(str(location)), f"{tmp_path}/new")

    for file in (tmp_path / "new").rglob("*.parquet"):
        assert pq.read_metadata(file).row_group(0).column(0).compression == "GZIP"
