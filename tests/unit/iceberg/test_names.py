"""Columns are found by name only where no file can hold them under another name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from windrow.files.file_fields import DEFAULT, FIELD_ID, is_mapped
from windrow_service.iceberg.names import by_name, unchanged_columns
from windrow_service.iceberg.schemas import UnreadTypeError, arrow_schema


def schema(id_: int, *fields: tuple[int, str, IcebergType]) -> Schema:
    return Schema(*(NestedField(*field, required=False) for field in fields), schema_id=id_)


def struct(*fields: tuple[int, str, IcebergType]) -> StructType:
    return StructType(*(NestedField(*field, required=False) for field in fields))


INT, LONG, TEXT = IntegerType(), LongType(), StringType()
KEPT = (9, "kept", TEXT)
HISTORIES: dict[str, list[tuple[int, str, IcebergType]]] = {
    "renamed": [(1, "a", INT), (1, "b", INT)],
    "widened": [(1, "a", INT), (1, "a", LONG)],
    "replaced": [(1, "a", INT), (2, "a", INT)],
    "with another's name except for case": [(1, "A", INT), (2, "a", INT)],
    "renamed within": [(1, "s", struct((2, "x", INT))), (1, "s", struct((2, "y", INT)))],
    "replaced within": [(1, "s", struct((2, "x", INT))), (1, "s", struct((3, "x", INT)))],
    "grown within": [
        (1, "s", struct((2, "x", INT))),
        (1, "s", struct((2, "x", INT), (3, "y", INT))),
    ],
    "changed in a list": [(1, "l", ListType(2, INT)), (1, "l", ListType(3, INT))],
    "of fixed length": [(1, "f", FixedType(4)), (1, "f", FixedType(4))],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_column_that_changed_is_found_by_its_id_and_others_by_their_names(
    history: list[tuple[int, str, IcebergType]],
) -> None:
    schemas = [schema(at, one, KEPT) for at, one in enumerate(history)]

    assert unchanged_columns(schemas, schemas[-1]) == {"kept"}


def test_columns_that_came_went_or_moved_are_found_by_their_names() -> None:
    first = schema(0, (1, "a", INT), (2, "gone", INT), (3, "s", struct((4, "x", TEXT))))
    last = schema(1, (3, "s", struct((4, "x", TEXT))), (1, "a", INT), (5, "new", INT))

    assert unchanged_columns([first, last], last) == {"s", "a", "new"}


def test_no_column_counts_as_unchanged_if_schemas_are_missing() -> None:
    last = schema(2, KEPT)

    assert unchanged_columns([schema(0, KEPT), last], last) == frozenset()
    assert unchanged_columns([schema(0, KEPT), schema(1, KEPT), last], last) == {"kept"}


def test_only_columns_that_changed_and_those_with_defaults_keep_their_ids() -> None:
    table = schema(0, (1, "a", INT), (2, "s", struct((3, "x", INT))), (4, "d", INT), (5, "e", INT))
    stated = {"fields": [{"id": 4, "initial-default": 7}]}
    columns = arrow_schema(table, stated, [])

    found = by_name(columns, frozenset({"a", "s", "d"}))

    assert [field.name for field in found if is_mapped(field)] == ["d", "e"]
    assert found.field("d").metadata == {FIELD_ID: b"4", DEFAULT: b"7"}
    assert found.field("s") == pa.field("s", pa.struct([("x", pa.int32())]))


@pytest.mark.parametrize("default", ["x", "2026-01-01", [1], {"a": 1}])
def test_defaults_that_are_not_values_of_their_column_are_refused_by_name(default: object) -> None:
    stated = {"fields": [{"id": 4, "initial-default": default}]}

    with pytest.raises(
        UnreadTypeError, match="initial default of column 'd' is not a value of type int"
    ):
        arrow_schema(schema(0, (4, "d", INT)), stated, [])
