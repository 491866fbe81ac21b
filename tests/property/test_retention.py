"""No partition goes that is younger than the days of the policy, or whose value is not a date."""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.models import FIRST_REAL_DAY, EffectivePolicy, SnapshotInfo
from windrow_service.planner.maintenance.retention import Keeping, ages, keeping, last_day
from windrow_service.usecases.maintenance.retention import OldPartitions, old_partitions
from windrow_service.usecases.snapshots.ports import Snapshot

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
    *("2026-08-", "2026-", "2026-08x", "\uff12026-08-01", "2026-08-001", "today", "0000-01-01"),
    *("8", "2026-08-01 x", "2026-01-01-2", "1234-5-6 bolt M4", "2026-08-01T10h", "2026-08-01 a:b"),
    *("2026-08-01T10:00:00.0123456789", "2026-08-01 10:00 CEST", "0815 nut", "1999-12-beta"),
]
# What programs write for a day that they do not know, and the last ones of some.
SENTINELS = [
    *("0001-01-01", "1000-01-01", "1582-10-15", "1753-01-01", "1899-12-30", "1899-12-31"),
    *("1900-01-01", "1901-01-01", "1904-01-01", "1969-12-31", "1970-01-01", "1970-01-02"),
    *("1980-01-01", "1980-01-06", "1999-12-31", "2000-01-01", "2999-12-31", "9999-12-31"),
]


@dataclass(frozen=True, slots=True)
class Told:
    """A value of a partition column, made from what it means: a day, or none.

    Attributes:
        value: A text, a day, a number, or null.
        day: The last day that it names.
        is_whole: Whether it names this day alone.
    """

    value: Any
    day: date | None
    is_whole: bool


def _written(day: date, style: int) -> str:
    """Return a day as a text, in one of the forms that Spark casts to it."""
    plain = f"{day.year:04}-{day.month}-{day.day}"
    return [
        day.isoformat(),
        plain,
        f" {plain} ",
        f"{plain}T",
        f"{day} 23:59:59.9",
        f"{plain} 7",
        f"{day}T07:05Z",
        f"{day} 7:05:00 +02:00",
        f"{day} 10:30:00 UTC",
    ][style]


_STYLES = st.integers(0, 8)
_WHOLE = st.builds(lambda day, style: Told(_written(day, style), day, True), _DATES, _STYLES)
_OF_SENTINELS = st.sampled_from(SENTINELS).map(
    lambda text: Told(text, date.fromisoformat(text), True)
)
# Years and months, or codes that look like these: nobody can tell.
_YEARS = st.integers(1, 9_999).map(lambda year: Told(f"{year:04}", date(year, 12, 31), False))
_MONTHS = st.builds(
    lambda year, month, style: Told(
        f"{year:04}-{month:02}" if style else f"{year:04}-{month}",
        date(year, month, calendar.monthrange(year, month)[1]),
        False,
    ),
    *(st.integers(1_000, 2_100), st.integers(1, 12), st.booleans()),
)
_NOTHINGS = st.sampled_from(NO_DATES).map(lambda text: Told(text, None, False))
_NULLS = st.just(Told(None, None, True))
_TEXTS = st.one_of(_WHOLE, _WHOLE, _OF_SENTINELS, _YEARS, _MONTHS, _NOTHINGS, _NULLS)
_CLEAN_TEXTS = st.one_of(_WHOLE, _WHOLE, _OF_SENTINELS, _NULLS)
_TYPED = st.one_of(
    _NULLS,
    st.one_of(_DATES, st.sampled_from(SENTINELS).map(date.fromisoformat)).map(
        lambda day: Told(day, day, True)
    ),
)
_NUMBERS = st.integers(1, 30_000_000).map(lambda number: Told(number, None, True))
# For each kind of column: its type, and its values.
_KINDS: Mapping[str, tuple[pa.DataType, st.SearchStrategy[Told]]] = {
    "texts": (pa.string(), _TEXTS),
    "clean": (pa.string(), _CLEAN_TEXTS),
    "codes": (pa.string(), _YEARS),
    "typed": (pa.date32(), _TYPED),
    "numbers": (pa.int64(), _NUMBERS),
}


@st.composite
def _tables(draw: st.DrawFn) -> dict[str, tuple[pa.DataType, list[Told]]]:
    """Draw partition columns by name, with the values of some partitions."""
    names = draw(st.lists(st.sampled_from(sorted(_KINDS)), min_size=1, max_size=3))
    count = draw(st.integers(0, 8))
    return {
        f"{name}{at}": (
            _KINDS[name][0],
            draw(st.lists(_KINDS[name][1], min_size=count, max_size=count)),
        )
        for at, name in enumerate(names)
    }


def days_kept(now: datetime, keep_days: int, zone: ZoneInfo) -> Keeping:
    return keeping(now, keep_days, FIRST_REAL_DAY, zone)


def is_old_enough(day: date, now: datetime, keep_days: int, zone: ZoneInfo) -> bool:
    """Return, by the clocks on the walls of a zone, whether the end of a day is so many days ago."""
    wall = now.astimezone(zone).replace(tzinfo=None)
    begin = datetime.combine(day, time())
    return wall - begin >= timedelta(days=keep_days + 1)


def expected_to_go(
    table: Mapping[str, tuple[pa.DataType, list[Told]]], policy: EffectivePolicy, now: datetime
) -> set[tuple[str, Any]]:
    """Return names and values of what a policy drops, as its page says."""
    assert policy.keep_days is not None
    # Columns that may have the days: text only if it is named, or each value is a whole date.
    candidates = [
        name
        for name, (type_, column) in table.items()
        if any(one.day is not None for one in column)
        and (
            name == policy.keep_by
            if policy.keep_by is not None
            else type_ != pa.string() or all(one.is_whole for one in column)
        )
    ]
    if len(candidates) != 1:
        return set()
    (name,) = candidates
    column = table[name][1]
    old, has_young = set(), False
    for one in column:
        if one.day is None or one.day < policy.keep_before:
            continue
        if is_old_enough(one.day, now, policy.keep_days, ZoneInfo("UTC")):
            old.add((name, one.value))
        elif one.day <= now.date() + timedelta(days=1):
            has_young = True
    return old if has_young or policy.may_drop_all else set()


@examples(800)
@given(_tables(), _NOW, _DAYS, st.data())
def test_of_any_table_what_goes_is_old_and_sure_to_be_a_day(
    table: dict[str, tuple[pa.DataType, list[Told]]], now: datetime, keep_days: int, data: Any
) -> None:
    policy = EffectivePolicy(
        enabled=True,
        keep_days=keep_days,
        keep_by=data.draw(st.none() | st.sampled_from(sorted(table))),
        keep_before=data.draw(st.sampled_from([FIRST_REAL_DAY, date.min, date(2020, 1, 1)])),
        may_drop_all=data.draw(st.booleans()),
    )
    kept = keeping(now, keep_days, policy.keep_before, ZoneInfo("UTC"))

    outcome = old_partitions(*_snapshot_of(table), policy, kept)

    expected = expected_to_go(table, policy, now)
    labels = set(outcome.values) if isinstance(outcome, OldPartitions) else set()
    assert labels == {f"{name}={value}" for name, value in expected}
    if not isinstance(outcome, OldPartitions):
        return
    assert outcome.removal.partitions == sum(
        (name, one.value) in expected for name, (_, column) in table.items() for one in column
    )
    some = sorted(labels)[::2]
    part = old_partitions(*_snapshot_of(table), policy, kept, some)
    # A worker gets only what was decided before.
    assert isinstance(part, OldPartitions)
    assert sorted(part.values) == some


def _snapshot_of(
    table: Mapping[str, tuple[pa.DataType, Sequence[Told]]],
) -> tuple[Snapshot, pa.Table]:
    schema = pa.schema([(name, type_) for name, (type_, _) in table.items()])
    columns = {
        name: pa.array([one.value for one in column], type_)
        for name, (type_, column) in table.items()
    }
    count = len(next(iter(columns.values())))
    ones = pa.array([1] * count, pa.int64())
    figures = dict.fromkeys(("file_count", "size_bytes", "row_count"), ones)
    info = SnapshotInfo(
        snapshot_id=1,
        created_at=_BEGIN.replace(tzinfo=timezone.utc),
        file_count=count,
        row_count=count,
        size_bytes=count,
        manifest_count=0,
        columns=[],
        partition_columns=[],
        files_added=count,
        files_removed=0,
    )
    empty = pa.schema([])
    snapshot = Snapshot(
        info=info,
        data_schema=empty,
        partition_schema=schema,
        manifests=(),
        ranges=empty.empty_table(),
    )
    return snapshot, pa.table({**columns, **figures})


@examples(200)
@given(st.lists(st.none() | _DATES, max_size=6), _NOW, _DAYS, _ZONES, _STYLES)
def test_dates_and_their_texts_go_once_their_day_ended_so_many_days_ago(
    days: list[date | None], now: datetime, keep_days: int, zone: ZoneInfo, style: int
) -> None:
    kept = days_kept(now, keep_days, zone)
    expected = [one is not None and is_old_enough(one, now, keep_days, zone) for one in days]
    texts = [one and _written(one, style) for one in days]

    for values in (pa.array(days, pa.date32()), pa.array(texts, pa.string())):
        outcome = ages(values, kept)
        assert outcome.is_old.tolist() == expected
        assert outcome.is_date.tolist() == [one is not None for one in days]
        assert not outcome.doubts


@examples(200)
@given(
    st.lists(st.none() | _MOMENTS, max_size=6),
    *(_NOW, _DAYS, _ZONES, _UNITS),
)
def test_timestamps_go_by_the_day_in_the_zone_and_those_without_a_zone_by_their_own(
    moments: list[datetime | None], now: datetime, keep_days: int, zone: ZoneInfo, unit: str
) -> None:
    moments = [one and one.replace(microsecond=0) for one in moments]
    kept = days_kept(now, keep_days, zone)

    plain = ages(pa.array(moments, pa.timestamp(unit)), kept)
    instants = [one and one.replace(tzinfo=timezone.utc) for one in moments]
    in_zone = ages(pa.array(instants, pa.timestamp(unit, "UTC")), kept)

    assert plain.is_old.tolist() == [
        one is not None and is_old_enough(one.date(), now, keep_days, zone) for one in moments
    ]
    last = now.astimezone(zone).date() + timedelta(days=1)
    assert plain.newest == max(
        (one.date() for one in moments if one and one.date() <= last), default=None
    )
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
@given(_DATES, _NOW, _DAYS, _ZONES, st.sampled_from(["%Y", "%Y-%m"]))
def test_the_year_or_month_that_it_is_counts_as_new_though_it_is_not_over(
    day: date, now: datetime, keep_days: int, zone: ZoneInfo, style: str
) -> None:
    kept = days_kept(now, keep_days, zone)
    last = last_day(day.strftime(style))
    assert last is not None

    newest = ages(pa.array([day.strftime(style)]), kept).newest

    has_begun = day.strftime(style) <= kept.today.strftime(style)
    assert newest == (min(last, kept.today) if has_begun else None)


@examples(100)
@given(st.lists(st.sampled_from(NO_DATES) | st.text(max_size=9), max_size=6), _NOW, _DAYS, _ZONES)
def test_a_text_that_is_not_a_date_never_goes(
    texts: list[str], now: datetime, keep_days: int, zone: ZoneInfo
) -> None:
    outcome = ages(pa.array(texts, pa.string()), days_kept(now, keep_days, zone))

    for text, is_date, is_old in zip(
        texts, outcome.is_date.tolist(), outcome.is_old.tolist(), strict=True
    ):
        assert not (text in NO_DATES and is_date)
        assert is_date or not is_old
    assert outcome.doubts or not set(texts) & set(NO_DATES)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026", date(2026, 12, 31)),
        ("2026-8", date(2026, 8, 31)),
        ("2024-02", date(2024, 2, 29)),
        ("2026-08-01", date(2026, 8, 1)),
        ("2026-8-1T10:00:00+02:00", date(2026, 8, 1)),
        ("\t2026-08-01 10\n", date(2026, 8, 1)),
    ],
)
def test_a_year_or_a_month_stands_for_its_last_day(text: str, day: date) -> None:
    assert last_day(text) == day


@pytest.mark.parametrize("text", SENTINELS)
@pytest.mark.parametrize("type_", [pa.date32(), pa.string(), pa.timestamp("us")])
def test_days_that_stand_for_something_else_stay_unless_they_are_asked_for(
    text: str, type_: pa.DataType
) -> None:
    now = datetime(2026, 11, 28, tzinfo=timezone.utc)
    day = date.fromisoformat(text)
    values = pa.array([text] if type_ == pa.string() else [day]).cast(type_)
    asked_for = keeping(now, 90, date.min, ZoneInfo("UTC"))

    assert not ages(values, days_kept(now, 90, ZoneInfo("UTC"))).is_old.any()
    assert ages(values, asked_for).is_old.tolist() == [day < date(2026, 8, 30)]


@pytest.mark.parametrize("type_", [pa.int32(), pa.float64(), pa.bool_(), pa.decimal128(10, 0)])
def test_values_of_other_types_are_not_dates(type_: pa.DataType) -> None:
    values = pa.array([20200101, None], pa.int32()).cast(type_)
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    outcome = ages(values, days_kept(now, 90, ZoneInfo("UTC")))

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

    assert days_kept(moment, 90, ZoneInfo(zone)).first == first
