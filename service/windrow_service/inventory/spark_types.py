"""Parse column types in Spark SQL's syntax."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.types as pt
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from windrow.files.errors import UnknownTypeError
from windrow.files.types import MAX_DECIMAL_PRECISION, TIMESTAMP, TIMESTAMP_NTZ

_SCALARS: dict[object, pa.DataType] = {
    exp.DataType.Type.BOOLEAN: pa.bool_(),
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.BINARY: pa.binary(),
    exp.DataType.Type.DATE: pa.date32(),
    # Versions of sqlglot differ in which of these Spark's `timestamp` becomes.
    exp.DataType.Type.TIMESTAMP: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DataType.Type.NULL: pa.null(),
}

# sqlglot's name for Spark's void is null, and it accepts fewer words as field names.
_WORD = re.compile(r"(`(?:[^`]|``)*`|'[^']*')|(\w+)(?=\s*:)|\bvoid\b", re.IGNORECASE)
_QUOTED = re.compile(r"`(?:[^`]|``)*`|'[^']*'")


def parse_type(text: str) -> pa.DataType:
    """Parse a type for `arrow_type`."""
    if ";" in _QUOTED.sub("", text):
        raise UnknownTypeError(text, "it contains a semicolon")
    if text.strip().lower() == "struct<>":
        return pa.struct([])
    sql = _WORD.sub(lambda found: found[1] or (f"`{found[2]}`" if found[2] else "null"), text)
    try:
        # Through CAST, because sqlglot ignores what follows a bare type.
        cast = sqlglot.parse_one(f"CAST(NULL AS {sql}\n)", dialect="spark")
    except (SqlglotError, RecursionError) as error:
        raise UnknownTypeError(text, "it cannot be parsed") from error
    if not isinstance(cast, exp.Cast) or not isinstance(cast.to, exp.DataType):
        raise UnknownTypeError(text, "it cannot be parsed")
    return _to_arrow(cast.to, text)


def _to_arrow(type_: exp.DataType, text: str) -> pa.DataType:
    kind, arguments = type_.this, type_.expressions
    if kind in (exp.DataType.Type.VARCHAR, exp.DataType.Type.CHAR):
        return pa.string()
    if kind == exp.DataType.Type.DECIMAL:
        return _decimal(arguments, text)
    if kind == exp.DataType.Type.STRUCT:
        return pa.struct([_struct_field(argument, text) for argument in arguments])
    children = [argument for argument in arguments if isinstance(argument, exp.DataType)]
    if len(children) == len(arguments):
        if kind == exp.DataType.Type.ARRAY and len(children) == 1:
            return pa.list_(_to_arrow(children[0], text))
        if kind == exp.DataType.Type.MAP and len(children) == 2:
            key, item = (_to_arrow(child, text) for child in children)
            if pt.is_null(key):
                raise UnknownTypeError(text, "the keys of a map cannot be void")
            return pa.map_(key, item)
    scalar = _SCALARS.get(kind)
    if scalar is None or arguments:
        raise UnknownTypeError(text, f"{type_.sql('spark').lower()} is not a type for columns")
    return scalar


def _decimal(arguments: list[exp.Expression], text: str) -> pa.DataType:
    digits = [int(argument.name) for argument in arguments if argument.name.isdecimal()]
    precision, scale = (*digits, *(10, 0)[len(digits) :])[:2]
    if len(digits) != len(arguments) or len(digits) > 2:
        raise UnknownTypeError(text, "a decimal takes a precision and a scale")
    if not (1 <= precision <= MAX_DECIMAL_PRECISION and scale <= precision):
        raise UnknownTypeError(
            text, "a decimal has 1 to 38 digits, and no more after the point than in total"
        )
    return pa.decimal128(precision, scale)


def _struct_field(argument: exp.Expression, text: str) -> pa.Field:
    if not isinstance(argument, exp.ColumnDef) or not isinstance(argument.kind, exp.DataType):
        raise UnknownTypeError(text, "each field of a struct is written `name:type`")
    return pa.field(argument.name, _to_arrow(argument.kind, text))


# Longer texts, of structs, are seldom shared by columns; keeping them takes memory.
_MAX_KEPT_CHARACTERS = 64


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a type in Spark SQL's syntax.

    `varchar` and `char` are read as strings; `timestamp` is in UTC; times have microseconds.

    Raises:
        UnknownTypeError: The text is not such a type.
    """
    return _kept(text) if len(text) <= _MAX_KEPT_CHARACTERS else parse_type(text)


# Parsing takes a millisecond, and wide tables have thousands of columns of few types.
_kept = lru_cache(maxsize=1024)(parse_type)
