"""Files that are marked as in the calendar before Gregory's are served if their footers show no old value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import windrow
from tests.support.engines.answers import load, refusal
from tests.support.laws import examples

MARKS = (
    {"org.apache.spark.version": "3.2.1", "org.apache.spark.legacyDateTime": ""},
    {"org.apache.spark.version": "2.4.8"},
)
TIME = pa.timestamp("us", tz="UTC")
FIRST_DAY = date(1582, 10, 15)
FIRST_TIME = datetime(1900, 1, 1, tzinfo=timezone.utc)
DAYS = st.one_of(
    st.none(), st.sampled_from([FIRST_DAY, date(1582, 10, 14), date(1, 1, 1)]), st.dates()
)
TIMES = st.one_of(
    st.none(),
    st.just(FIRST_TIME),
    st.datetimes(datetime(1890, 1, 1), datetime(1910, 1, 1), timezones=st.just(timezone.utc)),  # noqa: DTZ001
)


@examples(40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(
        st.lists(st.tuples(DAYS, TIMES), min_size=1, max_size=3), min_size=1, max_size=3
    ),
    mark=st.sampled_from(MARKS),
)
def test_they_are_served_exactly_if_no_value_is_old(
    client: windrow.Client,
    http: httpx.Client,
    name: str,
    location: Path,
    files: Sequence[Sequence[tuple[Any, Any]]],
    mark: dict[str, str],
) -> None:
    location.mkdir(exist_ok=True)
    for old in location.iterdir():
        old.unlink()
    for number, rows in enumerate(files):
        days, times = zip(*rows, strict=True)
        schema = pa.schema([("d", pa.date32()), ("t", TIME)], metadata=mark)
        table = pa.table([pa.array(days, pa.date32()), pa.array(times, TIME)], schema)
        pq.write_table(table, location / str(number), row_group_size=2)
    is_old = any(
        (day is not None and day < FIRST_DAY) or (time is not None and time < FIRST_TIME)
        for rows in files
        for day, time in rows
    )
    client.register_table(name, str(location), replace=True)
    client.refresh(name)

    answer = load(http, name)

    if is_old:
        assert "in the calendar before Gregory's" in refusal(answer)
    else:
        assert answer.status_code == 200


@pytest.mark.parametrize("how", ["in a list", "without bounds", "as INT96"])
def test_they_are_refused_if_footers_do_not_show_it(
    client: windrow.Client, http: httpx.Client, name: str, location: Path, how: str
) -> None:
    location.mkdir()
    values = [FIRST_TIME]
    column = pa.array([values]) if how == "in a list" else pa.array(values)
    table = pa.table({"v": column}).replace_schema_metadata(MARKS[0])
    pq.write_table(
        table,
        location / "f",
        write_statistics=how != "without bounds",
        use_deprecated_int96_timestamps=how == "as INT96",
    )
    client.register_table(name, str(location))
    client.refresh(name)

    assert "column 'v' may hold" in refusal(load(http, name))
