"""Parse column types in Spark SQL's syntax."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from windrow_core.files.errors import UnknownTypeError
from windrow_core.files.type_texts import read_type
from windrow_core.files.types import MAX_DECIMAL_PRECISION, arrow_types

_PARSED = {exp.DataType.Type[name]: type_ for name, type_ in arrow_types("parser").items()}
_NAMES = {
    **arrow_types("synonyms"),
    **arrow_types("name"),
    "varchar": pa.string(),
    "char": pa.string(),
}
_SIZED = re.compile(r"(decimal|dec|numeric|varchar|char)\(([0-9]+(?:,[0-9]+)*)\)")
_DECIMALS = ("decimal", "dec", "numeric")
# Longer than the name of any type.
_MAX_NAME = 64


def parse_type(text: str) -> pa.DataType:
    """Parse a type for `arrow_type`."""
    return read_type(text, _scalar)


def _scalar(name: str, text: str) -> pa.DataType:
    type_ = _NAMES.get(name)
    if type_ is not None:
        return type_
    match = _SIZED.fullmatch(name)
    if match is None and name not in _DECIMALS:
        return _other(name, text)
    kind = name if match is None else match[1]
    if kind not in _DECIMALS:
        return pa.string()
    return _decimal([] if match is None else [int(digits) for digits in match[2].split(",")], text)


def _other(name: str, text: str) -> pa.DataType:
    """Return a type by a name that other systems give it, such as `double precision`."""
    if len(name) > _MAX_NAME:
        raise UnknownTypeError(text, "it cannot be parsed")
    try:
        # Through CAST, because sqlglot ignores what follows a bare type.
        cast = sqlglot.parse_one(f"CAST(NULL AS {name}\n)", dialect="spark")
    except (SqlglotError, RecursionError) as error:
        raise UnknownTypeError(text, "it cannot be parsed") from error
    if not isinstance(cast, exp.Cast) or not isinstance(cast.to, exp.DataType):
        raise UnknownTypeError(text, "it cannot be parsed")
    kind, arguments = cast.to.this, cast.to.expressions
    if kind in (exp.DataType.Type.VARCHAR, exp.DataType.Type.CHAR):
        return pa.string()
    if kind == exp.DataType.Type.DECIMAL:
        return _decimal([int(one.name) for one in arguments], text)
    scalar = _PARSED.get(kind)
    if scalar is None or arguments:
        raise UnknownTypeError(text, f"{name} is not a type for columns")
    return scalar


def _decimal(digits: Sequence[int], text: str) -> pa.DataType:
    precision, scale = (*digits, *(10, 0)[len(digits) :])[:2]
    if len(digits) > 2:
        raise UnknownTypeError(text, "a decimal takes a precision and a scale")
    if not (1 <= precision <= MAX_DECIMAL_PRECISION and scale <= precision):
        raise UnknownTypeError(
            text, "a decimal has 1 to 38 digits, and no more after the point than in total"
        )
    return pa.decimal128(precision, scale)


# Longer texts, of structs, are seldom shared by columns; keeping them takes memory.
_MAX_KEPT_CHARACTERS = 64


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a type in Spark SQL's syntax.

    `varchar` and `char` are read as strings; `timestamp` is in UTC; times have microseconds.

    Raises:
        UnknownTypeError: The text is not such a type.
    """
    return _kept(text) if len(text) <= _MAX_KEPT_CHARACTERS else parse_type(text)


# Wide tables have thousands of columns of few types.
_kept = lru_cache(maxsize=1024)(parse_type)
