"""Bounds of old dates and times, which Spark reads in an older calendar in some files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

VERSION = b"org.apache.spark.version"
# Since 3.0, Spark writes the new calendar by default, and marks files that use the old one.
DATETIME_MARK = b"org.apache.spark.legacyDateTime"
DATETIMES_MARKED_SINCE = b"3.0.0"

_DAY_US = 86_400_000_000
FIRST_GREGORIAN_DAY = -141_427  # 1582-10-15
SETTLED_US = -2_208_988_800_000_000  # 1900-01-01: since then, all zones agree
_JULIAN_YEAR_1_DAY = -719_164
# From the year 1 on, days move by at most eleven days, differences between time zones included.
_MOVE_DAYS = 14
_LAST_DAY = 2_932_896  # 9999-12-31


def is_certain(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Return whether Spark reads the dates and times of a file as they are, in any session.

    Args:
        metadata: The footer's key-value metadata.
    """
    version = (metadata or {}).get(VERSION)
    return (
        version is not None
        and version >= DATETIMES_MARKED_SINCE
        and DATETIME_MARK not in (metadata or {})
    )


def has_calendar(type_: pa.DataType) -> bool:
    """Return whether columns of this type depend on the calendar."""
    return bool(pt.is_date(type_) or (pt.is_timestamp(type_) and type_.tz is not None))


def widened(
    bounds: pa.Array, uncertain: np.ndarray[Any, np.dtype[np.bool_]], *, upper: bool
) -> pa.Array:
    """Return bounds that hold in either calendar; null before the year 1.

    Args:
        bounds: Bounds of a type for which `has_calendar` is true.
        uncertain: For each bound, whether the values may be in the old calendar.
        upper: Whether they are upper bounds.
    """
    is_date = pt.is_date(bounds.type)
    day = 1 if is_date else _DAY_US
    values = pc.fill_null(bounds.cast(pa.int32() if is_date else pa.int64()), 0)
    values = values.to_numpy().astype(np.int64)
    old = uncertain & (values < (FIRST_GREGORIAN_DAY if is_date else SETTLED_US))
    values = np.where(old, values + (_MOVE_DAYS if upper else -_MOVE_DAYS) * day, values)
    unknown = old & (values < (_JULIAN_YEAR_1_DAY - _MOVE_DAYS) * day)
    mask = unknown | np.asarray(bounds.is_null())
    numbers = (
        pa.array(values, mask=mask).cast(pa.int32()) if is_date else pa.array(values, mask=mask)
    )
    return numbers.cast(bounds.type)


def is_settled(values: pa.ChunkedArray) -> bool:
    """Return whether dates or times mean the same in all calendars and time zones.

    Times beyond the year 9999 do not count: Arrow may have decoded them wrongly from INT96.

    Args:
        values: Values of a type for which `has_calendar` is true.
    """
    if pt.is_date(values.type):
        least = pc.min(values.cast(pa.date32()).cast(pa.int32())).as_py()
        return least is None or bool(least >= FIRST_GREGORIAN_DAY)
    us = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
    least, greatest = pc.min_max(us).as_py().values()
    return least is None or bool(least >= SETTLED_US and greatest < (_LAST_DAY + 1) * _DAY_US)
