"""The inventory interprets folders and files like a real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.laws import a_few
from tests.unit.inventory.files import take_inline, write
from windrow_core.files.schema import FileSchema, merge_schemas, widen
from windrow_core.files.types import spark_type
from windrow_service.inventory.spark_types import arrow_type

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

NULL = "__HIVE_DEFAULT_PARTITION__"

SAME: list[list[str]] = [
    ["1", "2"],
    ["01", "2", "+5", "-5", "-0", "00"],
    ["2147483647", "-2147483648"],
    ["2147483648"],
    ["9223372036854775807", "1"],
    ["9223372036854775808", "1"],
    ["9223372036854775808", "3000000000"],
    ["1" * 38],
    ["1" * 39],
    ["1.", "1e5"],
    ["1e2", "3000000000"],
    ["0e0"],
    ["1.5", "1"],
    ["1.5", "3000000000"],
    ["1.5", "9223372036854775808"],
    [".5", "1E-3", "1e400", "-0.0"],
    ["NaN", "Infinity", "-Infinity"],
    ["nan"],
    ["inf"],
    ["1d", "1.5f"],
    ["1L"],
    ["0x10"],
    [" 1", "1 "],
    ["%201"],
    ["1_000"],
    ["1,000"],
    ["2024-01-01", "0001-01-01", "9999-12-31"],
    ["2024-01-01", NULL],
    ["2024-1-1"],
    ["2024-02-30"],
    ["2024-01"],
    ["12024-01-01"],
    ["2024-01-01 "],
    ["2024-01-01", "1"],
    ["2024-01-01", "1.5"],
    ["2024%2D01%2D01"],
    ["2024-01-01T10"],
    ["2024-01-01 10%3A00"],
    ["2024-01-01T10%3A00%3A00"],
    ["2024-01-01 10%3A00%3A00Z"],
    ["2024-01-01 10%3A00%3A00.25"],
    ["2024-01-01 9%3A00%3A00"],
    ["2024-01-01 24%3A00%3A00"],
    ["2024-02-30 10%3A00%3A00"],
    ["2024-01-01 10%3A00%3A00", "1"],
    ["2024-01-01 10%3A00%3A00", "2024-1-1"],
    ["true", "false"],
    ["SE", "01", "1.50"],
    ["null", NULL],
    [NULL, "1"],
    ["%C3%A9", "é", "a%2Fb", "a%zz", "a%4", "a%", "%41"],
    ["a b", "a+b", "a=b"],
    ["%31", "2"],
    ["%5F%5FHIVE_DEFAULT_PARTITION__"],
    ["+", "-", "--5", "5-", "1e"],
]

# The differences that `partition_values` documents: the value, its type in Spark, and here.
DIFFERENT: list[tuple[str, str, str]] = [
    ("2024-01-01 10%3A00%3A00", "timestamp", "timestamp_ntz"),
    ("0000-01-01 10%3A00%3A00", "timestamp", "string"),
    (NULL, "void", "string"),
    ("0x1p3", "double", "string"),
    ("٣", "int", "string"),
    ("0000-01-01", "date", "string"),
    ("-2024-01-01", "date", "string"),
]


def make_folders(location: Path, values: list[str]) -> None:
    for number, value in enumerate(values):
        write(location, f"p={value}/{number}", {"x": [number]})


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def timestamps_as(spark: SparkSession, physical: str) -> AbstractContextManager[None]:
    return setting(spark, "spark.sql.parquet.outputTimestampType", physical)


def of_inventory(location: Path) -> tuple[str, list[Any]]:
    inventory = take_inline(str(location))
    by_number = sorted(
        zip(
            (path.rpartition("/")[2] for path in inventory.files["path"].to_pylist()),
            (partition["p"] for partition in inventory.files["partition"].to_pylist()),
            strict=True,
        ),
        key=lambda pair: int(pair[0]),
    )
    type_ = spark_type(inventory.partition_schema.field("p").type)
    return type_, [value for _, value in by_number]


@pytest.mark.parametrize("values", a_few(SAME, 3), ids=", ".join)
def test_partition_types_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, values: list[str]
) -> None:
    make_folders(tmp_path, values)

    seen = spark.read.parquet(str(tmp_path))

    expected = [row.p for row in sorted(seen.collect(), key=lambda row: row.x)]
    # Compared by repr, as NaN does not equal itself and -0.0 equals 0.0.
    assert repr(of_inventory(tmp_path)) == repr((dict(seen.dtypes)["p"], expected))


# Local times, of which each session makes timestamps, and sessions of local timestamps do not.
LOCAL: list[list[str]] = [
    ["2024-01-01 10%3A00%3A00", "0001-01-01 00:00:00", "9999-12-31 23%3A59%3A59.9"],
    ["2024-01-01 10%3A00%3A00", "2024-01-01", NULL],
]


@pytest.mark.parametrize("values", LOCAL, ids=", ".join)
def test_local_times_are_those_of_sessions_of_local_timestamps(
    spark: SparkSession, tmp_path: Path, values: list[str]
) -> None:
    make_folders(tmp_path, values)

    with setting(spark, "spark.sql.timestampType", "TIMESTAMP_NTZ"):
        seen = spark.read.parquet(str(tmp_path))
        expected = [row.p for row in sorted(seen.collect(), key=lambda row: row.x)]

    assert of_inventory(tmp_path) == (dict(seen.dtypes)["p"], expected)


@pytest.mark.parametrize(("value", "in_spark", "here"), DIFFERENT)
def test_the_documented_differences_from_spark_exist(
    spark: SparkSession, tmp_path: Path, value: str, in_spark: str, here: str
) -> None:
    make_folders(tmp_path, [value])

    seen = dict(spark.read.parquet(str(tmp_path)).dtypes)["p"]

    assert (seen, of_inventory(tmp_path)[0]) == (in_spark, here)


def test_files_and_folders_hidden_by_spark_are_hidden(spark: SparkSession, tmp_path: Path) -> None:
    shown = ["_p=1/a", "_p=2/b.parquet", "_p=2/c._b"]
    hidden = ["_p=1/_a", "_p=1/.a", "_p=2/a._COPYING_", "_temporary/0/a", ".spark/a"]
    for number, path in enumerate(shown + hidden):
        write(tmp_path, path, {"x": [number]})

    seen = {row.x for row in spark.read.parquet(str(tmp_path)).collect()}

    paths = take_inline(str(tmp_path)).files["path"].to_pylist()
    assert (seen, paths) == ({0, 1, 2}, shown)


def test_columns_that_spark_wrote_have_the_types_that_spark_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = str(tmp_path / "t")
    with timestamps_as(spark, "TIMESTAMP_MICROS"):
        spark.sql(
            """select true bo, cast(1 as tinyint) ti, cast(2 as smallint) sm, 3 i, 4L bi,
                float(1.5) f, 2.5D d, 'å' st, binary('x') bn, date'2024-01-01' da,
                timestamp'2024-01-01 00:00:00Z' ts, timestamp_ntz'2024-01-01 00:00:00' nt,
                cast(-1.5 as decimal(5,2)) d5, cast(-1.5 as decimal(15,2)) d15,
                cast(-1.5 as decimal(38,2)) d38, array(1) ar, map('k', array(1D)) ma,
                struct(1 as x, struct('y' as z) as s) st2, cast(null as int) nu"""
        ).coalesce(1).write.parquet(location)

    inventory = take_inline(location)

    seen = spark.read.parquet(location)
    assert [(f.name, f.type) for f in inventory.data_schema] == [
        (name, arrow_type(type_)) for name, type_ in seen.dtypes
    ]
    (stats,) = inventory.files["stats"].to_pylist()
    (row,) = seen.collect()
    for name, bounds in stats.items():
        if name not in ("ts", "bn"):
            assert (bounds["min"], bounds["max"]) == (row[name], row[name])
    assert bytes(stats["bn"]["min"]) == b"x"
    assert stats["ts"]["min"].isoformat() == "2024-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("first", "other", "known"),
    [("1.0D", "2.0D", True), ("1.0D", "double('NaN')", False), ("double('NaN')", "1.0D", False)],
)
def test_bounds_written_by_spark_prove_the_absence_of_nan(
    spark: SparkSession, tmp_path: Path, first: str, other: str, known: bool
) -> None:
    location = str(tmp_path / "t")
    spark.sql(f"select d, float(d) f from values ({first}), ({other}), (1.5D) t(d)").coalesce(
        1
    ).write.parquet(location)

    (file,) = take_inline(location).files.to_pylist()

    assert file["stats_see_nan"]
    for column in ("d", "f"):
        assert (file["stats"][column]["min"] is not None) is known


def test_int96_that_spark_wrote_is_a_timestamp_without_bounds(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = str(tmp_path / "t")
    with timestamps_as(spark, "INT96"):
        spark.sql(
            "select timestamp'2024-01-01 00:00:00Z' t, array(current_timestamp()) a"
        ).write.parquet(location)

    inventory = take_inline(location)

    assert [spark_type(field.type) for field in inventory.data_schema] == [
        "timestamp",
        "array<timestamp>",
    ]
    assert inventory.files["stats"].to_pylist() == [
        {"t": {"min": None, "max": None, "null_count": None}}
    ]


def test_bucket_numbers_that_spark_wrote_are_read(spark: SparkSession, tmp_path: Path) -> None:
    location = tmp_path / "t"
    (
        spark.range(100)
        .write.bucketBy(4, "id")
        .option("path", str(location))
        .saveAsTable("bucketed_for_inventory")
    )
    try:
        inventory = take_inline(str(location), bucket_count=4)
    finally:
        spark.sql("drop table bucketed_for_inventory")

    assert set(inventory.files["bucket"].to_pylist()) == {0, 1, 2, 3}


WIDENED: dict[str, pa.Array] = {
    "tinyint": pa.array([1], pa.int8()),
    "smallint": pa.array([1], pa.int16()),
    "int": pa.array([1], pa.int32()),
    "bigint": pa.array([1], pa.int64()),
    "float": pa.array([1.5], pa.float32()),
    "double": pa.array([1.5], pa.float64()),
    "date": pa.array([1], pa.date32()),
    "timestamp_ntz": pa.array([1], pa.timestamp("us")),
    "decimal(5,2)": pa.array([1], pa.int64()).cast(pa.decimal128(38, 2)).cast(pa.decimal128(5, 2)),
    "decimal(20,4)": pa.array([1], pa.int64())
    .cast(pa.decimal128(38, 4))
    .cast(pa.decimal128(20, 4)),
    "string": pa.array(["x"]),
}


@pytest.mark.parametrize("one", a_few(list(WIDENED), 3))
def test_types_widen_to_those_that_sparks_reader_accepts(
    spark: SparkSession, tmp_path: Path, one: str
) -> None:
    for number, (other, values) in enumerate(WIDENED.items()):
        wide = widen(arrow_type(one), arrow_type(other))
        if wide is None:
            continue
        location = tmp_path / str(number)
        write(location, "1", {"x": WIDENED[one]}, store_decimal_as_integer=True)
        write(location, "2", {"x": values}, store_decimal_as_integer=True)

        merged = take_inline(str(location)).data_schema

        assert merged == merge_schemas([FileSchema(pa.schema([("x", wide)]), "")], [])
        rows = spark.read.schema(f"x {spark_type(wide)}").parquet(str(location)).collect()
        assert len(rows) == 2
