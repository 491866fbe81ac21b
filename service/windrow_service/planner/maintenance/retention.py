"""Which partitions are too old to keep, by the days in their values."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from windrow_service.planner.pruning.bounds import mask
from windrow_service.planner.splits import Bools

# A day, perhaps with a time of day and its zone: as Spark casts texts to dates, but nothing else may
# follow. Years that have other than four digits are no dates here.
_WHOLE = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[ T](?:[0-9]{1,2}(?::[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]{0,9})?)?)?"
    r" ?(?:Z|UTC|[+-][0-9]{1,2}(?::?[0-9]{2})?)?)?)?"
)
# A year, perhaps with a month: a date if somebody says so, as it may be any code of four digits.
_PART = re.compile(r"([0-9]{4})(?:-([0-9]{1,2}))?")
_BLANKS = "".join(map(chr, range(33)))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Which days a policy keeps.

    Attributes:
        first: The first day that stays.
        today: The day it is.
        oldest: Days before this one stay, too: they stand for something else than a day.
        zone: Where days begin.
    """

    first: date
    today: date
    oldest: date
    zone: tzinfo


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ages:
    """How old partitions are, by their values of one column.

    Attributes:
        is_date: Whether the value can be read as a date; null cannot.
        is_old: Whether all that the value describes lies before the first day that stays, and not
            before the oldest day; False for values that are not dates.
        is_sentinel: Whether the value lies before the oldest day.
        newest: The newest day of all that are neither too early nor after tomorrow; None if there
            is none.
        doubts: Whether this is a text column some of whose values are not whole dates.
    """

    is_date: Bools
    is_old: Bools
    is_sentinel: Bools
    newest: date | None
    doubts: bool


def keeping(now: datetime, keep_days: int, oldest: date, zone: tzinfo) -> Keeping:
    """Return which days are kept: as many before today, and today.

    Args:
        now: Now, with a time zone.
        keep_days: Number of days before today that stay.
        oldest: The oldest day that is taken for one.
        zone: Where it is today.
    """
    today = now.astimezone(zone).date()
    first = today - timedelta(days=keep_days)
    return Keeping(first=first, today=today, oldest=oldest, zone=zone)


def ages(values: pa.Array, span: Keeping) -> Ages:
    """Return which values are dates, and which lie before the days that are kept.

    Args:
        values: Of type date, timestamp, timestamp_ntz or string; values of other types are not
            dates.
        span: The days that are kept.
    """
    type_ = values.type
    if pt.is_date32(type_):
        return _ages(values.cast(pa.int32()), span, _number_of, _day_of)
    if pt.is_timestamp(type_):
        zone = timezone.utc if type_.tz is None else span.zone
        return _ages(
            values.cast(pa.timestamp("us", type_.tz)).cast(pa.int64()),
            span,
            # Where clocks are turned at midnight, a day begins at the earlier of two times.
            lambda day: (datetime.combine(day, time(), zone) - _EPOCH) // _MICROSECOND,
            lambda micros: (_EPOCH + micros * _MICROSECOND).astimezone(zone).date(),
        )
    doubts = False
    days = pa.nulls(len(values), pa.int32())
    if pt.is_string(type_):
        codes = values.dictionary_encode()
        texts = codes.dictionary.to_pylist()
        ends = ((text, last_day(text)) for text in texts)
        numbers = [
            None if day is None else _number_of(_so_far(text, day, span.today))
            for text, day in ends
        ]
        days = pa.array(numbers, pa.int32()).take(codes.indices)
        doubts = not all(map(is_whole, texts))
    return _ages(days, span, _number_of, _day_of, doubts=doubts)


def last_day(text: str) -> date | None:
    """Return the day that a text names, as Spark casts texts to dates; None if it is not a date.

    Spark takes a year or a month for its first day; here it is the last one, since the partition
    has the rows of all of them. Spark also takes a day that any text follows.
    """
    text = text.strip(_BLANKS)
    match = _WHOLE.fullmatch(text) or _PART.fullmatch(text)
    if match is None:
        return None
    year, month = int(match[1]), int(match[2] or 12)
    try:
        day = int(match[3]) if match.re is _WHOLE else calendar.monthrange(year, month)[1]
        return date(year, month, day)
    except (ValueError, calendar.IllegalMonthError):
        return None


def _so_far(text: str, last: date, today: date) -> date:
    """Return the last day of a text until today: a year or a month may have begun and not be over."""
    part = _PART.fullmatch(text.strip(_BLANKS))
    if part is None or last <= today:
        return last
    first = last.replace(day=1) if part[2] else last.replace(month=1, day=1)
    return today if first <= today else last


def is_whole(text: str) -> bool:
    """Return whether a text names one day, not a year or a month, which may be any code."""
    return _PART.fullmatch(text.strip(_BLANKS)) is None and last_day(text) is not None


def _number_of(day: date) -> int:
    return (day - _EPOCH.date()).days


def _day_of(number: int) -> date:
    return _EPOCH.date() + number * _DAY


def _ages(
    numbers: pa.Array,
    span: Keeping,
    begin_of: Callable[[date], int],
    day_of: Callable[[int], date],
    *,
    doubts: bool = False,
) -> Ages:
    """Return the ages of values that are numbers.

    Args:
        numbers: The values.
        span: The days that are kept.
        begin_of: Returns the number with which a day begins.
        day_of: Returns the day of a number.
        doubts: Whether some values are not whole dates.
    """
    is_date = mask(numbers.is_valid())
    values = np.zeros(len(numbers), np.int64)
    values[is_date] = numbers.drop_null().to_numpy(zero_copy_only=False)
    is_sentinel = is_date & (values < begin_of(span.oldest))
    is_old = is_date & ~is_sentinel & (values < begin_of(span.first))
    days = values[is_date & ~is_sentinel & (values < begin_of(span.today + 2 * _DAY))]
    return Ages(
        is_date=is_date,
        is_old=is_old,
        is_sentinel=is_sentinel,
        newest=day_of(int(days.max())) if len(days) else None,
        doubts=doubts,
    )
