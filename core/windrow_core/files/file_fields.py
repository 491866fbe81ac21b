"""Columns that have another name in files than in the table, or that are found by an id.

The logs of Delta and Iceberg tables state these names and ids. They are kept in the metadata of
Arrow's fields, at all depths.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.schema import fields_in

# Arrow's own key for the ids of fields in Parquet files; a number.
FIELD_ID = b"PARQUET:field_id"
# A JSON list of the names that the field may have in files; if it has an id, in files without ids.
NAMES_IN_FILES = b"windrow:names"
# The number that a log gives the field, if it is not found by it; files may have it as the field's id.
COLUMN_ID = b"windrow:id"
# The field's value, as JSON, in rows of files that lack it.
DEFAULT = b"windrow:default"

_KEYS = frozenset({FIELD_ID, NAMES_IN_FILES, DEFAULT})
_WITHIN = {pt.is_list: ("element",), pt.is_large_list: ("element",), pt.is_map: ("key", "value")}


def is_mapped(field: pa.Field) -> bool:
    """Return whether a field, or one within it, is not found by its name alone."""
    return bool(_KEYS & (field.metadata or {}).keys()) or any(map(is_mapped, fields_in(field.type)))


def column_id(field: pa.Field) -> int | None:
    """Return the number that a log gives a field; None if it gives none."""
    metadata = field.metadata or {}
    number = metadata.get(FIELD_ID, metadata.get(COLUMN_ID))
    return None if number is None else int(number)


def name_in_files(field: pa.Field) -> str:
    """Return the name that files have for a field whose log names one name; else its own."""
    names = json.loads((field.metadata or {}).get(NAMES_IN_FILES, b"[]"))
    return str(names[0]) if names else field.name


def named_children(type_: pa.DataType) -> list[tuple[str, pa.Field]]:
    """Return the fields within a type, with their names in logs."""
    fields = fields_in(type_)
    names = next((names for is_a, names in _WITHIN.items() if is_a(type_)), None)
    return list(zip(names or [field.name for field in fields], fields, strict=True))


def with_children(type_: pa.DataType, children: Sequence[pa.Field]) -> pa.DataType:
    """Return a nested type with other fields within it."""
    if pt.is_struct(type_):
        return pa.struct(children)
    if pt.is_map(type_):
        return pa.map_(*children)
    return pa.list_(*children) if pt.is_list(type_) else type_


def position_in(struct: pa.StructType, target: pa.Field) -> int:
    """Find a field in a struct: by its id, by its names in files, or by its own name.

    The field's own name is matched exactly, or else without regard to case.

    Returns:
        The position of the field; -1 if no field matches; -2 if several match, or if the wanted
        field has only an id and the struct has none.
    """
    fields = fields_in(struct)
    metadata = target.metadata or {}
    ids = [(field.metadata or {}).get(FIELD_ID) for field in fields]
    if FIELD_ID in metadata and any(id_ is not None for id_ in ids):
        matches = [at for at, id_ in enumerate(ids) if id_ == metadata[FIELD_ID]]
    elif NAMES_IN_FILES in metadata:
        names = json.loads(metadata[NAMES_IN_FILES])
        matches = [at for at, field in enumerate(fields) if field.name in names]
    elif FIELD_ID in metadata:
        return -2
    else:
        exact = [at for at, field in enumerate(fields) if field.name == target.name]
        lower = target.name.lower()
        matches = exact or [at for at, field in enumerate(fields) if field.name.lower() == lower]
    return matches[0] if len(matches) == 1 else -2 if matches else -1


def absent(field: pa.Field, count: int) -> pa.Array:
    """Return the values of a field in `count` rows of files that lack it."""
    default = (field.metadata or {}).get(DEFAULT)
    if default is None:
        return pa.nulls(count, field.type)
    value: Any = json.loads(default)
    if pt.is_binary(field.type):
        return pa.repeat(pa.scalar(bytes.fromhex(value), field.type), count)
    return pa.repeat(pa.scalar(value).cast(field.type), count)
