"""Column types: one row per type, with its names in everything that Windrow reads and talks to.

A new type is a row of `COLUMN_TYPES`: schemas, statistics, partition columns, pruning and hashing look
up here what it is called, and how its values are stored. Decimals, which have a precision, and nested
types are not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.errors import UnknownTypeError

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

MAX_DECIMAL_PRECISION = 38

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the reference of times without a zone


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """A type without parts.

    Attributes:
        name: Its name in Spark SQL.
        arrow: The type in Arrow, and so in inventories.
        stored: The type of the numbers that its values are in files, by which they are ordered and
            hashed; the type itself unless they are days or microseconds.
        synonyms: Its other names in Spark SQL.
        json: Its name in Spark's JSON, and so in the logs of Delta tables.
        spark: Its class in `pyspark.sql.types`, and others that are read as this type.
        parser: Its names in sqlglot.
        orc: Its kinds in ORC; the name that Spark notes beside a kind follows it after a space.
        avro: Its primitive types in Avro; the logical type follows one after a space.
        iceberg: Its classes in `pyiceberg.types`.
        is_ordered: Whether its values have an order, so that there are statistics of them.
        text: For days and microseconds: writes the number as text, for literals of filters in JSON.
        parse: Reads that text; raises ValueError if it is not one.
    """

    name: str
    arrow: pa.DataType
    stored: pa.DataType
    synonyms: tuple[str, ...] = ()
    json: str
    spark: tuple[str, ...]
    parser: tuple[str, ...]
    orc: tuple[str, ...] = ()
    avro: tuple[str, ...] = ()
    iceberg: tuple[str, ...] = ()
    is_ordered: bool = True
    text: Callable[[int], str] | None = None
    parse: Callable[[str], int] | None = None


def _date_text(days: int) -> str:
    return (_EPOCH.date() + timedelta(days)).isoformat()


def _days(text: str) -> int:
    return (date.fromisoformat(text) - _EPOCH.date()).days


def _time_text(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _microseconds(text: str, *, has_zone: bool) -> int:
    # Python 3.10 does not know `Z`.
    moment = datetime.fromisoformat(text.removesuffix("Z") + "+00:00" * text.endswith("Z"))
    if (moment.tzinfo is not None) != has_zone:
        raise ValueError(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    return (moment - _EPOCH) // timedelta(microseconds=1)


COLUMN_TYPES = (
    ColumnType(
        name="boolean",
        arrow=pa.bool_(),
        stored=pa.bool_(),
        json="boolean",
        spark=("BooleanType",),
        parser=("BOOLEAN",),
        orc=("BOOLEAN",),
        avro=("boolean",),
        iceberg=("BooleanType",),
    ),
    ColumnType(
        name="tinyint",
        arrow=pa.int8(),
        stored=pa.int8(),
        synonyms=("byte",),
        json="byte",
        spark=("ByteType",),
        parser=("TINYINT",),
        orc=("BYTE",),
    ),
    ColumnType(
        name="smallint",
        arrow=pa.int16(),
        stored=pa.int16(),
        synonyms=("short",),
        json="short",
        spark=("ShortType",),
        parser=("SMALLINT",),
        orc=("SHORT",),
    ),
    ColumnType(
        name="int",
        arrow=pa.int32(),
        stored=pa.int32(),
        synonyms=("integer",),
        json="integer",
        spark=("IntegerType",),
        parser=("INT",),
        orc=("INT",),
        avro=("int",),
        iceberg=("IntegerType",),
    ),
    ColumnType(
        name="bigint",
        arrow=pa.int64(),
        stored=pa.int64(),
        synonyms=("long",),
        json="long",
        spark=("LongType",),
        parser=("BIGINT",),
        orc=("LONG",),
        avro=("long",),
        iceberg=("LongType",),
    ),
    ColumnType(
        name="float",
        arrow=pa.float32(),
        stored=pa.float32(),
        synonyms=("real",),
        json="float",
        spark=("FloatType",),
        parser=("FLOAT",),
        orc=("FLOAT",),
        avro=("float",),
        iceberg=("FloatType",),
    ),
    ColumnType(
        name="double",
        arrow=pa.float64(),
        stored=pa.float64(),
        json="double",
        spark=("DoubleType",),
        parser=("DOUBLE",),
        orc=("DOUBLE",),
        avro=("double",),
        iceberg=("DoubleType",),
    ),
    ColumnType(
        name="string",
        arrow=pa.string(),
        stored=pa.string(),
        json="string",
        spark=("StringType", "CharType", "VarcharType"),
        parser=("TEXT",),
        orc=("STRING", "VARCHAR", "CHAR"),
        avro=("string",),
        iceberg=("StringType",),
    ),
    ColumnType(
        name="binary",
        arrow=pa.binary(),
        stored=pa.binary(),
        json="binary",
        spark=("BinaryType",),
        parser=("BINARY",),
        orc=("BINARY",),
        avro=("bytes",),
        iceberg=("BinaryType", "FixedType"),
    ),
    ColumnType(
        name="date",
        arrow=pa.date32(),
        stored=pa.int32(),
        json="date",
        spark=("DateType",),
        parser=("DATE",),
        orc=("DATE",),
        avro=("int date",),
        iceberg=("DateType",),
        text=_date_text,
        parse=_days,
    ),
    ColumnType(
        name="timestamp",
        arrow=TIMESTAMP,
        stored=pa.int64(),
        synonyms=("timestamp_ltz",),
        json="timestamp",
        spark=("TimestampType",),
        # Versions of sqlglot differ in which of these Spark's `timestamp` becomes.
        parser=("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"),
        orc=("TIMESTAMP", "TIMESTAMP_INSTANT"),
        avro=("long timestamp-millis", "long timestamp-micros"),
        iceberg=("TimestamptzType",),
        text=lambda number: f"{_time_text(number)}Z",
        parse=lambda text: _microseconds(text, has_zone=True),
    ),
    ColumnType(
        name="timestamp_ntz",
        arrow=TIMESTAMP_NTZ,
        stored=pa.int64(),
        json="timestamp_ntz",
        spark=("TimestampNTZType",),
        parser=("TIMESTAMPNTZ",),
        orc=("LONG timestamp_ntz",),
        avro=("long local-timestamp-millis", "long local-timestamp-micros"),
        iceberg=("TimestampType",),
        text=_time_text,
        parse=lambda text: _microseconds(text, has_zone=False),
    ),
    ColumnType(
        name="void",
        arrow=pa.null(),
        stored=pa.null(),
        json="void",
        spark=("NullType",),
        parser=("NULL",),
        avro=("null",),
        is_ordered=False,
    ),
)


def arrow_types(names: str) -> dict[str, pa.DataType]:
    """Return the Arrow types by their names.

    Args:
        names: The attribute of `ColumnType` that has the names.
    """
    types: dict[str, pa.DataType] = {}
    for row in COLUMN_TYPES:
        own = getattr(row, names)
        types |= dict.fromkeys((own,) if isinstance(own, str) else own, row.arrow)
    return types


_BY_ARROW = {row.arrow: row for row in COLUMN_TYPES}
# What reads the text of literals, by type in Arrow. Functions alone: tasks get this by value, and the
# pickler of Spark 3.5 loses the fields of classes with slots.
LITERAL_PARSERS = {row.arrow: row.parse for row in COLUMN_TYPES if row.parse is not None}
# Of all units and time zones, as files may have them.
_STORED = {row.arrow.id: row.stored for row in COLUMN_TYPES}
_ORDERED = frozenset(row.arrow.id for row in COLUMN_TYPES if row.is_ordered)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def spark_type(type_: pa.DataType) -> str:
    """Return the type as Spark SQL writes it, for example `struct<a:int,b:array<string>>`.

    Raises:
        UnknownTypeError: Spark has no such type, or only a wider one.
    """
    if (row := _BY_ARROW.get(type_)) is not None:
        return row.name
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
    """Return whether columns of this type carry min/max statistics that pruning can use."""
    return type_.id in _ORDERED or bool(
        pt.is_decimal(type_) or pt.is_integer(type_) or pt.is_float16(type_)
    )


def stored_as(type_: pa.DataType) -> pa.DataType:
    """Return the type of the numbers that values of a type are; the type itself for other values."""
    return _STORED.get(type_.id, type_)


def _quote(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"
