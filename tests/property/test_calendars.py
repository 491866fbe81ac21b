"""Laws of bounds of old dates and times: they hold in every calendar a session may use."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.calendars import is_certain, widened
from windrow_tables.executor.rebasing import Calendars, corrected, rule_of

TIMESTAMP = pa.timestamp("us", "UTC")
DAY_US = 86_400_000_000
LEGACY = {b"org.apache.spark.version": b"2.4.8"}
# Includes dates before the year 1, for which no bounds are known.
DAYS = st.integers(-800_000, -100_000) | st.integers(-719_200, -719_100) | st.integers(0, 20_000)
ZONES = st.sampled_from(["UTC", "GMT+18:00", "GMT-18:00", "GMT+5:45", "+03:00"])


def meant(stored: pa.Array, zone: str) -> pa.Array:
    """Return stored values as Spark reads them from a file of Spark 2."""
    calendar = Calendars(zone=zone).of(LEGACY)
    return corrected(stored, iter([rule_of(stored.type, "", calendar, stored.type)]))


@examples(200)
@given(
    days=st.lists(DAYS, min_size=1, max_size=5),
    micros=st.integers(0, DAY_US - 1),
    zone=ZONES,
    of_days=st.booleans(),
)
def test_widened_bounds_hold_in_both_calendars(
    days: list[int], micros: int, zone: str, of_days: bool
) -> None:
    if of_days:
        stored = pa.array(days, pa.int32()).cast(pa.date32())
    else:
        stored = pa.array([day * DAY_US + micros for day in days], pa.int64()).cast(TIMESTAMP)
    is_old = np.array([True])
    ends = pc.min_max(stored)

    lower = widened(pa.array([ends["min"]]), is_old, upper=False)
    upper = widened(pa.array([ends["max"]]), is_old, upper=True)

    if lower.null_count or upper.null_count:
        assert min(days) < -719_162
        return
    for values in (stored, meant(stored, zone)):
        assert pc.all(
            pc.and_(pc.less_equal(lower[0], values), pc.less_equal(values, upper[0]))
        ).as_py()


@examples(200)
@given(days=st.lists(st.integers(-141_427, 50_000), min_size=1, max_size=5), zone=ZONES)
def test_dates_that_are_equal_in_both_calendars_stay_unchanged(days: list[int], zone: str) -> None:
    dates = pa.array(days, pa.int32()).cast(pa.date32())
    times = pa.array([max(day, -25_567) * DAY_US for day in days], pa.int64()).cast(TIMESTAMP)

    for stored in (dates, times):
        assert meant(stored, zone) == stored
        assert widened(stored, np.full(len(days), True), upper=True) == stored


def test_a_files_calendar_is_certain_if_a_newer_spark_has_not_marked_it_as_legacy() -> None:
    version, mark = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"

    assert is_certain({version: b"3.5.9"})
    assert not is_certain({version: b"3.5.9", mark: b""})
    assert not is_certain({version: b"2.4.8"})
    assert not is_certain({mark: b""})
    assert not is_certain(None)
