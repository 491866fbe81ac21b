"""Statistics and partition values in logs of Delta tables."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.delta_tables import DeltaLog, add, column, metadata, protocol
from windrow_core.files.types import TIMESTAMP, TIMESTAMP_NTZ
from windrow_service.delta.errors import DeltaLogError
from windrow_service.delta.reading import LoggedTable, read_version
from windrow_service.delta.schemas import Shape
from windrow_service.delta.statistics import typed


def _typed(type_: pa.DataType, *texts: str | None, widened: tuple[str, ...] = ()) -> list[Any]:
    data = pa.schema([("c", type_)])
    shape = Shape(data=data, partition=pa.schema([]), log_names={"c": "C"}, widened=widened)
    found: list[Any] = typed(pa.array(texts, pa.string()), shape).stats.field(0).to_pylist()
    return found


def _stats(least: Any, greatest: Any, nulls: Any = 0) -> str:
    return json.dumps(
        {
            "numRecords": 3,
            "minValues": {"C": least},
            "maxValues": {"C": greatest},
            "nullCount": {"C": nulls},
        }
    )


def test_bounds_of_times_are_widened_by_a_millisecond() -> None:
    (found,) = _typed(
        TIMESTAMP, _stats("2020-01-01T00:00:00.123Z", "2020-01-01T02:00:00.123+02:00")
    )

    assert found["min"] == datetime(2020, 1, 1, 0, 0, 0, 122_000, timezone.utc)
    assert found["max"] == datetime(2020, 1, 1, 0, 0, 0, 124_000, timezone.utc)
    (found,) = _typed(TIMESTAMP_NTZ, _stats("1960-01-01T00:00:00", "1960-01-01 00:00:00.5"))
    assert found["min"] < datetime.fromisoformat("1960-01-01")
    assert found["max"] > datetime.fromisoformat("1960-01-01T00:00:00.500999")


ZONES = sorted(available_timezones())


@examples(400)
@given(
    at=st.datetimes(datetime.fromisoformat("1800-01-01"), datetime.fromisoformat("2037-01-01")),
    zone=st.sampled_from(["Africa/Monrovia", "Europe/Stockholm", *ZONES]).map(ZoneInfo),
)
def test_bounds_hold_for_times_in_zones_that_were_seconds_from_utc(
    at: datetime, zone: ZoneInfo
) -> None:
    moment = at.replace(tzinfo=timezone.utc)
    # As Delta on Spark writes them: the seconds of the distance are left out.
    local = moment.astimezone(zone).isoformat(timespec="milliseconds")
    text = re.sub(r"([+-]\d\d:\d\d):\d\d$", r"\1", local)

    (found,) = _typed(TIMESTAMP, _stats(text, text))

    assert found["min"] <= moment <= found["max"]
    assert found["max"] - found["min"] <= timedelta(minutes=2)


@pytest.mark.parametrize(
    ("type_", "least", "greatest"),
    [
        (TIMESTAMP, "2020-01-01T00:00:00", "+12020-01-01T00:00:00Z"),
        (TIMESTAMP_NTZ, "2020-01-01T00:00:00Z", "soon"),
        (pa.date32(), "2020-1-1", "2020-02-30"),
        (pa.float64(), "NaN", "Infinity"),
        (pa.float64(), "-Infinity", "NaN"),
        (pa.int32(), "1", [1]),
        (pa.int32(), 2**40, 1.5),
        (pa.decimal128(4, 2), 100, -100),
        (pa.bool_(), 0, 1),
        (pa.binary(), "a", "b"),
        (pa.string(), 1, {"a": 1}),
        (pa.string(), "\ud800", "a"),
    ],
)
def test_bounds_that_are_not_values_are_unknown_and_do_not_affect_other_files(
    type_: pa.DataType, least: Any, greatest: Any
) -> None:
    good = json.dumps({"numRecords": 3, "nullCount": {"C": 2}})
    bad, before, after = _typed(type_, _stats(least, greatest), good, good)

    assert bad["min"] is None
    assert bad["max"] is None
    assert before == after == {"min": None, "max": None, "null_count": 2}


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "{}{}", '{"numRecords": "x"}', "[" * 10**5, '{"a":1,\n"b":2}']
)
def test_texts_that_are_not_statistics_leave_them_unknown(text: str | None) -> None:
    found, other = _typed(pa.int64(), text, _stats(1, 2))

    assert found == {"min": None, "max": None, "null_count": None}
    assert other == {"min": 1, "max": 2, "null_count": 0}


def test_names_of_numbers_within_texts_stay_texts() -> None:
    text = 'a:"NaN"'
    (found,) = _typed(pa.string(), _stats(text, text))

    assert found["min"] == found["max"] == text


def test_the_upper_bound_of_truncated_texts_is_above_all_of_them() -> None:
    (found,) = _typed(pa.string(), _stats("a", "a" * 32 + "\ufffd"))

    assert found["max"] > "a" * 32 + "\U0001f600"


def test_fractions_that_were_widened_have_no_bounds() -> None:
    (found,) = _typed(pa.float64(), _stats(3.4, 3.4), widened=("c",))

    assert found == {"min": None, "max": None, "null_count": 0}


@given(st.decimals(-(10**20), 10**20, places=4, allow_nan=False), st.booleans())
def test_decimals_lie_within_bounds_that_went_through_binary_fractions(
    value: Decimal, exact: bool
) -> None:
    said = value if exact else float(value)
    text = f'{{"minValues": {{"C": {said}}}, "maxValues": {{"C": {said}}}}}'.replace("E", "e")
    (found,) = _typed(pa.decimal128(38, 4), text)

    assert found["min"] <= value <= found["max"]
    assert found["max"] - found["min"] <= abs(value) * Decimal("1e-14") + 1


@given(st.integers(-(10**9), 10**9))
def test_decimals_of_few_digits_are_exact(unscaled: int) -> None:
    value = Decimal(unscaled).scaleb(-2)
    (found,) = _typed(pa.decimal128(12, 2), f'{{"minValues": {{"C": {value}}}}}'.replace("E", "e"))

    assert found["min"] == value


_PARTITIONED = [
    ("integer", "7", 7),
    ("long", "-9000000000", -9_000_000_000),
    ("double", "1.5", 1.5),
    ("boolean", "true", True),
    ("date", "2024-02-29", date(2024, 2, 29)),
    ("string", "a%2Fb c", "a%2Fb c"),
    ("string", "", None),
    ("integer", None, None),
    ("decimal(10,2)", "1.50", Decimal("1.50")),
    ("binary", "\u0001\u0002", b"\x01\x02"),
    ("timestamp", "2024-01-01T00:00:00.000001Z", datetime(2024, 1, 1, 0, 0, 0, 1, timezone.utc)),
    ("timestamp", "2024-07-01 00:00:00.5", datetime(2024, 6, 30, 22, 0, 0, 500_000, timezone.utc)),
    (
        "timestamp_ntz",
        "2024-01-01 00:00:00.000001",
        datetime.fromisoformat("2024-01-01T00:00:00.000001"),
    ),
]


def _partitioned(folder: Path, type_: str, text: str | None) -> DeltaLog:
    log = DeltaLog(folder)
    log.commit(
        protocol(),
        metadata([column("id", "long"), column("p", type_)], ["p"]),
        add("p=x/a.parquet", partitionValues={"p": text}),
    )
    return log


@pytest.mark.parametrize(("type_", "text", "value"), _PARTITIONED)
def test_partition_values_have_the_type_of_their_column(
    type_: str, text: str | None, value: Any, tmp_path: Path
) -> None:
    log = _partitioned(tmp_path, type_, text)
    table = LoggedTable(location=str(tmp_path), time_zone="Europe/Stockholm")

    assert read_version(table, None).files["partition"].to_pylist() == [{"p": value}]
    assert log.version == 0


@pytest.mark.parametrize(
    ("type_", "text", "why"),
    [
        ("integer", "seven", "not a int"),
        ("date", "2024-02-30", "not a date"),
        ("timestamp", "2024-01-01 00:00:00", "timeZone"),
        ("boolean", "maybe", "not a boolean"),
    ],
)
def test_invalid_or_ambiguous_partition_values_are_refused(
    type_: str, text: str, why: str, tmp_path: Path
) -> None:
    _partitioned(tmp_path, type_, text)

    with pytest.raises(DeltaLogError, match=why):
        read_version(LoggedTable(location=str(tmp_path)), None)
    if why == "timeZone":
        with pytest.raises(DeltaLogError, match="'Nowhere'"):
            read_version(LoggedTable(location=str(tmp_path), time_zone="Nowhere"), None)
