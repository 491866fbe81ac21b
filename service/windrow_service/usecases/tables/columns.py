"""Columns in Arrow's types, and as callers see them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from windrow_core.files.file_fields import (
    DEFAULT,
    FIELD_ID,
    NAMES_IN_FILES,
    is_mapped,
    named_children,
)
from windrow_core.files.types import spark_type
from windrow_core.models import Column, FileField
from windrow_service.inventory.spark_types import arrow_type


def wire_columns(schema: pa.Schema) -> list[Column]:
    """Return a schema as names and Spark SQL types."""
    return [Column(name=field.name, type=spark_type(field.type)) for field in schema]


def schema_of(columns: Sequence[Column] | None) -> pa.Schema | None:
    """Return declared columns as a schema of Arrow types, with defaults; None stays None."""
    if columns is None:
        return None
    return pa.schema([_field(column) for column in columns])


def _field(column: Column) -> pa.Field:
    field = pa.field(column.name, arrow_type(column.type))
    return field if column.default is None else field.with_metadata({DEFAULT: column.default})


def file_fields(schema: pa.Schema, columns: Sequence[str]) -> dict[str, FileField]:
    """Return how files hold the columns that are not found by name alone."""
    names = set(columns)
    fields = ((field.name, _file_field(field)) for field in schema if field.name in names)
    return {name: file_field for name, file_field in fields if file_field is not None}


def default_fields(schema: pa.Schema, columns: Sequence[str]) -> dict[str, FileField]:
    """Return the defaults of columns that are found by name, in rows of files that lack them."""
    names = set(columns)
    defaults = ((field.name, (field.metadata or {}).get(DEFAULT)) for field in schema)
    return {
        name: FileField(default=default.decode())
        for name, default in defaults
        if default is not None and name in names
    }


def _file_field(field: pa.Field) -> FileField | None:
    metadata = field.metadata or {}
    within = ((name, _file_field(child)) for name, child in named_children(field.type))
    fields = {name: file_field for name, file_field in within if file_field is not None}
    if not is_mapped(field):
        return None
    id_, default = metadata.get(FIELD_ID), metadata.get(DEFAULT)
    return FileField(
        id=int(id_) if id_ is not None else None,
        names=json.loads(metadata.get(NAMES_IN_FILES, b"[]")),
        default=default.decode() if default is not None else None,
        fields=fields,
    )
