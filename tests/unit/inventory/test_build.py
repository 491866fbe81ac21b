"""An inventory of a real folder, from scratch and from the one before."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.inventory.files import as_previous, stats_of, take_inline, touch, write
from windrow_core.files.errors import DuplicateColumnError, SchemaConflictError
from windrow_core.files.rows import inventory_schema
from windrow_core.files.types import spark_type
from windrow_core.models import RefreshProgress
from windrow_service.inventory.errors import PartitionLayoutError
from windrow_service.inventory.spark_types import arrow_type


def columns(**types: str) -> pa.Schema:
    return pa.schema([(name, arrow_type(type_)) for name, type_ in types.items()])


def as_text(schema: pa.Schema) -> dict[str, str]:
    return {field.name: spark_type(field.type) for field in schema}


LAYOUT = (
    '{"columns":[["x","int64"],["l",["list",["element","int64"]]]],"ids":false,"old":false,'
    '"shapes":[["l","optional","list",["list","repeated","",["element","optional",""]]]]}'
)


def test_an_inventory_holds_everything_that_planning_needs(tmp_path: Path) -> None:
    first = write(tmp_path, "ds=2024-01-01/c=SE/000001_0", {"x": [1, None], "l": [[1], [2]]})
    second = write(tmp_path, "ds=2024-01-02/c=a%2Fb/000000_0", {"x": [7, 8], "l": [[1], [2]]})
    touch(first, 1_000)
    touch(second, 2_000)

    inventory = take_inline(str(tmp_path), bucket_count=2)

    assert as_text(inventory.data_schema) == {"x": "bigint", "l": "array<bigint>"}
    assert as_text(inventory.partition_schema) == {"ds": "date", "c": "string"}
    expected = inventory_schema(inventory.data_schema, inventory.partition_schema)
    assert inventory.files.schema == expected
    assert inventory.files.to_pylist() == [
        {
            "path": "ds=2024-01-01/c=SE/000001_0",
            "size_bytes": first.stat().st_size,
            "mtime_ns": 1_000,
            "row_count": 2,
            "bucket": 1,
            "hosts": [],
            "delete_count": 0,
            "delete_bytes": 0,
            "row_group_offsets": [4],
            "stats_see_nan": False,
            "grouped_columns": ["l"],
            "native_columns": None,
            "first_row_id": None,
            "deletes": None,
            "etag": None,
            "outline": None,
            "chunks": None,
            "layout": LAYOUT,
            "partition": {"ds": date(2024, 1, 1), "c": "SE"},
            "stats": {"x": {"min": 1, "max": 1, "null_count": 1}},
        },
        {
            "path": "ds=2024-01-02/c=a%2Fb/000000_0",
            "size_bytes": second.stat().st_size,
            "mtime_ns": 2_000,
            "row_count": 2,
            "bucket": 0,
            "hosts": [],
            "delete_count": 0,
            "delete_bytes": 0,
            "row_group_offsets": [4],
            "stats_see_nan": False,
            "grouped_columns": ["l"],
            "native_columns": None,
            "first_row_id": None,
            "deletes": None,
            "etag": None,
            "outline": None,
            "chunks": None,
            "layout": LAYOUT,
            "partition": {"ds": date(2024, 1, 2), "c": "a/b"},
            "stats": {"x": {"min": 7, "max": 8, "null_count": 0}},
        },
    ]
    assert (inventory.added_count, inventory.removed_count, inventory.folder_count) == (2, 0, 5)


def test_an_empty_folder_is_a_table_of_no_files(tmp_path: Path) -> None:
    inventory = take_inline(str(tmp_path))

    assert inventory.files.equals(inventory_schema(pa.schema([]), pa.schema([])).empty_table())
    assert (inventory.added_count, inventory.removed_count) == (0, 0)


def test_an_empty_folder_has_the_declared_columns(tmp_path: Path) -> None:
    inventory = take_inline(
        str(tmp_path), columns=columns(x="int", ds="date"), partition_types=columns(ds="date")
    )

    assert as_text(inventory.data_schema) == {"x": "int"}
    assert as_text(inventory.partition_schema) == {"ds": "date"}


def test_a_table_that_was_emptied_keeps_its_columns(tmp_path: Path) -> None:
    file = write(tmp_path, "ds=1/f")
    before = take_inline(str(tmp_path))
    file.unlink()

    emptied = take_inline(str(tmp_path), previous=as_previous(before))
    later = take_inline(str(tmp_path), previous=as_previous(emptied))

    assert (emptied.data_schema, emptied.partition_schema) == (
        before.data_schema,
        before.partition_schema,
    )
    assert later.files.equals(emptied.files)
    assert (emptied.added_count, emptied.removed_count) == (0, 1)


def test_a_column_that_a_file_lacks_is_all_null_there(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": [1, 2]})
    write(tmp_path, "2", {"y": ["a", "b", "c"], "x": [3, 4, 5]})

    inventory = take_inline(str(tmp_path))

    assert stats_of(inventory, "y") == [
        {"min": None, "max": None, "null_count": 2},
        {"min": "a", "max": "c", "null_count": 0},
    ]


def test_bounds_widen_with_their_column(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": pa.array([1], pa.int8()), "d": [date(2024, 1, 1)]})
    write(
        tmp_path,
        "2",
        {
            "X": pa.array([Decimal("0.5")], pa.decimal128(3, 1)),
            "d": pa.array([0], pa.timestamp("us")),
        },
    )

    inventory = take_inline(str(tmp_path))

    assert as_text(inventory.data_schema) == {"x": "decimal(11,1)", "d": "timestamp_ntz"}
    assert [stats["min"] for stats in stats_of(inventory, "x")] == [Decimal("1.0"), Decimal("0.5")]
    assert [str(stats["min"]) for stats in stats_of(inventory, "d")] == [
        "2024-01-01 00:00:00",
        "1970-01-01 00:00:00",
    ]


def test_int96_has_neither_bounds_nor_a_null_count(tmp_path: Path) -> None:
    moment = pa.array([1], pa.timestamp("us"))
    write(tmp_path, "f", {"t": moment}, use_deprecated_int96_timestamps=True)

    inventory = take_inline(str(tmp_path))

    assert as_text(inventory.data_schema) == {"t": "timestamp"}
    assert stats_of(inventory, "t") == [{"min": None, "max": None, "null_count": None}]


def test_the_folder_wins_over_a_column_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path, "ds=7/f", {"DS": ["x"], "a": [1]})

    inventory = take_inline(str(tmp_path))

    assert as_text(inventory.data_schema) == {"a": "bigint"}
    assert as_text(inventory.partition_schema) == {"ds": "int"}


def test_declared_columns_are_used_unchanged(tmp_path: Path) -> None:
    write(
        tmp_path,
        "ds=7/f",
        {"x": pa.array([1], pa.int32()), "unknown": pa.array([1], pa.time64("us"))},
    )

    inventory = take_inline(str(tmp_path), columns=columns(x="bigint", z="string", ds="string"))

    assert as_text(inventory.data_schema) == {"x": "bigint", "z": "string"}
    assert as_text(inventory.partition_schema) == {"ds": "string"}
    assert inventory.files["stats"].to_pylist() == [
        {
            "x": {"min": 1, "max": 1, "null_count": 0},
            "z": {"min": None, "max": None, "null_count": 1},
        }
    ]


def test_declared_columns_that_differ_by_case_only_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DuplicateColumnError, match="of the table"):
        take_inline(str(tmp_path), columns=columns(x="int", X="int"))


@pytest.mark.parametrize("path", ["f", "b=1/f", "a=1/b=1/f"])
def test_folders_must_match_the_declared_partition_columns(tmp_path: Path, path: str) -> None:
    write(tmp_path, path)

    with pytest.raises(PartitionLayoutError, match="declared as a partition"):
        take_inline(str(tmp_path), partition_types=columns(a="int"))


def test_nothing_is_read_again_if_nothing_changed(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, f"k={number}/f", {"x": [number]})
    before = take_inline(str(tmp_path))

    after = take_inline(str(tmp_path), previous=as_previous(before))

    assert after.files.equals(before.files)
    assert (after.footers_read, after.added_count, after.removed_count) == (0, 0, 0)


def test_only_changed_files_are_read_again(tmp_path: Path) -> None:
    for number in range(4):
        touch(write(tmp_path, f"{number}", {"x": [number]}), 1_000)
    before = take_inline(str(tmp_path))
    (tmp_path / "0").unlink()
    touch(write(tmp_path, "1", {"x": [100]}), 2_000)
    write(tmp_path, "1b", {"x": [5]})
    seen: list[RefreshProgress] = []

    after = take_inline(str(tmp_path), previous=as_previous(before), on_progress=seen.append)

    assert after.files.equals(take_inline(str(tmp_path)).files)
    assert (after.footers_read, after.added_count, after.removed_count) == (2, 2, 2)
    assert [stats["max"] for stats in stats_of(after, "x")] == [100, 5, 2, 3]
    assert (seen[-1].footers_read, seen[-1].footers_total) == (2, 2)


def test_carried_over_columns_widen_too(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": pa.array([1], pa.int32()), "n": pa.nulls(1)})
    before = take_inline(str(tmp_path))
    write(tmp_path, "2", {"n": ["a"], "x": pa.array([2], pa.int64()), "y": [True]})

    after = take_inline(str(tmp_path), previous=as_previous(before))

    assert after.files.to_pylist() == take_inline(str(tmp_path)).files.to_pylist()
    assert as_text(after.data_schema) == {"x": "bigint", "n": "string", "y": "boolean"}
    assert after.footers_read == 1


def test_a_column_that_may_have_been_skipped_has_no_statistics(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": [1], "y": [7]})
    before = take_inline(str(tmp_path), columns=columns(x="bigint"))
    write(tmp_path, "2", {"x": [2], "y": [8]})
    previous = replace(as_previous(before), has_all_columns=False)

    after = take_inline(str(tmp_path), previous=previous)

    assert stats_of(after, "y") == [
        {"min": None, "max": None, "null_count": None},
        {"min": 8, "max": 8, "null_count": 0},
    ]


def test_hosts_are_carried_over(tmp_path: Path) -> None:
    touch(write(tmp_path, "1"), 1_000)
    touch(write(tmp_path, "2"), 1_000)
    before = take_inline(str(tmp_path))
    hosts = pa.array([["a", "b"], ["c"]], before.files.schema.field("hosts").type)
    at = before.files.schema.get_field_index("hosts")
    published = before.files.set_column(at, before.files.schema.field(at), hosts)
    touch(tmp_path / "2", 2_000)

    after = take_inline(str(tmp_path), previous=replace(as_previous(before), files=published))

    assert after.files["hosts"].to_pylist() == [["a", "b"], []]


def test_an_old_type_that_no_file_holds_any_more_has_no_effect(tmp_path: Path) -> None:
    write(tmp_path, "1", {"x": [1]})
    write(tmp_path, "2", {"y": [1]})
    before = take_inline(str(tmp_path))
    write(tmp_path, "1", {"x": ["now text"]})

    after = take_inline(str(tmp_path), previous=as_previous(before))

    assert as_text(after.data_schema) == {"x": "string", "y": "bigint"}


def test_a_new_file_that_conflicts_with_an_old_one_names_both(tmp_path: Path) -> None:
    write(tmp_path, "1", {"y": [1]})
    write(tmp_path, "2", {"x": [1]})
    before = take_inline(str(tmp_path))
    write(tmp_path, "3", {"x": ["text"]})

    with pytest.raises(SchemaConflictError, match="bigint in file '2' and string in file '3'"):
        take_inline(str(tmp_path), previous=as_previous(before))


def test_everything_is_read_again_when_other_columns_are_declared(tmp_path: Path) -> None:
    write(tmp_path, "f", {"x": [1], "y": [2]})
    before = take_inline(str(tmp_path), columns=columns(x="bigint"))

    after = take_inline(
        str(tmp_path), columns=columns(x="bigint", y="bigint"), previous=as_previous(before)
    )

    assert stats_of(after, "y") == [{"min": 2, "max": 2, "null_count": 0}]


def test_partition_types_are_inferred_again_over_all_folders(tmp_path: Path) -> None:
    write(tmp_path, "p=1/f")
    before = take_inline(str(tmp_path))
    write(tmp_path, "p=x/f")

    after = take_inline(str(tmp_path), previous=as_previous(before))

    assert as_text(after.partition_schema) == {"p": "string"}
    assert after.files["partition"].to_pylist() == [{"p": "1"}, {"p": "x"}]
