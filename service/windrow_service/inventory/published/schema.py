"""The columns of a table, as given by a published inventory."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.limits import TooWideError, refuse_wide
from windrow_core.files.schema import MAX_NAME, MAX_TYPE_TEXT, ColumnNames
from windrow_core.files.type_texts import most_fields
from windrow_core.files.types import spark_type
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.spark_types import arrow_type

# In the stream's metadata: a JSON list of {"name": …, "type": …}, with types of Spark SQL.
COLUMNS_KEY = b"windrow:columns"
_MAX_COLUMNS = 10_000


def published_columns(
    upload: pa.Table, declared: pa.Schema | None, previous: pa.Schema | None, max_fields: int
) -> pa.Schema:
    """Return the table's columns: as declared, else as published, else as before.

    If the metadata does not list them and the table has no snapshot yet, its columns are those
    of `stats`.

    Args:
        upload: The inventory as it was sent.
        declared: The table's declared columns.
        previous: Data columns of the table's current snapshot.
        max_fields: Most fields of all columns.

    Raises:
        InvalidInventoryError: The columns are unknown, or contradict the declared ones.
        UnknownTypeError: A type is not a Spark SQL type.
        DuplicateColumnError: Two names differ only in case.
    """
    own = _listed(upload, max_fields)
    if declared is not None:
        if own is not None:
            _refuse_others(own, declared)
        return declared
    if own is not None:
        return own
    if previous is not None:
        return previous
    if "stats" in upload.column_names and pt.is_struct(upload.schema.field("stats").type):
        stats = upload.schema.field("stats").type
        _refuse_wide(stats.num_fields, max_fields)
        return _columns_of_stats(stats)
    raise InvalidInventoryError(
        "the table's columns are unknown: declare them, refresh the table first, list them in "
        f"the stream's metadata under {COLUMNS_KEY.decode()!r}, or send statistics"
    )


def _listed(upload: pa.Table, max_fields: int) -> pa.Schema | None:
    text = (upload.schema.metadata or {}).get(COLUMNS_KEY)
    if text is None:
        return None
    name = COLUMNS_KEY.decode()
    try:
        columns = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInventoryError(f"metadata {name!r} is not JSON: {error}") from error
    if not isinstance(columns, list) or len(columns) > _MAX_COLUMNS:
        raise InvalidInventoryError(
            f"metadata {name!r} is not a list of at most {_MAX_COLUMNS:,} columns"
        )
    fields = []
    count = 0
    for at, column in enumerate(columns):
        if not (
            isinstance(column, dict)
            and column.keys() == {"name", "type"}
            and all(isinstance(value, str) and value for value in column.values())
        ):
            raise InvalidInventoryError(
                f"metadata {name!r}, entry {at}: it is not an object with a name and a type"
            )
        count += most_fields(column["type"])
        _refuse_wide(count, max_fields)
        try:
            fields.append(pa.field(column["name"], arrow_type(column["type"])))
        except UnicodeEncodeError as error:
            raise InvalidInventoryError(f"metadata {name!r}, entry {at}: {error}") from error
    return _checked(pa.schema(fields))


def _refuse_wide(count: int, max_fields: int) -> None:
    try:
        refuse_wide(count, max_fields)
    except TooWideError as error:
        raise InvalidInventoryError(f"it has {error}") from error


def _refuse_others(own: pa.Schema, declared: pa.Schema) -> None:
    names = ColumnNames(declared)
    for field in own:
        at = names.find(field.name)
        if at is None or declared.field(at).type != field.type:
            fact = "not declared" if at is None else f"declared as {declared.field(at).type}"
            raise InvalidInventoryError(
                f"column {field.name!r} is published as {field.type} and {fact}: change the "
                "table's definition, or leave it out"
            )


def _columns_of_stats(stats: pa.StructType) -> pa.Schema:
    fields = []
    for field in stats:
        end = field.type.get_field_index("min") if pt.is_struct(field.type) else -1
        if end < 0:
            raise InvalidInventoryError(f"column 'stats.{field.name}' has no 'min'")
        type_ = field.type.field(end).type
        # Raises if Spark has no such type.
        spark_type(type_)
        fields.append(pa.field(field.name, type_))
    return _checked(pa.schema(fields))


def _checked(schema: pa.Schema) -> pa.Schema:
    """Return a schema, after checking that it can be sent to callers."""
    for at, field in enumerate(schema):
        if not 0 < len(field.name) <= MAX_NAME:
            raise InvalidInventoryError(
                f"column {at} has a name of {len(field.name):,} characters: give it 1 to {MAX_NAME:,}"
            )
        if (length := len(spark_type(field.type))) > MAX_TYPE_TEXT:
            raise InvalidInventoryError(
                f"the type of column {field.name!r} has {length:,} characters, and may have at most "
                f"{MAX_TYPE_TEXT:,}: leave the column out"
            )
    ColumnNames(schema)
    return schema
