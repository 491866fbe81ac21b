"""Decides for which columns of a Parquet file the bounds in its footer are trusted.

A footer states bounds in two ways: as `min_value` and `max_value`, in the order that the footer
names for each column, or as `min` and `max`, which are deprecated, because writers compared bytes
with the wrong sign. Arrow reads the first if the footer names orders, else the second.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from windrow_core.files.excerpts.thrift import END, LIST, STRUCT, Skimmer, ThriftError, listed, text

# The rules by which statistics become bounds, lists of columns that only one reader reads
# correctly, and layouts, in every format. Raise it with each change of them: the next refresh of a table reads
# the footers, or the log, again from which manifests were made under other rules.
RULES = 6

_COLUMN_ORDERS = 7  # field of Parquet's FileMetaData
# A field that follows field 6, the writer; and the one order that the format defines.
_HEAD = bytes([1 << 4 | LIST])
_TYPE_DEFINED = bytes([1 << 4 | STRUCT]) + END + END

_SIGNED = {"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE"}
_WHOLE = {"BOOLEAN", "INT32", "INT64"}
_IN_BYTES = {"FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"}
_NAN_SEEN_BY_MR = (1, 10), (1, 17)


class Kind(enum.Enum):
    """What writers do right or wrong when they look for the bounds of a column."""

    # Signed integers and booleans: no zone, unit, calendar or order can be mistaken.
    WHOLE = enum.auto()
    TIME = enum.auto()
    TEXT = enum.auto()
    DECIMAL_IN_BYTES = enum.auto()
    OTHER = enum.auto()


_ALL = frozenset(Kind)
_DECIMALS = frozenset({Kind.DECIMAL_IN_BYTES})
_OF_UNKNOWN_WRITERS = frozenset({Kind.WHOLE})


class Record(NamedTuple):
    """What is known about the bounds of a writer.

    Attributes:
        right: Those that are trusted.
        wrong: Those that are known to be wrong in some files.
    """

    right: frozenset[Kind]
    wrong: frozenset[Kind] = frozenset()


_UNKNOWN = Record(_OF_UNKNOWN_WRITERS)
# Many writers have compared decimals in bytes as bytes, so that negative numbers counted as the greatest.
_BUT_DECIMALS = Record(_ALL - _DECIMALS)
_WRONG_DECIMALS = Record(_ALL - _DECIMALS, _DECIMALS)
# By name, since which version, latest first.
_WRITERS: Mapping[str, Sequence[tuple[tuple[int, int], Record]]] = {
    "parquet-mr": (((1, 10), Record(_ALL)), ((0, 0), _WRONG_DECIMALS)),
    "parquet-mr-trino": (((0, 0), Record(_ALL)),),
    "parquet-cpp-arrow": (((0, 0), Record(_ALL)),),
    "parquet-cpp": (((1, 4), _WRONG_DECIMALS),),
    "DuckDB": (((0, 0), Record(_ALL)),),
    "Polars": (((0, 0), _WRONG_DECIMALS),),
    # Version 5 takes the shorter one of two texts for the lesser one.
    "parquet-rs": (
        ((6, 0), _BUT_DECIMALS),
        ((0, 0), Record(_OF_UNKNOWN_WRITERS, frozenset({Kind.TEXT}))),
    ),
    "datafusion": (((0, 0), _BUT_DECIMALS),),
    "impala": (((0, 0), _BUT_DECIMALS),),
    "fastparquet-python": (((0, 0), _BUT_DECIMALS),),
    # Polars's writer until 2023, where the bounds of some pages count for the whole chunk.
    "Arrow2": (((0, 0), Record(frozenset(), _ALL)),),
    # Version 4.25 shifts times by the writer's time zone, 6.0 states them in another unit. Texts are
    # compared as UTF-16 or by language.
    "Parquet.Net": (((0, 0), Record(_OF_UNKNOWN_WRITERS, frozenset({Kind.TIME, Kind.TEXT}))),),
    # States times in seconds where a chunk has a dictionary.
    "https://github.com/r-lib/nanoparquet": (
        ((0, 0), Record(_OF_UNKNOWN_WRITERS, frozenset({Kind.TIME}))),
    ),
}
_WRITER = re.compile(r"(\S+)(?: version v?(\d{1,9})(?:\.(\d{1,9}))?\S*)?(?: [(-].*)?", re.DOTALL)

_ARROW_SCHEMA = b"ARROW:schema"
_ARROWS_ROOT = "\nrequired group field_id=-1 schema {"


class Trusted(NamedTuple):
    """What is trusted in a file.

    Attributes:
        bounds: For each column, whether its bounds hold for the values.
        sees_nan: Whether bounds of floats prove that no value is NaN.
        only_by_spark: The columns whose bounds Spark's own reader trusts all the same.
        wrong: Those of them whose bounds are known to be wrong in some files of the writer.
    """

    bounds: Sequence[bool]
    sees_nan: bool
    only_by_spark: Sequence[int]
    wrong: Sequence[int]


class Trust:
    """Which bounds are trusted, for files of one Parquet schema.

    Args:
        parquet: A `pyarrow.parquet.ParquetSchema`.
        leaves: n indices of Parquet columns.
    """

    def __init__(self, parquet: Any, leaves: Sequence[int]) -> None:
        columns = [parquet.column(leaf) for leaf in leaves]
        self._signed = [_is_signed(column) for column in columns]
        self._kinds = [_kind_of(column) for column in columns]
        self._orders = orders_of(len(parquet.names))
        self._is_arrows = _ARROWS_ROOT in str(parquet)
        self._by_writer: dict[tuple[bool, Record, bool], Trusted] = {}

    def in_file(self, footer: bytes, metadata: Any) -> Trusted:
        """Return what is trusted in a file.

        Args:
            footer: The footer.
            metadata: The footer as a `pyarrow.parquet.FileMetaData`.
        """
        writer = metadata.created_by
        ordered = names_orders(footer, writer, self._orders)
        # Files that Arrow has written say so, whatever they say of their writer.
        is_arrows = self._is_arrows or _ARROW_SCHEMA in (metadata.metadata or {})
        key = ordered, record_of(writer), writer_sees_nan(writer) and not is_arrows
        if key not in self._by_writer:
            self._by_writer[key] = self._trusted(*key)
        return self._by_writer[key]

    def _trusted(self, ordered: bool, record: Record, nan: bool) -> Trusted:
        readable = [True] * len(self._kinds) if ordered else self._signed
        bounds = [
            is_readable and kind in record.right
            for is_readable, kind in zip(readable, self._kinds, strict=True)
        ]
        only_by_spark = [at for at, one in enumerate(readable) if one and not bounds[at]]
        wrong = [at for at in only_by_spark if self._kinds[at] in record.wrong]
        return Trusted(bounds, nan and ordered, only_by_spark, wrong)


def orders_of(leaf_count: int) -> bytes:
    """Return how a footer usually ends, after its writer, if it names the orders of n columns."""
    return _HEAD + listed(STRUCT, [_TYPE_DEFINED] * leaf_count) + END


def names_orders(footer: bytes, created_by: str, orders: bytes) -> bool:
    """Return whether a footer names the orders of its columns' bounds.

    The orders are its last field as a rule, so that its end answers; otherwise it is skimmed.

    Args:
        footer: The footer, which Arrow can parse.
        created_by: Its writer; empty if it names none.
        orders: From `orders_of`, for its number of Parquet columns.
    """
    if created_by:
        writer = text(created_by.encode())
        if footer.endswith(writer + END):
            return False
        if footer.endswith(writer + orders):
            return True
    skimmer = Skimmer(footer)
    try:
        for number, kind in skimmer.fields():
            if (number, kind) == (_COLUMN_ORDERS, LIST):
                return True
            skimmer.skip(kind)
    except ThriftError:
        pass
    return False


def writer_sees_nan(created_by: str | None) -> bool:
    """Return whether bounds from this writer prove that no value is NaN.

    parquet-mr 1.10 to 1.17 treats NaN as the largest value, so that it appears as a bound
    (which then counts as unknown). Arrow and others ignore NaN. Later versions of parquet-mr
    may count NaN separately, so their bounds prove nothing until that has been checked.
    """
    name, version = _writer(created_by)
    first, last = _NAN_SEEN_BY_MR
    return name == "parquet-mr" and first <= version <= last


def record_of(created_by: str | None) -> Record:
    """Return what is known about the bounds of a writer."""
    name, version = _writer(created_by)
    for since, record in _WRITERS.get(name, ()):
        if version >= since:
            return record
    return _UNKNOWN


def _writer(created_by: str | None) -> tuple[str, tuple[int, int]]:
    """Return a writer's name and version; (0, 0) if it does not state it."""
    match = _WRITER.fullmatch(created_by or "")
    return (match[1], (int(match[2] or 0), int(match[3] or 0))) if match else ("", (0, 0))


def _is_signed(column: Any) -> bool:
    """Return whether deprecated bounds, compared with sign, follow the order of the values."""
    logical = json.loads(column.logical_type.to_json())
    is_unsigned = logical.get("Type") == "Int" and not logical["isSigned"]
    return column.physical_type in _SIGNED and logical.get("Type") != "Decimal" and not is_unsigned


def _kind_of(column: Any) -> Kind:
    logical = json.loads(column.logical_type.to_json())
    kind = logical.get("Type")
    if column.physical_type in _IN_BYTES:
        return Kind.DECIMAL_IN_BYTES if kind == "Decimal" else Kind.TEXT
    if kind in ("Date", "Timestamp"):
        return Kind.TIME
    is_whole = kind == "None" or (kind == "Int" and logical["isSigned"])
    return Kind.WHOLE if column.physical_type in _WHOLE and is_whole else Kind.OTHER
