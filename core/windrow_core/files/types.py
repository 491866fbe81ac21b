"""Column types: as Spark SQL writes them, and which of them have an order."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.errors import UnknownTypeError

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

MAX_DECIMAL_PRECISION = 38

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    pa.null(): "void",
}

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def spark_type(type_: pa.DataType) -> str:
    """Return the type as Spark SQL writes it, for example `struct<a:int,b:array<string>>`.

    Raises:
        UnknownTypeError: Spark has no such type, or only a wider one.
    """
    if (name := _NAMES.get(type_)) is not None:
        return name
    if pt.is_decimal(type_) and type_.precision <= MAX_DECIMAL_PRECISION and type_.scale >= 0:
        return f"decimal({type_.precision},{type_.scale})"
    if pt.is_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if pt.is_map(type_):
        return f"map<{spark_type(type_.key_type)},{spark_type(type_.item_type)}>"
    if pt.is_struct(type_):
        fields = (f"{_quote(field.name)}:{spark_type(field.type)}" for field in type_)
        return f"struct<{','.join(fields)}>"
    raise UnknownTypeError(str(type_), "Spark SQL has no type with the same values")


def has_order(type_: pa.DataType) -> bool:
    """Tell whether columns of this type carry min/max statistics that pruning can use."""
    return bool(
        pt.is_boolean(type_)
        or pt.is_integer(type_)
        or pt.is_floating(type_)
        or pt.is_decimal(type_)
        or pt.is_string(type_)
        or pt.is_binary(type_)
        or pt.is_date32(type_)
        or pt.is_timestamp(type_)
    )


def _quote(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"
