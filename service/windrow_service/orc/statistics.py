"""Bounds of columns from the statistics in ORC footers, where those are certain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.bounds import BoundedColumn, typed_bounds
from windrow_core.files.calendars import FIRST_GREGORIAN_DAY, widened
from windrow_service.orc.columns import Kind, Node

# Lower and upper bound as ORC states them; None if it does not.
Raw = tuple[Any, Any]

# Some years less than what fits, because times are stated in the writer's time zone.
_SAFE_MILLIS = 2**63 // 10**6 - 10**12
_UNKNOWN: Raw = (None, None)
# The first version of Java's writer that does not state maxima of other columns.
_HIVE_8732 = 1
_EXACT = Context(prec=2_000)
_INTEGERS = {Kind.BYTE, Kind.SHORT, Kind.INT, Kind.LONG}


def are_certain(postscript: Any, footer: Any) -> bool:
    """Return whether the statistics of a footer belong to its columns."""
    is_late = footer.writer or postscript.writer_version >= _HIVE_8732
    return bool(is_late and len(footer.statistics) == len(footer.types))


def null_count(statistics: Any, row_count: int) -> int | None:
    """Return how many of `row_count` rows are null in a top-level column; None if unknown."""
    # Older writers do not state whether there are nulls: the number is then unknown.
    if not (statistics.HasField("value_count") and statistics.HasField("has_null")):
        return None
    nulls = row_count - int(statistics.value_count)
    return nulls if nulls >= 0 and bool(nulls) == statistics.has_null else None


def raw_bounds(node: Node, statistics: Any) -> Raw:
    """Return the bounds of a column as its footer states them."""
    kind = node.kind
    if kind in _INTEGERS:
        return _ends(statistics.integers)
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return _ends(statistics.doubles)
    if kind == Kind.BOOLEAN:
        return _booleans(statistics)
    if kind == Kind.DATE:
        return _ends(statistics.dates)
    if kind == Kind.DECIMAL:
        lower, upper = (_unscaled(text, node.type) for text in _ends(statistics.decimals))
        return lower, upper
    if kind in (Kind.STRING, Kind.VARCHAR):
        strings = statistics.strings
        # Long texts are cut, and then stated as bounds in place of minimum and maximum.
        return _first(strings, "minimum", "lower_bound"), _first(strings, "maximum", "upper_bound")
    # Times are stated in the writer's time zone, and bounds of other kinds are not stated.
    return _UNKNOWN


def arrow_bounds(node: Node, raw: Sequence[Any], *, upper: bool) -> pa.Array:
    """Turn raw bounds into values of the column's type, never narrower; null where unknown."""
    column = BoundedColumn("", node.type, 0, 0, 1_000, False)
    bounds = typed_bounds(column, raw, upper=upper)
    if pt.is_date(node.type):
        # Spark counts the days of old dates as Julian, whatever calendar the footer names.
        return widened(bounds, np.ones(len(bounds), np.bool_), upper=upper)
    return bounds


def proves_no_nan(statistics: Any) -> bool:
    """Return whether statistics of a column of floats rule out NaN, which would make the sum NaN."""
    doubles = statistics.doubles
    return bool(doubles.HasField("sum") and math.isfinite(doubles.sum))


def are_alike(node: Node, statistics: Any) -> bool:
    """Return whether Arrow reads the values of a type that is `alike` as Spark's ORC reader does.

    Args:
        node: One type in a column.
        statistics: Its statistics in the footer; None if they are not certain.
    """
    if node.key:
        # Spark accepts null as a key, Arrow does not.
        return statistics is None or not statistics.has_null
    if node.kind not in (Kind.DATE, Kind.DECIMAL):
        return True
    if statistics is None:
        return False
    if statistics.HasField("value_count") and not statistics.value_count:
        return True
    lower, upper = raw_bounds(node, statistics)
    if lower is None or upper is None:
        return False
    if node.kind == Kind.DATE:
        return bool(lower >= FIRST_GREGORIAN_DAY)
    # Spark reads values with more digits as null.
    limit = 10**node.type.precision
    return bool(-limit < lower and upper < limit)


def fit_nanoseconds(statistics: Any) -> bool:
    """Return whether the times of a column are certain to fit 64 bits of nanoseconds."""
    if statistics is None:
        return False
    if statistics.HasField("value_count") and not statistics.value_count:
        return True
    least = _first(statistics.times, "lower_bound", "minimum")
    greatest = _first(statistics.times, "upper_bound", "maximum")
    if least is None or greatest is None:
        return False
    return bool(least > -_SAFE_MILLIS and greatest < _SAFE_MILLIS)


def _ends(ends: Any) -> Raw:
    return _first(ends, "minimum"), _first(ends, "maximum")


def _first(message: Any, *names: str) -> Any:
    return next((getattr(message, name) for name in names if message.HasField(name)), None)


def _booleans(statistics: Any) -> Raw:
    counts = statistics.buckets.counts
    values = statistics.value_count
    if len(counts) != 1 or not 0 < values >= counts[0]:
        return _UNKNOWN
    return counts[0] == values, counts[0] > 0


def _unscaled(text: bytes | None, type_: pa.DataType) -> int | None:
    if text is None:
        return None
    try:
        value = Decimal(text.decode())
        exact = value.scaleb(type_.scale, _EXACT)
        # An exponent can make a short text a long number.
        if not exact.is_finite() or exact.adjusted() > 2 * type_.precision:
            return None
        number = int(exact)
    except (ArithmeticError, UnicodeDecodeError):
        return None
    return number if number == exact else None
