"""Which partitions are too old to keep, by the days in their values."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_service.planner.pruning.bounds import mask
from windrow_service.planner.splits import Bools

# A text that Spark casts to a date: a year, perhaps with a month and a day, after which anything may
# follow a blank or a T. Years that have other than four digits are no dates here.
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_BLANKS = "".join(map(chr, range(33)))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ages:
    """How old partitions are, by their values of one column.

    Attributes:
        is_date: Whether the value can be read as a date; null cannot.
        is_old: Whether all that the value describes lies before the first day that stays; False for
            values that are not dates.
    """

    is_date: Bools
    is_old: Bools


def first_day(now: datetime, keep_days: int, zone: tzinfo) -> date:
    """Return the first day that stays: as many days before today.

    Args:
        now: Now, with a time zone.
        keep_days: Number of days before today that stay.
        zone: Where it is today.
    """
    return now.astimezone(zone).date() - timedelta(days=keep_days)


def ages(values: pa.Array, first: date, zone: tzinfo) -> Ages:
    """Tell which values are dates, and which lie before a day.

    Args:
        values: Of type date, timestamp, timestamp_ntz or string; values of other types are not
            dates.
        first: The first day that stays.
        zone: Where that day begins, for values of type timestamp.
    """
    type_ = values.type
    if pt.is_date32(type_):
        days = values.cast(pa.int32())
        return _compared(days, (first - _EPOCH.date()).days)
    if pt.is_timestamp(type_):
        # Where clocks are turned at midnight, this is the earlier of two times.
        begin = datetime.combine(first, time(), timezone.utc if type_.tz is None else zone)
        micros = values.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
        return _compared(micros, (begin - _EPOCH) // _MICROSECOND)
    if pt.is_string(type_):
        codes = values.dictionary_encode()
        days = [last_day(text) for text in codes.dictionary.to_pylist()]
        at = codes.indices
        is_date, is_old = (
            mask(pa.array(flags, pa.bool_()).take(at))
            for flags in (
                [day is not None for day in days],
                [day is not None and day < first for day in days],
            )
        )
        return Ages(is_date=is_date, is_old=is_old)
    nothing = np.zeros(len(values), np.bool_)
    return Ages(is_date=nothing, is_old=nothing)


def last_day(text: str) -> date | None:
    """Return the day that a text names, as Spark casts texts to dates; None if it is not a date.

    Spark takes a year or a month for its first day; here it is the last one, since the partition
    has the rows of all of them.
    """
    match = _DATE.fullmatch(text.strip(_BLANKS))
    if match is None:
        return None
    year, month = int(match[1]), int(match[2] or 12)
    try:
        day = int(match[3]) if match[3] else calendar.monthrange(year, month)[1]
        return date(year, month, day)
    except (ValueError, calendar.IllegalMonthError):
        return None


def _compared(numbers: pa.Array, first: int) -> Ages:
    return Ages(is_date=mask(numbers.is_valid()), is_old=mask(pc.less(numbers, first)))
