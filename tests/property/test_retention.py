"""No partition goes that is younger than the days of the policy, or whose value is not a date."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.planner.maintenance.retention import ages, first_day, last_day

# Some turn their clocks at midnight, and some are a day apart.
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
]
_ZONES = st.sampled_from(ZONES).map(ZoneInfo)
_DAYS = st.integers(1, 400)
_BEGIN, _END = (datetime.combine(date(year, 6, 1), time()) for year in (2014, 2027))
_MOMENTS = st.datetimes(_BEGIN, _END)
_NOW = _MOMENTS.map(lambda moment: moment.replace(tzinfo=timezone.utc))
_DATES = st.dates(_BEGIN.date(), _END.date())
_UNITS = st.sampled_from(["s", "ms", "us", "ns"])
NO_DATES = [
    *("latest", "", " ", "20260801", "2026-13-01", "2026-02-30", "2026-00-10", "2026-1-0"),
    *("26-08-01", "12026-08-01", "-2026-08-01", "+2026-08-01", "2026/08/01", "2026-08-01x"),
    *(
        "2026-08-",
        "2026-",
        "2026-08x",
        "\uff12026-08-01",
        "2026-08-001",
        "today",
        "0000-01-01",
        "8",
    ),
]


def _days_that(value: date | None, style: int) -> str | None:
    """Return a date as a text, in one of the forms that Spark casts to it."""
    if value is None:
        return None
    plain = f"{value.year:04}-{value.month}-{value.day}"
    return [value.isoformat(), plain, f" {plain} ", f"{plain}T", f"{value} 23:59:59.9"][style]


def is_old_enough(day: date, now: datetime, keep_days: int, zone: ZoneInfo) -> bool:
    """Tell, by the clocks on the walls of a zone, whether the end of a day is so many days ago."""
    wall = now.astimezone(zone).replace(tzinfo=None)
    end = datetime.combine(day, time()) + timedelta(days=1)
    return wall - end >= timedelta(days=keep_days)


@examples(200)
@given(st.lists(st.none() | _DATES, max_size=6), _NOW, _DAYS, _ZONES, st.integers(0, 4))
def test_dates_and_their_texts_go_once_their_day_ended_so_many_days_ago(
    days: list[date | None], now: datetime, keep_days: int, zone: ZoneInfo, style: int
) -> None:
    first = first_day(now, keep_days, zone)
    expected = [one is not None and is_old_enough(one, now, keep_days, zone) for one in days]
    texts = [_days_that(one, style) for one in days]

    for values in (pa.array(days, pa.date32()), pa.array(texts, pa.string())):
        outcome = ages(values, first, zone)
        assert outcome.is_old.tolist() == expected
        assert outcome.is_date.tolist() == [one is not None for one in days]


@examples(200)
@given(
    st.lists(st.none() | _MOMENTS, max_size=6),
    *(_NOW, _DAYS, _ZONES, _UNITS),
)
def test_timestamps_go_by_the_day_in_the_zone_and_those_without_a_zone_by_their_own(
    moments: list[datetime | None], now: datetime, keep_days: int, zone: ZoneInfo, unit: str
) -> None:
    moments = [one and one.replace(microsecond=0) for one in moments]
    first = first_day(now, keep_days, zone)

    plain = ages(pa.array(moments, pa.timestamp(unit)), first, zone)
    instants = [one and one.replace(tzinfo=timezone.utc) for one in moments]
    in_zone = ages(pa.array(instants, pa.timestamp(unit, "UTC")), first, zone)

    assert plain.is_old.tolist() == [
        one is not None and is_old_enough(one.date(), now, keep_days, zone) for one in moments
    ]
    for instant, is_old in zip(instants, in_zone.is_old.tolist(), strict=True):
        if instant is None:
            assert not is_old
            continue
        day = instant.astimezone(zone).date()
        if is_old:
            assert is_old_enough(day, now, keep_days, zone)
        # Where clocks are turned back at midnight, the last hour of a day may stay one day longer.
        elif is_old_enough(day, now, keep_days, zone):
            assert not is_old_enough(day + timedelta(days=1), now, keep_days, zone)


@examples(100)
@given(st.lists(st.sampled_from(NO_DATES) | st.text(max_size=9), max_size=6), _NOW, _DAYS, _ZONES)
def test_a_text_that_is_not_a_date_never_goes(
    texts: list[str], now: datetime, keep_days: int, zone: ZoneInfo
) -> None:
    first = first_day(now, keep_days, zone)
    outcome = ages(pa.array(texts, pa.string()), first, zone)

    for text, is_date, is_old in zip(
        texts, outcome.is_date.tolist(), outcome.is_old.tolist(), strict=True
    ):
        assert not (text in NO_DATES and is_date)
        assert is_date or not is_old


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026", date(2026, 12, 31)),
        ("2026-8", date(2026, 8, 31)),
        ("2024-02", date(2024, 2, 29)),
        ("2026-08-01", date(2026, 8, 1)),
        ("2026-8-1T10:00:00+02:00", date(2026, 8, 1)),
        ("\t2026-08-01 anything\n", date(2026, 8, 1)),
    ],
)
def test_a_year_or_a_month_stands_for_its_last_day(text: str, day: date) -> None:
    assert last_day(text) == day


@pytest.mark.parametrize("type_", [pa.int32(), pa.float64(), pa.bool_(), pa.decimal128(10, 0)])
def test_values_of_other_types_are_not_dates(type_: pa.DataType) -> None:
    values = pa.array([20200101, None], pa.int32()).cast(type_)
    outcome = ages(values, date(2026, 1, 1), timezone.utc)

    assert not outcome.is_date.any()
    assert not outcome.is_old.any()


@pytest.mark.parametrize(
    ("now", "zone", "first"),
    [
        ("2026-11-27T23:59:59Z", "UTC", date(2026, 8, 29)),
        ("2026-11-28T00:00:00Z", "UTC", date(2026, 8, 30)),
        ("2026-11-27T22:59:59Z", "Europe/Berlin", date(2026, 8, 29)),
        ("2026-11-27T23:00:00Z", "Europe/Berlin", date(2026, 8, 30)),
        # It is tomorrow already on one side of the date line, and still yesterday on the other.
        ("2026-11-27T10:30:00Z", "Pacific/Kiritimati", date(2026, 8, 30)),
        ("2026-11-27T10:30:00Z", "Pacific/Pago_Pago", date(2026, 8, 28)),
    ],
)
def test_the_first_day_that_stays_changes_at_midnight_in_the_zone(
    now: str, zone: str, first: date
) -> None:
    moment = datetime.fromisoformat(now.replace("Z", "+00:00"))

    assert first_day(moment, 90, ZoneInfo(zone)) == first
