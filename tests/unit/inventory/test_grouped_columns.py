"""Inventories name the columns that Spark's own reader may read differently."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.inventory.files import as_previous, take_inline, write
from windrow_core.files.reader_differences import GroupedOnly
from windrow_service.inventory.look import Inventory
from windrow_service.inventory.manifests.encoding import decode_manifest, encode_manifest


def grouped_columns(inventory: Inventory) -> dict[str, list[str] | None]:
    files = inventory.files.select(["path", "grouped_columns"]).to_pylist()
    return {file["path"]: file["grouped_columns"] for file in files}


@pytest.mark.parametrize(
    ("column", "type_", "alike"),
    [
        (pa.array([1], pa.int64()), pa.int64(), True),
        (pa.array([1], pa.int32()), pa.int64(), False),
        (pa.array([1], pa.uint32()), pa.int64(), False),
        (pa.array(["a"]), pa.string(), True),
        (pa.array(["a"]).dictionary_encode(), pa.string(), False),
        (pa.array([1], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC"), True),
        (pa.array([1], pa.timestamp("ns", "UTC")), pa.timestamp("us", "UTC"), False),
        (pa.array([[1]]), pa.list_(pa.int64()), False),
        (pa.array([1.5], pa.float16()), pa.float32(), False),
        (pa.array([1.5], pa.float32()), pa.float64(), False),
    ],
    ids=str,
)
def test_columns_in_a_different_form_than_the_tables_are_named(
    tmp_path: Path, column: pa.Array, type_: pa.DataType, alike: bool
) -> None:
    write(tmp_path, "f", {"A": column, "other": pa.array([1])})
    write(tmp_path, "without", {"other": pa.array([1])})

    found = take_inline(str(tmp_path), columns=pa.schema([("a", type_), ("other", pa.int64())]))

    assert grouped_columns(found) == {"f": [] if alike else ["a"], "without": []}


def test_nested_columns_are_alike_if_spark_wrote_them(tmp_path: Path) -> None:
    lists = pa.table({"lists": pa.array([[1]])})
    write(tmp_path, "by-spark", lists.replace_schema_metadata({"org.apache.spark.version": "4.0"}))
    write(tmp_path, "by-arrow", lists)

    found = grouped_columns(take_inline(str(tmp_path)))

    assert found == {"by-arrow": ["lists"], "by-spark": []}


@pytest.mark.parametrize(
    ("how", "names"),
    [
        ({"compression": {"a": "brotli", "b": "snappy"}}, ["a"]),
        ({"use_byte_stream_split": ["b"], "use_dictionary": False}, ["b"]),
        ({"compression": "zstd", "use_dictionary": ["a"]}, []),
    ],
    ids=str,
)
def test_columns_that_only_one_reader_decodes_are_named(
    tmp_path: Path, how: dict[str, Any], names: list[str]
) -> None:
    table = pa.table({"a": pa.array([1, 2], pa.int64()), "b": [0.5, 1.5]})
    path = write(tmp_path, "f", table, row_group_size=1, **how)

    assert GroupedOnly().names_in(pq.read_metadata(path)) == names


def test_names_that_differ_by_case_alone_are_named(tmp_path: Path) -> None:
    columns = [pa.array([1], pa.int64())] * 3
    path = write(tmp_path, "f", pa.Table.from_arrays(columns, ["a", "A", "b"]))

    assert GroupedOnly().names_in(pq.read_metadata(path)) == ["a", "a"]


def test_files_that_share_a_parquet_schema_are_told_apart(tmp_path: Path) -> None:
    names = GroupedOnly()
    plain, dictionary = pa.array(["a"]), pa.array(["a"]).dictionary_encode()
    found = [
        names.names_in(pq.read_metadata(write(tmp_path, "f", {"name": column})))
        for column in (plain, dictionary, plain)
    ]
    assert found == [[], ["name"], []]


def test_a_column_that_gets_another_type_is_named_for_the_files_that_stay(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": pa.array([1], pa.int32()), "y": pa.array(["a"]).dictionary_encode()})
    write(tmp_path, "2", {"y": ["a"]})
    before = take_inline(str(tmp_path))
    write(tmp_path, "3", {"x": pa.array([1], pa.int64()), "new": [1]})

    after = take_inline(str(tmp_path), previous=as_previous(before))

    assert grouped_columns(before) == {"1": ["y"], "2": []}
    assert after.footers_read == 1
    assert grouped_columns(after) == {"1": ["x", "y"], "2": ["x"], "3": []}


def test_files_without_known_grouped_columns_are_read_once_more(tmp_path: Path) -> None:
    for name in "12":
        write(tmp_path, name)
    before = take_inline(str(tmp_path))
    at = before.files.schema.get_field_index("grouped_columns")
    unknown = pa.array([None, []], pa.list_(pa.string()))
    files = before.files.set_column(at, before.files.schema.field(at), unknown)

    after = take_inline(str(tmp_path), previous=replace(as_previous(before), files=files))

    assert (after.footers_read, after.added_count, after.removed_count) == (1, 0, 0)
    assert after.files.equals(before.files)


def test_manifests_without_grouped_columns_are_still_read(tmp_path: Path) -> None:
    write(tmp_path, "f", {"x": pa.array(["a"]).dictionary_encode()})
    files = take_inline(str(tmp_path)).files
    older = encode_manifest(
        files.drop_columns(["grouped_columns", "native_columns", "first_row_id", "deletes"])
    )

    decoded = decode_manifest(older)

    assert decoded.schema.equals(files.schema)
    assert decoded["grouped_columns"].to_pylist() == [None]
    assert decode_manifest(encode_manifest(files))["grouped_columns"].to_pylist() == [["x"]]
    assert decode_manifest(older, columns=["path"]).column_names == ["path"]
