"""What rewriting a Parquet file through Spark would lose; such files are left as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from windrow.models import Column
from windrow.spark.arrow_types import arrow_schema, spark_schema
from windrow.spark.errors import UnsupportedTypeError

_READING_THREADS = 8
# Spark writes no other types.
_LOGICAL = {"NONE", "STRING", "INT", "DECIMAL", "DATE", "TIMESTAMP", "LIST", "MAP"}
# Keys that describe the schema or the program; a rewritten file needs none of them.
_OF_WRITERS = (b"ARROW:schema", b"pandas", b"parquet.avro.schema", b"writer.model.name")
_OF_SPARK = b"org.apache.spark."
_FIELD_ID = b"PARQUET:field_id"


def column_types(columns: Sequence[Column]) -> dict[str, pa.DataType | None]:
    """Return the types of columns as Spark writes them; None for those that Arrow has no type for.

    A Spark session must be running: its parser reads the types.
    """
    types: dict[str, pa.DataType | None] = {}
    for column in columns:
        try:
            types[column.name] = arrow_schema(spark_schema([column])).field(0).type
        except UnsupportedTypeError:
            types[column.name] = None
    return types


def losses(
    location: str, paths: Sequence[str], types: Mapping[str, pa.DataType | None]
) -> list[str | None]:
    """Return for each file what would be lost; None if nothing would, or if it cannot be read.

    Args:
        location: Absolute path of the table's folder.
        paths: Paths of Parquet files, relative to the location.
        types: Types of the columns that are written, from `column_types`.
    """

    def look(path: str) -> str | None:
        try:
            with pq.ParquetFile(os.path.join(location, path)) as file:
                return loss(file, types)
        except (OSError, pa.ArrowException):
            # It is gone or damaged: the task that reads it says so.
            return None

    with ThreadPoolExecutor(_READING_THREADS) as threads:
        return list(threads.map(look, paths))


def loss(file: pq.ParquetFile, types: Mapping[str, pa.DataType | None]) -> str | None:
    """Return what a file has that the columns of a table cannot take; None if nothing."""
    for field in file.schema_arrow:
        name = field.name
        if name not in types:
            return f"column {name!r} is none of the table's"
        if _plain(field.type) != (expected := types[name]):
            return f"column {name!r} is {field.type} in the file, but would become {expected}"
        if any(_FIELD_ID in (each.metadata or {}) for each in _fields(field)):
            return f"column {name!r} has a field id, which Spark would not write"
    metadata = file.metadata.metadata or {}
    for at in range(len(file.schema.names)):
        leaf = file.schema.column(at)
        if leaf.logical_type.type not in _LOGICAL:
            return f"column {leaf.path!r} has the type {leaf.logical_type}"
    for key in metadata:
        if key not in _OF_WRITERS and not key.startswith(_OF_SPARK):
            return f"the file's metadata has the key {key.decode(errors='replace')!r}"
    return None


def _fields(field: pa.Field) -> Iterator[pa.Field]:
    yield field
    type_ = field.type
    for at in range(type_.num_fields):
        child = type_.field(at)
        yield from _fields(child)


def _plain(type_: pa.DataType) -> pa.DataType:
    """Return a type without what only Arrow knows of: how it is encoded, zones, nullability."""
    if pt.is_dictionary(type_):
        return _plain(type_.value_type)
    if pt.is_large_string(type_):
        return pa.string()
    if pt.is_large_binary(type_):
        return pa.binary()
    if pt.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    if pt.is_map(type_):
        return pa.map_(_plain(type_.key_type), _plain(type_.item_type))
    if pt.is_list(type_) or pt.is_large_list(type_):
        return pa.list_(pa.field("element", _plain(type_.value_type)))
    if pt.is_struct(type_):
        return pa.struct([(each.name, _plain(each.type)) for each in type_])
    return type_
