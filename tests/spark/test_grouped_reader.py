"""The grouped reader on a real Spark returns the same rows as Spark's own reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import CALL_COMMAND_NAME
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.laws import a_few
from tests.support.plans.plans import plan_of
from windrow.spark import read_plan
from windrow_core.models import SortColumn
from windrow_spark.placement import placed
from windrow_tables.groups.descriptors import Descriptor

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


def rows_of(df: DataFrame) -> list[str]:
    # As text, so that NaN equals itself and rows with maps and nulls can be sorted.
    return sorted(map(repr, df.collect()))


def types_of(df: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in df.schema}


def assert_same(grouped: DataFrame, expected: DataFrame) -> None:
    assert types_of(grouped) == types_of(expected)
    assert rows_of(grouped) == rows_of(expected)


def write_small_files(spark: SparkSession, folder: Path, file_count: int = 40) -> DataFrame:
    """Write flights of a few days, one file per day and origin."""
    df = spark.range(400).select(
        "id",
        (F.col("id") * 1.5).alias("delay"),
        F.when(F.col("id") % 7 != 0, F.concat(F.lit("é"), F.col("id"))).alias("name"),
        (F.floor(F.col("id") / 2) % (file_count // 2)).cast("int").alias("day"),
        F.when(F.col("id") % 2 == 0, F.lit("J F/K=%")).alias("origin"),
    )
    df.coalesce(1).write.partitionBy("day", "origin").parquet(str(folder))
    return spark.read.parquet(str(folder))


DAY_AND_ORIGIN = {"day": "int", "origin": "string"}
SMALL = {"id": "bigint", "delay": "double", "name": "string"}


def test_many_small_partitioned_files_are_read_as_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = write_small_files(spark, tmp_path / "t")
    plan, groups = plan_of(tmp_path / "t", SMALL, partition=DAY_AND_ORIGIN, group_count=3)

    grouped = read_plan(spark, plan, groups)

    assert grouped.rdd.getNumPartitions() == 3
    assert_same(grouped, expected)


@pytest.mark.parametrize(
    "asked", [("origin", "id"), ("name",), ("day",), ("origin", "day")], ids=",".join
)
def test_columns_are_returned_in_the_requested_order(
    spark: SparkSession, tmp_path: Path, asked: Sequence[str]
) -> None:
    expected = write_small_files(spark, tmp_path / "t")
    plan, groups = plan_of(tmp_path / "t", SMALL, partition=DAY_AND_ORIGIN, asked=asked)

    grouped = read_plan(spark, plan, groups)

    assert_same(grouped, expected.select(*asked))


def test_a_plan_without_groups_is_an_empty_dataframe_of_the_right_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan, groups = plan_of(tmp_path, {"a": "decimal(7,2)", "b": "array<int>"})

    grouped = read_plan(spark, plan, groups)

    assert types_of(grouped) == {"a": "decimal(7,2)", "b": "array<int>"}
    assert grouped.collect() == []


def test_a_file_without_rows_adds_none(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    plan, groups = plan_of(tmp_path, {"a": "bigint"})

    grouped = read_plan(spark, plan, groups)

    assert grouped.collect() == []


def test_each_group_is_one_task(spark: SparkSession, tmp_path: Path) -> None:
    expected = write_small_files(spark, tmp_path / "t")
    plan, groups = plan_of(tmp_path / "t", SMALL, partition=DAY_AND_ORIGIN, group_count=40)

    grouped = read_plan(spark, plan, groups)

    assert grouped.rdd.getNumPartitions() == len(groups) == 40
    assert grouped.count() == expected.count()


def test_each_descriptor_is_a_partition_on_its_hosts_and_more_of_them_cost_no_more_calls(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [("b", "a"), (), ("é",)]
    descriptors = [Descriptor(content=bytes([n]), hosts=hosts[n % 3]) for n in range(200)]
    calls = []
    send = JavaClient.send_command

    def counted(self: JavaClient, command: str, *arguments: Any, **options: Any) -> Any:
        # The other commands release objects, whenever Python collects them.
        if command.startswith(CALL_COMMAND_NAME):
            calls.append(command)
        return send(self, command, *arguments, **options)

    # In local mode no hosts are preferred.
    monkeypatch.setattr(spark.sparkContext, "master", "spark://127.0.0.1:7077")
    monkeypatch.setattr(JavaClient, "send_command", counted)
    placed(spark, descriptors[:3])
    few = len(calls)
    rows = placed(spark, descriptors)
    many = len(calls) - few
    monkeypatch.undo()

    assert many <= few
    assert [
        (bytes(row.value), row.at)
        for row in rows.select("value", F.spark_partition_id().alias("at")).collect()
    ] == [(descriptor.content, at) for at, descriptor in enumerate(descriptors)]
    rdd = rows._jdf.queryExecution().toRdd()
    while rdd.dependencies().size():
        rdd = rdd.dependencies().apply(0).rdd()
    for partition, descriptor in zip(rdd.partitions(), descriptors, strict=True):
        preferred = rdd.preferredLocations(partition)
        assert tuple(preferred.apply(at) for at in range(preferred.size())) == descriptor.hosts


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("int", "(1), (-2), (NULL)"),
        ("bigint", "(3000000000), (NULL)"),
        ("double", "(1.5), (-0.25), (NULL)"),
        ("date", "(DATE '2026-11-01'), (DATE '1850-02-28'), (NULL)"),
        ("string", "('a b/c=%'), ('ü'), (NULL)"),
    ],
    ids=["int", "bigint", "double", "date", "string"],
)
def test_partition_columns_of_every_type_are_typed_and_may_be_null(
    spark: SparkSession, tmp_path: Path, type_: str, values: str
) -> None:
    written = spark.sql(f"SELECT CAST(p AS {type_}) p, 1 AS a FROM VALUES {values} AS t(p)")
    written.write.partitionBy("p").parquet(str(tmp_path / "t"))
    plan, groups = plan_of(tmp_path / "t", {"a": "int"}, partition={"p": type_})

    grouped = read_plan(spark, plan, groups)

    assert_same(grouped, written.select("a", "p"))


TIMES = """SELECT CAST(t AS timestamp) t, CAST(t AS timestamp_ntz) n, named_struct('t', CAST(t AS
timestamp)) s, array(CAST(t AS timestamp)) l FROM VALUES ('1969-12-31 23:59:59.999999'),
('2026-03-29 02:30:00.000001'), ('1900-01-01 00:00:00'), ('9999-12-31 12:00:00'), (NULL) AS v(t)"""


@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_timestamps_are_the_same_instants_however_they_are_stored(
    spark: SparkSession, tmp_path: Path, stored: str
) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", stored)
    try:
        spark.sql(TIMES).coalesce(1).write.parquet(str(tmp_path / "t"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    expected = spark.read.parquet(str(tmp_path / "t"))
    plan, groups = plan_of(tmp_path / "t", types_of(expected))

    grouped = read_plan(spark, plan, groups)

    assert_same(grouped, expected)


NESTED = """SELECT id, named_struct('x', CAST(id AS int), 'y', IF(id % 3 = 0, NULL, CAST(id AS
string))) AS s, IF(id % 4 = 0, NULL, array(CAST(id AS smallint), NULL)) AS l, IF(id % 5 = 0, NULL,
map(CAST(id AS string), named_struct('v', array(CAST(id AS double))))) AS m,
IF(id % 2 = 0, NULL, array(named_struct('a', id, 'b', DATE '2026-01-01'))) AS ls FROM RANGE(40)"""

PRIMITIVES = """SELECT CAST(id AS tinyint) a, CAST(id AS smallint) b, CAST(id AS float) c,
CAST(id / 7 AS decimal(5,2)) d, CAST(id / 7 AS decimal(15,3)) e, CAST(id / 7 AS decimal(38,10)) f,
id % 2 = 0 AS g, CAST(CAST(id AS string) AS binary) h, date_add(DATE '1900-01-01', CAST(id AS int))
i, IF(id % 2 = 0, double('NaN'), -0.0D) j, IF(id % 3 = 0, NULL, id) k FROM RANGE(40)"""


@pytest.mark.parametrize("query", [NESTED, PRIMITIVES], ids=["nested", "primitive"])
def test_columns_of_every_type_are_read_as_by_spark(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    spark.sql(query).repartition(3).write.parquet(str(tmp_path / "t"))
    expected = spark.read.parquet(str(tmp_path / "t"))
    plan, groups = plan_of(tmp_path / "t", types_of(expected))

    grouped = read_plan(spark, plan, groups)

    assert_same(grouped, expected)


def test_a_column_that_a_file_lacks_is_null_and_narrow_types_widen(
    spark: SparkSession, tmp_path: Path
) -> None:
    for i, query in enumerate(
        [
            "SELECT CAST(1 AS tinyint) a, CAST(1.5 AS float) b, CAST(1.25 AS decimal(5,2)) c",
            "SELECT CAST(2 AS int) A, CAST(2 AS int) b, CAST(2 AS smallint) c, 'x' extra",
            "SELECT 3L a, 3.5D b, CAST(3.125 AS decimal(12,4)) c, DATE '2026-01-02' d",
            "SELECT 'y' other",
        ]
    ):
        spark.sql(query).coalesce(1).write.parquet(str(tmp_path / "t" / str(i)))
    columns = {"a": "bigint", "b": "double", "c": "decimal(20,4)", "d": "timestamp_ntz"}
    plan, groups = plan_of(tmp_path / "t", columns, group_count=1)

    grouped = read_plan(spark, plan, groups)

    expected = spark.sql(
        """SELECT CAST(a AS bigint) a, CAST(b AS double) b, CAST(c AS decimal(20,4)) c,
        CAST(d AS timestamp_ntz) d FROM VALUES (1, 1.5, 1.25, NULL), (2, 2, 2, NULL),
        (3, 3.5, 3.125, DATE '2026-01-02'), (NULL, NULL, NULL, NULL) AS t(a, b, c, d)"""
    )
    assert_same(grouped, expected)


def test_a_file_cut_into_row_group_splits_returns_each_row_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"a": pa.array(range(5000), pa.int64()), "b": [str(i) for i in range(5000)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    plan, groups = plan_of(
        tmp_path, {"a": "bigint", "b": "string"}, by_row_group=True, group_count=3
    )

    grouped = read_plan(spark, plan, groups)

    assert len(groups) == 3
    assert_same(grouped, spark.read.parquet(str(tmp_path)))


ORDERS = {
    "ascending": [SortColumn(name="k"), SortColumn(name="v")],
    "descending": [SortColumn(name="k", descending=True), SortColumn(name="v")],
    "nulls-last": [SortColumn(name="k", nulls_first=False), SortColumn(name="v", descending=True)],
    "text-first": [SortColumn(name="v", descending=True, nulls_first=True), SortColumn(name="k")],
}


@pytest.mark.parametrize("sort", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("kind", a_few(["double", "decimal(9,2)", "date"], 3))
def test_sorted_files_are_merged_in_spark_order(
    spark: SparkSession, tmp_path: Path, sort: list[SortColumn], kind: str
) -> None:
    make = {
        "double": "CASE WHEN id % 11 = 0 THEN double('NaN') WHEN id % 7 = 0 THEN -0.0D"
        " WHEN id % 5 = 0 THEN 0.0D ELSE (id * 37 % 101) - 50D END",
        "decimal(9,2)": "CAST((id * 37 % 101) - 50 AS decimal(9,2))",
        "date": "date_add(DATE '1970-01-10', CAST(id * 37 % 101 AS int) - 50)",
    }[kind]
    df = spark.sql(
        f"""SELECT IF(id % 13 = 0, NULL, {make}) AS k,
        IF(id % 17 = 0, NULL, concat(char(97 + id % 3), IF(id % 2 = 0, 'é', '!'))) AS v, id
        FROM RANGE(600)"""
    )
    by = [_spark_order(column) for column in sort]
    df.repartition(8).sortWithinPartitions(*by).write.parquet(str(tmp_path / "t"))
    plan, groups = plan_of(
        tmp_path / "t",
        {"k": kind, "v": "string", "id": "bigint"},
        asked=["k", "v"],
        sort=sort,
        group_count=1,
    )

    grouped = read_plan(spark, plan, groups)

    # -0.0 and 0.0 are equal, so either may come first.
    expected = spark.read.parquet(str(tmp_path / "t")).select("k", "v").orderBy(*by)
    got = [repr(row).replace("k=-0.0", "k=0.0") for row in grouped.collect()]
    assert got == [repr(row).replace("k=-0.0", "k=0.0") for row in expected.collect()]


def _spark_order(column: SortColumn) -> object:
    nulls_first = not column.descending if column.nulls_first is None else column.nulls_first
    name = f"{'desc' if column.descending else 'asc'}_nulls_{'first' if nulls_first else 'last'}"
    return getattr(F, name)(column.name)


def test_files_are_merged_by_partition_columns_and_by_columns_not_returned(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.sql("SELECT id, CAST(id % 3 AS int) p, id * 37 % 101 AS k FROM RANGE(200)")
    df.repartition(4).sortWithinPartitions("p", "k").write.partitionBy("p").parquet(
        str(tmp_path / "t")
    )
    plan, groups = plan_of(
        tmp_path / "t",
        {"id": "bigint", "k": "bigint"},
        asked=["p"],
        partition={"p": "int"},
        hidden=["k"],
        sort=[SortColumn(name="k"), SortColumn(name="p", descending=True)],
        group_count=1,
    )

    grouped = read_plan(spark, plan, groups)

    expected = df.orderBy("k", F.desc("p")).select("p")
    assert grouped.collect() == expected.collect()


def test_a_residual_filter_keeps_the_rows_that_spark_keeps(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = write_small_files(spark, tmp_path / "t")
    residual = {
        "op": "or",
        "args": [
            {"op": "gt", "column": "delay", "value": 500},
            {"op": "eq", "column": "day", "value": 3},
            {"op": "not", "arg": {"op": "starts_with", "column": "name", "prefix": "é"}},
        ],
    }
    plan, groups = plan_of(
        tmp_path / "t",
        SMALL,
        asked=["id"],
        partition=DAY_AND_ORIGIN,
        hidden=["delay", "name"],
        residual=residual,
    )

    grouped = read_plan(spark, plan, groups)

    kept = expected.where("delay > 500 OR day = 3 OR NOT name LIKE 'é%'").select("id")
    assert_same(grouped, kept)
