"""Partition columns and bucket numbers, taken from paths."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.inventory.files import paths_column
from windrow_core.files.errors import DuplicateColumnError, UnknownTypeError
from windrow_service.inventory.errors import (
    BucketNumberError,
    PartitionLayoutError,
    PartitionValueError,
)
from windrow_service.inventory.listing.partitions import bucket_numbers, partition_columns
from windrow_service.inventory.spark_types import arrow_type

NULL = "__HIVE_DEFAULT_PARTITION__"


def one_level(*values: str, declared: str | None = None) -> tuple[pa.DataType, list[Any]]:
    schema = None if declared is None else pa.schema([("p", arrow_type(declared))])
    found = partition_columns(paths_column(*(f"p={value}/f" for value in values)), schema)
    return found.schema.field("p").type, found.values.field(0).to_pylist()


def test_a_flat_table_has_no_partition_columns() -> None:
    found = partition_columns(paths_column("a", "b"))

    assert found.schema == pa.schema([])
    assert found.values.to_pylist() == [{}, {}]


def test_no_files_have_no_partition_columns() -> None:
    found = partition_columns(paths_column())

    assert (found.schema, len(found.values)) == (pa.schema([]), 0)


def test_each_file_has_the_values_of_its_folders() -> None:
    found = partition_columns(
        paths_column("y=2024/c=SE/1", "y=2024/c=DK/1", f"y={NULL}/c=SE/1", "y=2023/c=SE/2")
    )

    assert found.schema == pa.schema([("y", pa.int32()), ("c", pa.string())])
    assert found.values.to_pylist() == [
        {"y": 2024, "c": "SE"},
        {"y": 2024, "c": "DK"},
        {"y": None, "c": "SE"},
        {"y": 2023, "c": "SE"},
    ]
    assert found.values.null_count == 0


# The answers of Spark 4.3; tests/spark compares with a real one.
@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (["1", "02", "-0", "+5"], "int", [1, 2, 0, 5]),
        (["2147483648", "1"], "bigint", [2147483648, 1]),
        (["9223372036854775808"], "decimal(19,0)", [Decimal(9223372036854775808)]),
        (["1", "1e5"], "decimal(10,0)", [Decimal(1), Decimal(100000)]),
        (["1" * 39], "double", [float("1" * 39)]),
        (["1", "1.5", ".5"], "double", [1.0, 1.5, 0.5]),
        (["3000000000", "1.50"], "string", ["3000000000", "1.50"]),
        (["2024-01-31"], "date", [date(2024, 1, 31)]),
        (["2024-02-30"], "string", ["2024-02-30"]),
        (["2024-01-31", "7"], "string", ["2024-01-31", "7"]),
        (["01", "x"], "string", ["01", "x"]),
        (["true", "false"], "string", ["true", "false"]),
        ([NULL, "7"], "int", [None, 7]),
        ([NULL], "string", [None]),
        (["a%2Fb", "%C3%A9", "é", "a%zz", "a%4"], "string", ["a/b", "Ã©", "é", "a%zz", "a%4"]),
        (["%31", "2"], "string", ["1", "2"]),
        (["a=b"], "string", ["a=b"]),
        (["2024-01-01 10%3A00%3A00", NULL], "timestamp_ntz", [datetime(2024, 1, 1, 10), None]),  # noqa: DTZ001
        (
            ["2024-01-01 10%3A00%3A00.5", "2024-01-02"],
            "timestamp_ntz",
            [datetime(2024, 1, 1, 10, 0, 0, 500000), datetime(2024, 1, 2)],  # noqa: DTZ001
        ),
        (["2024-01-01 10%3A00%3A00.25"], "string", ["2024-01-01 10:00:00.25"]),
        (["0000-01-01 10%3A00%3A00"], "string", ["0000-01-01 10:00:00"]),
        (["2024-01-01 10%3A00%3A00", "1"], "string", ["2024-01-01 10:00:00", "1"]),
    ],
)
def test_types_are_inferred_over_all_values(
    values: list[str], type_: str, expected: list[Any]
) -> None:
    assert one_level(*values) == (arrow_type(type_), expected)


@pytest.mark.parametrize(
    ("declared", "values", "expected"),
    [
        ("string", ["01", NULL], ["01", None]),
        ("tinyint", ["-128", "127"], [-128, 127]),
        ("bigint", ["1"], [1]),
        ("double", ["1", " 2.5 ", "-Infinity"], [1.0, 2.5, float("-inf")]),
        ("decimal(5,2)", ["1.5", "-2", "1e2"], [Decimal("1.50"), Decimal(-2), Decimal(100)]),
        ("date", ["2024-1-2"], [date(2024, 1, 2)]),
        ("boolean", ["true", "FALSE"], [True, False]),
        ("binary", ["a%41"], [b"a%41"]),
        ("timestamp_ntz", ["2024-01-01 10%3A00%3A00.5"], [datetime(2024, 1, 1, 10, 0, 0, 500000)]),  # noqa: DTZ001
        (
            "timestamp",
            ["2024-01-01T10%3A00%3A00Z", "2024-01-01T10%3A00%3A00+02:00"],
            [
                datetime(2024, 1, 1, 10, tzinfo=timezone.utc),
                datetime(2024, 1, 1, 8, tzinfo=timezone.utc),
            ],
        ),
    ],
)
def test_declared_types_are_used(declared: str, values: list[str], expected: list[Any]) -> None:
    assert one_level(*values, declared=declared) == (arrow_type(declared), expected)


def test_times_without_offsets_are_local_ones_where_timestamps_are_declared() -> None:
    texts = ["2024-01-01 10%3A00%3A00", "2024-1-2 3%3A04", "2024-01-03", NULL]
    moments = [datetime(2024, 1, 1, 10), datetime(2024, 1, 2, 3, 4), datetime(2024, 1, 3), None]  # noqa: DTZ001

    assert one_level(*texts, declared="timestamp") == (arrow_type("timestamp_ntz"), moments)
    assert one_level(NULL, declared="timestamp") == (arrow_type("timestamp"), [None])


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("int", "x"),
        ("int", "2147483648"),
        ("int", "1" * 5000),
        ("tinyint", "128"),
        ("int", "1_000"),
        ("date", "2024-02-30"),
        ("decimal(3,1)", "1.25"),
        ("decimal(3,1)", "1e9999999999999999999"),
        ("decimal(3,1)", "100"),
        ("double", "inf"),
        ("boolean", "1"),
        ("timestamp", "2024-01-01 25%3A00%3A00"),
        ("timestamp", "20240101T100000Z"),
        ("timestamp_ntz", "2024-01-01T10%3A00%3A00Z"),
    ],
)
def test_a_value_that_does_not_fit_its_declared_type_is_named(declared: str, value: str) -> None:
    paths = paths_column("a=0/p=" + NULL + "/f", f"a=1/p={value}/f")

    with pytest.raises(PartitionValueError) as caught:
        partition_columns(paths, pa.schema([("p", arrow_type(declared))]))

    assert (caught.value.folder, caught.value.column) == (f"a=1/p={value}", "p")
    assert declared in str(caught.value)


def test_a_nested_type_cannot_be_declared_for_a_folder() -> None:
    with pytest.raises(UnknownTypeError, match="a folder name cannot represent it"):
        one_level("1", declared="array<int>")


def test_declared_names_match_without_regard_to_case() -> None:
    found = partition_columns(paths_column("ds=1/f"), pa.schema([("DS", pa.string())]))

    assert found.schema == pa.schema([("DS", pa.string())])


def test_escaped_column_names_are_decoded_too() -> None:
    assert partition_columns(paths_column("a%20b=1/f")).schema.names == ["a b"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["a=1/f", "a=1/b=2/g"], r"'a=1/f' and 'a=1/b=2/g': they are 1 and 2 folders deep"),
        (["a=1/f", "g"], r"'a=1/f' and 'g': they are 1 and 0 folders deep"),
        (["a=1/f", "b=1/g"], r"'a=1/f' and 'b=1/g': one folder has the key 'a', the other 'b'"),
        (["a=1/f", "x/g"], r"'x/g': folder 'x' is not of the form `key=value`"),
        (["a=1/x/f"], r"'a=1/x/f': folder 'x' is not of the form `key=value`"),
        (["a=/f"], r"'a=/f': folder 'a=' has no value"),
        (["=1/f"], r"'=1/f': folder '=1' has no key"),
    ],
)
def test_folders_that_disagree_are_named(paths: list[str], message: str) -> None:
    with pytest.raises(PartitionLayoutError, match=message):
        partition_columns(paths_column(*paths))


def test_one_key_cannot_name_two_levels() -> None:
    with pytest.raises(DuplicateColumnError, match="'a' and 'A'"):
        partition_columns(paths_column("a=1/A=2/f"))


@pytest.mark.parametrize(
    ("name", "bucket"),
    [
        ("part-00000-0f0b1c9e-88a5-4d2c-a7de-ffcd7f1d8e0a_00003.c000.snappy.parquet", 3),
        ("part-00000-0f0b1c9e-88a5-4d2c-a7de-ffcd7f1d8e0a_00003.c000", 3),
        ("part-00000-0f0b1c9e-88a5-4d2c-a7de-ffcd7f1d8e0a-c000.snappy.parquet", None),
        ("000003_0", 3),
        ("000003_0.parquet", 3),
        ("000003_0_copy_1", 3),
        ("bucket_00003", 3),
        ("bucket_00003_0", 3),
        ("data_3.parquet", None),
        ("part-0.parquet", None),
        ("99999999999_0", None),
    ],
)
def test_bucket_numbers_are_taken_from_file_names_of_spark_and_hive(
    name: str, bucket: int | None
) -> None:
    assert bucket_numbers(paths_column(f"a=000001_0/{name}", name), 8).to_pylist() == [bucket] * 2


def test_a_table_without_bucket_spec_has_no_bucket_numbers() -> None:
    assert bucket_numbers(paths_column("000003_0"), None).to_pylist() == [None]


def test_a_bucket_number_beyond_the_count_is_named() -> None:
    with pytest.raises(BucketNumberError, match=r"'b/000004_0' has bucket 4, .* 4 buckets"):
        bucket_numbers(paths_column("a/000003_0", "b/000004_0"), 4)
