"""Defaults of columns, in rows of files that lack them: as Spark's SQL, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from windrow_core.models import FileField

# The key in the metadata of a field under which Spark keeps the default, as SQL.
EXISTS_DEFAULT = "EXISTS_DEFAULT"


def with_defaults(schema: StructType, fields: Mapping[str, FileField]) -> StructType:
    """Return a schema whose defaults Spark's own readers give to rows of files without a column.

    Args:
        schema: The columns.
        fields: How files hold columns; those found by ids or by other names are left out, as
            Spark's own readers do not find them.
    """
    return StructType([_with_default(field, fields.get(field.name)) for field in schema])


def _with_default(field: StructField, file_field: FileField | None) -> StructField:
    if (
        file_field is None
        or file_field.default is None
        or file_field.id is not None
        or file_field.names
    ):
        return field
    sql = _as_sql(json.loads(file_field.default), field.dataType)
    return StructField(field.name, field.dataType, field.nullable, {EXISTS_DEFAULT: sql})


def _as_sql(value: Any, type_: DataType) -> str:
    if isinstance(type_, BinaryType):
        return f"X'{value}'"
    if isinstance(type_, StringType):
        # How Spark reads escapes in quotes is a setting of the session.
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    return f"CAST('{value}' AS {type_.simpleString()})"


def as_json(value: Any) -> str | None:
    """Return a value from Spark as the JSON of a default; None if it has no such form."""
    if isinstance(value, (bytes, bytearray)):
        return json.dumps(bytes(value).hex())
    if isinstance(value, Decimal):
        return json.dumps(format(value, "f"))
    if isinstance(value, (datetime, date)):
        return json.dumps(value.isoformat())
    if isinstance(value, (bool, int, str)) or (isinstance(value, float) and _is_finite(value)):
        return json.dumps(value)
    return None


def _is_finite(value: float) -> bool:
    return value - value == 0
