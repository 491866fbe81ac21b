"""Decides for which columns of a Parquet file the bounds in its footer are trusted.

A footer states bounds in two ways: as `min_value` and `max_value`, in the order that the footer
names for each column, or as `min` and `max`, which are deprecated, because writers compared bytes
with the wrong sign. Arrow reads the first if the footer names orders, else the second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from windrow_core.files.excerpts.thrift import END, LIST, STRUCT, Skimmer, ThriftError, listed, text

# The rules by which statistics become bounds, lists of columns that only one reader reads
# correctly, and layouts, in every format. Raise it with each change of them: the next refresh of a table reads
# the footers, or the log, again from which manifests were made under other rules.
RULES = 4

_COLUMN_ORDERS = 7  # field of Parquet's FileMetaData
# A field that follows field 6, the writer; and the one order that the format defines.
_HEAD = bytes([1 << 4 | LIST])
_TYPE_DEFINED = bytes([1 << 4 | STRUCT]) + END + END

_SIGNED = {"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE"}
_IN_BYTES = {"FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"}
_PARQUET_MR = re.compile(r"parquet-mr version ([0-9]+)\.([0-9]+)")
_FIXED_MR = (1, 10)
_FIXED_WRITERS = ("parquet-cpp-arrow version ", "DuckDB ")

_ARROW_SCHEMA = b"ARROW:schema"
_ARROWS_ROOT = "\nrequired group field_id=-1 schema {"


class Trusted(NamedTuple):
    """What is trusted in a file.

    Attributes:
        bounds: For each column, whether its bounds hold for the values.
        sees_nan: Whether bounds of floats prove that no value is NaN.
        only_by_spark: The columns whose bounds Spark's own reader trusts all the same.
    """

    bounds: Sequence[bool]
    sees_nan: bool
    only_by_spark: Sequence[int]


class Trust:
    """Which bounds are trusted, for files of one Parquet schema.

    Args:
        parquet: A `pyarrow.parquet.ParquetSchema`.
        leaves: n indices of Parquet columns.
    """

    def __init__(self, parquet: Any, leaves: Sequence[int]) -> None:
        columns = [parquet.column(leaf) for leaf in leaves]
        self._signed = [_is_signed(column) for column in columns]
        self._by_bytes = [_is_decimal_in_bytes(column) for column in columns]
        self._orders = orders_of(len(parquet.names))
        self._is_arrows = _ARROWS_ROOT in str(parquet)
        self._by_writer: dict[tuple[bool, bool, bool], Trusted] = {}

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
        key = ordered, compares_decimals(writer), writer_sees_nan(writer) and not is_arrows
        if key not in self._by_writer:
            self._by_writer[key] = self._trusted(*key)
        return self._by_writer[key]

    def _trusted(self, ordered: bool, decimals: bool, nan: bool) -> Trusted:
        if not ordered:
            return Trusted(self._signed, sees_nan=False, only_by_spark=())
        bounds = [decimals or not by_bytes for by_bytes in self._by_bytes]
        return Trusted(bounds, nan, [at for at, holds in enumerate(bounds) if not holds])


def orders_of(leaf_count: int) -> bytes:
    """Return how a footer usually ends, after its writer, if it names the orders of n columns."""
    return _HEAD + listed(STRUCT, [_TYPE_DEFINED] * leaf_count) + END


def names_orders(footer: bytes, created_by: str, orders: bytes) -> bool:
    """Tell whether a footer names the orders of its columns' bounds.

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
    """Tell whether bounds from this writer prove that no value is NaN.

    parquet-mr 1.10 to 1.17 treats NaN as the largest value, so that it appears as a bound
    (which then counts as unknown). Arrow and others ignore NaN. Later versions of parquet-mr
    may count NaN separately, so their bounds prove nothing until that has been checked.
    """
    version = _mr_version(created_by)
    return version is not None and _FIXED_MR <= version <= (1, 17)


def compares_decimals(created_by: str | None) -> bool:
    """Tell whether a writer compares decimals in bytes as numbers when it looks for bounds.

    Many writers have compared them as bytes, so that negative numbers counted as the greatest.
    """
    version = _mr_version(created_by)
    is_fixed_mr = version is not None and version >= _FIXED_MR
    return is_fixed_mr or (created_by or "").startswith(_FIXED_WRITERS)


def _mr_version(created_by: str | None) -> tuple[int, int] | None:
    match = _PARQUET_MR.match(created_by or "")
    return (int(match[1]), int(match[2])) if match else None


def _is_signed(column: Any) -> bool:
    """Tell whether deprecated bounds, compared with sign, follow the order of the values."""
    logical = json.loads(column.logical_type.to_json())
    is_unsigned = logical.get("Type") == "Int" and not logical["isSigned"]
    return column.physical_type in _SIGNED and logical.get("Type") != "Decimal" and not is_unsigned


def _is_decimal_in_bytes(column: Any) -> bool:
    return column.logical_type.type == "DECIMAL" and column.physical_type in _IN_BYTES
