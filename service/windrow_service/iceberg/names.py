"""Which columns of an Iceberg table are in all of its files under their own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg import types
from pyiceberg.schema import Schema

from windrow.files.file_fields import DEFAULT, is_mapped, named_children, with_children

_Shape = tuple[Any, ...]


def unchanged_columns(schemas: Sequence[Schema], schema: Schema) -> frozenset[str]:
    """Return the columns that have kept their names and types since they were added.

    Spark's own reader, which finds columns by name, reads these correctly. If the table may have
    had schemas that are gone, no column is known to be unchanged.

    Args:
        schemas: All schemas in the metadata.
        schema: The schema that the table is read with.
    """
    if {one.schema_id for one in schemas} != set(range(len(schemas))):
        return frozenset()
    before = [field for one in schemas for field in one.fields]
    return frozenset(
        field.name
        for field in schema.fields
        if not _has_fixed(field.field_type)
        and all(
            _shape(field) == _shape(other)
            for other in before
            if other.field_id == field.field_id or other.name.lower() == field.name.lower()
        )
    )


def by_name(columns: pa.Schema, unchanged: frozenset[str]) -> pa.Schema:
    """Return columns without field ids where they can be found by name.

    Args:
        columns: Columns with field ids in their metadata.
        unchanged: See `unchanged_columns`.
    """
    return pa.schema(
        [
            plain if field.name in unchanged and (plain := _plain(field)) is not None else field
            for field in columns
        ]
    )


def _plain(field: pa.Field) -> pa.Field | None:
    """Return a field without metadata at any depth; None if it has a default."""
    if DEFAULT in (field.metadata or {}):
        return None
    children = [_plain(child) for _, child in named_children(field.type)]
    if any(child is None for child in children):
        return None
    plain = field.with_type(with_children(field.type, children)).remove_metadata()
    assert not is_mapped(plain)
    return plain


def _shape(field: types.NestedField) -> _Shape:
    """Return the ids, names and types of a field and of all fields in it."""
    return (field.field_id, field.name, *_within(field.field_type))


def _within(type_: types.IcebergType) -> _Shape:
    fields = _fields(type_)
    return tuple(map(_shape, fields)) if fields else (str(type_),)


def _fields(type_: types.IcebergType) -> tuple[types.NestedField, ...]:
    if isinstance(type_, types.StructType):
        return type_.fields
    if isinstance(type_, types.ListType):
        return (type_.element_field,)
    if isinstance(type_, types.MapType):
        return (type_.key_field, type_.value_field)
    return ()


def _has_fixed(type_: types.IcebergType) -> bool:
    # Spark's own reader may misinterpret the bytes of fixed values.
    fields = _fields(type_)
    return isinstance(type_, types.FixedType) or any(_has_fixed(one.field_type) for one in fields)
