"""Column types on the way from a plan to Spark and Arrow."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
    _parse_datatype_json_string,
    _parse_datatype_string,
)

from windrow_core.files.types import COLUMN_TYPES, arrow_types
from windrow_core.models import Column
from windrow_spark.errors import UnsupportedTypeError

_ARROW = arrow_types("spark")


# The collation of Spark's strings that have no other.
_BY_BYTES = "UTF8_BINARY"

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
# Types by the names that Spark gives them in JSON, where these differ from those in SQL.
_IN_JSON = {row.name: row.json for row in COLUMN_TYPES}


def spark_schema(columns: Sequence[Column]) -> StructType:
    """Return columns as a Spark schema, all nullable.

    A Spark session must be running: its parser reads the types that have parts.
    """
    types = [_plain_type(column.type) for column in columns]
    places = [at for at, type_ in enumerate(types) if type_ is None]
    if places:
        # One call parses all of them, under column names that need no quoting.
        ddl = ", ".join(f"c{at} {columns[at].type}" for at in places)
        for at, field in zip(places, _parse_datatype_string(ddl), strict=True):
            types[at] = _without_length(field.dataType)
    return StructType(
        [
            StructField(column.name, type_)
            for column, type_ in zip(columns, types, strict=True)
            if type_ is not None
        ]
    )


@lru_cache(maxsize=1_000)
def _plain_type(text: str) -> DataType | None:
    """Return a type without parts, as Spark's parser does by default; None for any other.

    The parser is in the JVM, and a scan asks for several schemas.
    """
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        return DecimalType(int(decimal[1]), int(decimal[2]))
    name = _IN_JSON.get(text)
    return None if name is None else _parse_datatype_json_string(json.dumps(name))


def plain_schema(columns: Sequence[Column]) -> StructType:
    """Return columns as `spark_schema` does, without a running session."""
    fields = []
    for column in columns:
        name = column.type.lower().replace(" ", "")
        try:
            type_ = _parse_datatype_json_string(json.dumps(_IN_JSON.get(name, name)))
        except PySparkException as error:
            raise UnsupportedTypeError(column.name, column.type) from error
        fields.append(StructField(column.name, _without_length(type_)))
    return StructType(fields)


def _without_length(type_: DataType) -> DataType:
    # A DataFrame has char and varchar columns as strings.
    return StringType() if isinstance(type_, (CharType, VarcharType)) else type_


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return a Spark schema as the Arrow schema that `mapInArrow` expects."""
    return pa.schema([(field.name, _arrow_type(field.name, field.dataType)) for field in columns])


def _arrow_type(column: str, type_: DataType) -> pa.DataType:
    if isinstance(type_, DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, ArrayType):
        return pa.list_(pa.field("element", _arrow_type(column, type_.elementType)))
    if isinstance(type_, MapType):
        return pa.map_(_arrow_type(column, type_.keyType), _arrow_type(column, type_.valueType))
    if isinstance(type_, StructType):
        return pa.struct([(field.name, _arrow_type(column, field.dataType)) for field in type_])
    # Texts of other collations are compared and grouped in another way.
    if getattr(type_, "collation", _BY_BYTES) != _BY_BYTES:
        raise UnsupportedTypeError(column, type_.simpleString())
    try:
        return _ARROW[type(type_).__name__]
    except KeyError as error:
        raise UnsupportedTypeError(column, type_.simpleString()) from error
