"""Old dates and times, and the calendar they were written in, which not every file states.

Spark 2 and Hive count days before 1582-10-15 in the Julian calendar, and times before 1900 by
today's offset of their zone. Like Spark 3, this module reads such files as they were meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.calendars import (
    DATETIME_MARK,
    DATETIMES_MARKED_SINCE,
    FIRST_GREGORIAN_DAY,
    SETTLED_US,
    VERSION,
)
from windrow_tables.executor.conversions import convert, plain_list, stored_type
from windrow_tables.executor.local_times import LocalZone

CORRECTED = "CORRECTED"
LEGACY = "LEGACY"
EXCEPTION = "EXCEPTION"

_ZONE = b"org.apache.spark.timeZone"
# The key that marks a file as legacy, and the first version of Spark whose files need it for that.
_DATETIME = (DATETIME_MARK, DATETIMES_MARKED_SINCE)
_INT96 = (b"org.apache.spark.legacyINT96", b"3.1.0")
# The beginning of the name of the only writer whose INT96 is never taken for local times.
_WRITER_OF_INSTANTS = "parquet-mr"

_US_PER_S = 1_000_000
_DAY_S = 86_400
_FIRST_GREGORIAN_S = FIRST_GREGORIAN_DAY * _DAY_S
_JULIAN_MARCH_0000 = -719_470
# Years 1 to 9999, and a fortnight more for calendars and zones.
_INT96_RANGE_US = (-62_136_806_400 * _US_PER_S, 253_403_510_400 * _US_PER_S)
_FIXED_ZONE = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")
_UTC_ZONE = re.compile(r"[+-].*|Z|UTC|GMT")

Ints = npt.NDArray[np.int64]


class OldValueError(ValueError):
    """A column holds a date or time of an uncertain calendar; the text says why, and the remedy."""


@dataclass(frozen=True, kw_only=True)
class Calendars:
    """How Spark reads files that do not say how their dates and times were written.

    Attributes:
        dates: LEGACY, CORRECTED or EXCEPTION, for dates and times other than INT96.
        int96: The same for INT96.
        zone: The zone of legacy files that name none.
        zones: The values of `Zone` for each zone, as JSON.
        local: The zone of INT96 that is taken for local times, as the text of a `LocalZone`; else
            empty.
    """

    dates: str = CORRECTED
    int96: str = CORRECTED
    zone: str = "UTC"
    zones: str = "{}"
    local: str = ""

    def of(
        self, metadata: Mapping[bytes, bytes] | None, created_by: str | None = None
    ) -> FileCalendar:
        """Return the calendar of a file, given the key-value metadata of its footer and writer."""
        entries = metadata or {}
        version = entries.get(VERSION)

        def mode(mark: tuple[bytes, bytes], unknown: str) -> str:
            if version is None:
                return unknown
            return LEGACY if version < mark[1] or mark[0] in entries else CORRECTED

        dates, int96 = mode(_DATETIME, self.dates), mode(_INT96, self.int96)
        local = "" if (created_by or "").startswith(_WRITER_OF_INSTANTS) else self.local
        if LEGACY not in (dates, int96):
            return FileCalendar(dates, int96, "", self.zones, local)
        zone = entries.get(_ZONE, self.zone.encode()).decode()
        return FileCalendar(dates, int96, zone, self.zones, local)


@dataclass(frozen=True)
class FileCalendar:
    """How dates and times of a file were written, with the zone if that matters."""

    dates: str
    int96: str
    zone: str
    zones: str = field(compare=False)
    local: str = ""


@dataclass(frozen=True)
class Zone:
    """How a zone's times before 1900 differ between Spark 2 and 3, in seconds.

    Attributes:
        offset: The zone's offset from UTC in the old calendar.
        shift: The correction before 1582-10-15, besides the days between the calendars.
        switches: Times since then from which another correction applies, ascending.
        shifts: The correction from each of these times on.
    """

    offset: int
    shift: int
    switches: tuple[int, ...]
    shifts: tuple[int, ...]


# Corrects the values of one Parquet column.
Rule = Callable[[pa.Array], pa.Array]


def rule_of(
    type_: pa.DataType, physical_type: str, calendar: FileCalendar, target: pa.DataType | None
) -> Rule | None:
    """Return the rule that corrects the values of a Parquet column; None if none is needed.

    Args:
        type_: The column's type as Arrow decodes it.
        physical_type: Its type as Parquet stores it.
        calendar: The file's calendar.
        target: The table's type of the column; None if the table lacks it.
    """
    if physical_type == "INT96":
        zone = LocalZone.of(calendar.local) if calendar.local else None
        return lambda values: _int96(values, calendar, zone)
    if calendar.dates == CORRECTED:
        return None
    if pt.is_date(type_):
        return lambda values: _dates(values.cast(pa.date32()), calendar.dates)
    if pt.is_timestamp(type_) and target is not None and getattr(target, "tz", None) is not None:
        instants = pa.timestamp(type_.unit, "UTC")
        return lambda values: _times(values.cast(instants), calendar.dates, calendar)
    return None


def may_be_rebased(type_: pa.DataType) -> bool:
    """Return whether values of a type, or in it, depend on the calendar."""
    if pt.is_nested(type_):
        return any(may_be_rebased(type_.field(at).type) for at in range(type_.num_fields))
    return bool(pt.is_date(type_) or pt.is_timestamp(type_))


def corrected(values: pa.Array, rules: Iterator[Rule | None]) -> pa.Array:
    """Return values of a column with the next rules applied, one for each Parquet column in it."""
    type_ = stored_type(values.type)
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pt.is_struct(type_):
        children = [corrected(values.field(at), rules) for at in range(type_.num_fields)]
        fields = [type_.field(at).with_type(child.type) for at, child in enumerate(children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(values))
    if pt.is_map(type_):
        keys, items = corrected(values.keys, rules), corrected(values.items, rules)
        fields = [type_.key_field.with_type(keys.type), type_.item_field.with_type(items.type)]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        return _with_items(values, pa.map_(*fields), entries)
    if pt.is_nested(type_):
        values = values if pt.is_list(type_) else plain_list(values)
        items = corrected(values.values, rules)
        return _with_items(values, pa.list_(values.type.value_field.with_type(items.type)), items)
    rule = next(rules)
    return values if rule is None else rule(values)


def _with_items(values: pa.Array, type_: pa.DataType, items: pa.Array) -> pa.Array:
    validity, offsets = values.buffers()[:2]
    buffers = [validity, offsets]
    return pa.Array.from_buffers(
        type_, len(values), buffers, offset=values.offset, children=[items]
    )


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def _int96(values: pa.Array, calendar: FileCalendar, zone: LocalZone | None) -> pa.Array:
    times = _times(_checked_int96(values), calendar.int96, calendar)
    return times if zone is None else zone.instants(times)


def _checked_int96(values: pa.Array) -> pa.Array:
    least, greatest = _ends(values)
    if least < _INT96_RANGE_US[0] or greatest > _INT96_RANGE_US[1]:
        raise OldValueError(
            "holds INT96 times beyond the years 1 to 9999, which cannot be told from broken ones; "
            "rewrite the file with spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"
        )
    return values


def _dates(values: pa.Array, mode: str) -> pa.Array:
    days = values.cast(pa.int32())
    if _ends(days)[0] >= FIRST_GREGORIAN_DAY:
        return values
    _refuse_unknown(mode, "datetime")
    old: Ints = pc.fill_null(days, 0).to_numpy().astype(np.int64)
    gregorian = old + np.where(old < FIRST_GREGORIAN_DAY, _gregorian_shift(old), 0)
    mask = np.asarray(values.is_null())
    return pa.array(gregorian.astype(np.int32), pa.int32(), mask=mask).cast(pa.date32())


def _gregorian_shift(julian_days: Ints) -> Ints:
    """Return how many days later the day with the same date is in the Gregorian calendar."""
    # Years begin in March, so that the leap day, which one calendar may lack, comes last.
    years = (4 * (julian_days - _JULIAN_MARCH_0000) + 3) // 1461
    return 2 - years // 100 + years // 400


def _times(values: pa.Array, mode: str, calendar: FileCalendar) -> pa.Array:
    values = convert(values, pa.timestamp("us", values.type.tz))
    if mode == CORRECTED or _ends(values)[0] >= SETTLED_US:
        return values
    _refuse_unknown(mode, "datetime" if values.type.tz is not None else "int96")
    zone = _zone(calendar)
    old: Ints = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    seconds = old // _US_PER_S
    days = (seconds + zone.offset) // _DAY_S
    switch = np.searchsorted(np.array(zone.switches), seconds, "right") - 1
    shifts = np.where(
        switch < 0,
        _gregorian_shift(days) * _DAY_S + zone.shift,
        np.array(zone.shifts)[np.maximum(switch, 0)],
    )
    mask = np.asarray(values.is_null())
    return pa.array(old + shifts * _US_PER_S, pa.int64(), mask=mask).cast(values.type)


def _zone(calendar: FileCalendar) -> Zone:
    name = calendar.zone
    zone = json.loads(calendar.zones).get(name)
    if zone is not None:
        offset, shift, switches, shifts = zone
        return Zone(offset, shift, tuple(switches), tuple(shifts))
    offset = 0
    if match := _FIXED_ZONE.fullmatch(name):
        offset = int(match[2]) * 3600 + int(match[3] or 0) * 60
        offset *= -1 if match[1] == "-" else 1
    elif not _UTC_ZONE.fullmatch(name):
        raise OldValueError(
            f"holds times before 1900 that were written in the time zone {name!r}, whose "
            "offset at that time this Spark does not know; rewrite the file with Spark"
        )
    return Zone(offset, 0, (_FIRST_GREGORIAN_S - offset,), (0,))


def _refuse_unknown(mode: str, what: str) -> None:
    if mode != LEGACY:
        raise OldValueError(
            "holds dates before 1582-10-15, or times before 1900, and the file does not say in which "
            f"calendar; set spark.sql.parquet.{what}RebaseModeInRead to LEGACY if Spark 2 or Hive "
            "wrote it, else to CORRECTED"
        )


def _ends(values: pa.Array) -> tuple[int, int]:
    """Return the least and the greatest value as numbers; zeros if there are no values."""
    ends = pc.min_max(values.cast(pa.int64()))
    return ends["min"].as_py() or 0, ends["max"].as_py() or 0
