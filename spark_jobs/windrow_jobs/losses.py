"""What rewriting a Parquet file through Spark would lose; such files are left as they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
_PANDAS = b"pandas"
_OF_WRITERS = (b"ARROW:schema", _PANDAS, b"parquet.avro.schema", b"writer.model.name")
_OF_SPARK = b"org.apache.spark."
_SPARK_ROW = b"org.apache.spark.sql.parquet.row.metadata"
# The table's definition in the catalog has these too.
_KEYS_OF_CATALOG = {"comment", "__CHAR_VARCHAR_TYPE_STRING"}


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
    """Return for each file what would be lost; None if nothing would, or if the file is gone.

    Args:
        location: Absolute path of the table's folder.
        paths: Paths of Parquet files, relative to the location.
        types: Types of the columns that are written, from `column_types`.
    """

    def look(path: str) -> str | None:
        try:
            with pq.ParquetFile(os.path.join(location, path)) as file:
                return loss(file, types)
        except FileNotFoundError:
            # The task that reads it says so.
            return None
        except (OSError, ValueError, pa.ArrowException) as error:
            return f"its footer cannot be read ({error})"

    with ThreadPoolExecutor(_READING_THREADS) as threads:
        return list(threads.map(look, paths))


def loss(file: pq.ParquetFile, types: Mapping[str, pa.DataType | None]) -> str | None:
    """Return what a file has that the columns of a table cannot take; None if nothing."""
    metadata = file.metadata.metadata or {}
    is_of_spark = _OF_SPARK + b"version" in metadata and file.metadata.created_by.startswith(
        "parquet-mr"
    )
    for field in file.schema_arrow:
        name = field.name
        if name not in types:
            return f"column {name!r} is none of the table's"
        if _plain(field.type, is_of_spark) != (expected := types[name]):
            return f"column {name!r} is {field.type} in the file, but would become {expected}"
        if keys := {key for each in _fields(field) for key in each.metadata or {}}:
            names = ", ".join(sorted(key.decode(errors="replace") for key in keys))
            return f"column {name!r} has {names}, which Spark would not write"
    if missing := [name for name in types if name not in file.schema_arrow.names]:
        # A catalog may know another value than null for them, as a default of older files.
        return f"the file lacks column {missing[0]!r}, and would get it, with null for each row"
    for at in range(len(file.schema.names)):
        leaf = file.schema.column(at)
        if leaf.logical_type.type not in _LOGICAL:
            return f"column {leaf.path!r} has the type {leaf.logical_type}"
    if (row := metadata.get(_SPARK_ROW)) is not None and (lost := _lost_of_row(row)) is not None:
        return lost
    if (note := metadata.get(_PANDAS)) is not None and _has_index(note):
        return "the file's metadata keeps an index of pandas"
    for key in metadata:
        if key not in _OF_WRITERS and not key.startswith(_OF_SPARK):
            return f"the file's metadata has the key {key.decode(errors='replace')!r}"
    return None


def _has_index(note: bytes) -> bool:
    """Tell whether pandas would miss an index: any but one that numbers the rows from 0."""
    try:
        index = json.loads(note)["index_columns"]
        return any(
            (each["kind"], each["name"], each["start"], each["step"]) != ("range", None, 0, 1)
            for each in index
        )
    except (LookupError, RecursionError, TypeError, ValueError):
        return True


def _lost_of_row(row: bytes) -> str | None:
    """Return what Spark's own note of a file's columns says that only their writer could repeat."""
    try:
        for column in _structs(json.loads(row)):
            if column.get("type") == "udt":
                return f"the file has a user-defined type ({column.get('class')})"
            if keys := column.get("metadata", {}).keys() - _KEYS_OF_CATALOG:
                names = ", ".join(sorted(keys))
                return f"column {column['name']!r} has {names} in Spark's metadata"
    except (AttributeError, LookupError, RecursionError, ValueError):
        return f"the file's metadata key {_SPARK_ROW.decode()!r} is not what Spark writes"
    return None


def _structs(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in JSON, except those in the metadata of columns."""
    if isinstance(node, dict):
        yield node
        for key, value in node.items():
            if key != "metadata":
                yield from _structs(value)
    elif isinstance(node, list):
        for value in node:
            yield from _structs(value)


def _fields(field: pa.Field) -> Iterator[pa.Field]:
    yield field
    for at in range(field.type.num_fields):
        yield from _fields(field.type.field(at))


def _plain(type_: pa.DataType, is_of_spark: bool) -> pa.DataType:
    """Return a type without nullability and the names within lists, which differ between writers.

    Args:
        type_: The type of a file's column.
        is_of_spark: Whether Spark wrote the file: its INT96, which Arrow reads as nanoseconds, has
            no digits below microseconds.
    """
    if is_of_spark and type_ == pa.timestamp("ns"):
        return pa.timestamp("us", "UTC")
    if pt.is_map(type_):
        return pa.map_(_plain(type_.key_type, is_of_spark), _plain(type_.item_type, is_of_spark))
    if pt.is_list(type_):
        return pa.list_(pa.field("element", _plain(type_.value_type, is_of_spark)))
    if pt.is_struct(type_):
        return pa.struct([(each.name, _plain(each.type, is_of_spark)) for each in type_])
    return type_
