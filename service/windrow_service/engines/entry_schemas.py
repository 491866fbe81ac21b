"""Schemas of the entries of Iceberg's manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from windrow_service.engines.columns import TableColumns

# Keys of Iceberg's maps, and their values.
_MAPS = {
    "column_sizes": (108, 117, 118),
    "value_counts": (109, 119, 120),
    "null_value_counts": (110, 121, 122),
}
_MAPS_OF_VECTORS = {"column_sizes": _MAPS["column_sizes"]}
_BOUNDS = {"lower_bounds": (125, 126, 127), "upper_bounds": (128, 129, 130)}
# What only deletion vectors have.
_OF_VECTORS = (
    ("referenced_data_file", 143, "string"),
    ("content_offset", 144, "long"),
    ("content_size_in_bytes", 145, "long"),
)


def decimal_width(precision: int) -> int:
    """Return how many bytes a decimal of some digits takes."""
    return next(width for width in range(1, 17) if 10**precision < 2 ** (8 * width - 1))


_PARTITION_TYPES: Mapping[str, Any] = {
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
}


def _partition_type(field: pa.Field, iceberg: str, number: int) -> Any:
    if pt.is_decimal(field.type):
        precision, scale = field.type.precision, field.type.scale
        return {
            "type": "fixed",
            "size": decimal_width(precision),
            "name": f"decimal_{number}",
            "logicalType": "decimal",
            "precision": precision,
            "scale": scale,
        }
    return _PARTITION_TYPES.get(iceberg, iceberg)


def _field(name: str, number: int, type_: Any, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", type_], "default": None, "field-id": number}
    return {"name": name, "type": type_, "field-id": number}


def _map(key: int, value: int, type_: str) -> dict[str, Any]:
    record = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [_field("key", key, "int"), _field("value", value, type_)],
    }
    return {"type": "array", "items": record, "logicalType": "map"}


def entry_schema(
    columns: TableColumns, *, are_vectors: bool = False, are_deletes: bool = False
) -> dict[str, Any]:
    """Return the schema of a manifest's entries.

    Args:
        columns: The table's columns.
        are_vectors: Whether they are deletion vectors, which lie within files.
        are_deletes: Whether they are files of deleted rows, of which less is known.
    """
    types = {field["name"]: field["type"] for field in columns.fields}
    partition = [
        _field(
            _avro_name(spec["name"]),
            spec["field-id"],
            _partition_type(field, types[field.name], spec["field-id"]),
            optional=True,
        )
        for spec, field in zip(columns.as_spec(), columns.partition, strict=True)
    ]
    maps = [
        _field(name, number, _map(key, value, type_), optional=True)
        for all_maps, type_ in (
            (_MAPS_OF_VECTORS if are_vectors or are_deletes else _MAPS, "long"),
            (_BOUNDS, "bytes"),
        )
        for name, (number, key, value) in all_maps.items()
    ]
    file = [
        _field("content", 134, "int"),
        _field("file_path", 100, "string"),
        _field("file_format", 101, "string"),
        _field("partition", 102, {"type": "record", "name": "r102", "fields": partition}),
        _field("record_count", 103, "long"),
        _field("file_size_in_bytes", 104, "long"),
        *maps,
        *(_field(*one, optional=True) for one in (_OF_VECTORS if are_vectors else ())),
    ]
    fields = [
        _field("status", 0, "int"),
        _field("snapshot_id", 1, "long", optional=True),
        _field("sequence_number", 3, "long", optional=True),
        _field("file_sequence_number", 4, "long", optional=True),
        _field("data_file", 2, {"type": "record", "name": "r2", "fields": file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def _avro_name(name: str) -> str:
    """Return a column's name as Iceberg writes it in Avro."""
    word = re.sub(r"[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{word}" if word[:1].isdigit() else word
