"""Reasons of maintenance: sizes are those of the rows there, and figures multiply out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.models import WorkPrediction
from windrow_core.sizes import parse_size
from windrow_service.usecases.maintenance.texts import chosen, requested

_SIZE = r"([0-9,.]+ [KMGTP]?B)"


def prediction(**fields: float) -> WorkPrediction:
    """Return a prediction whose sums are those of its factors."""
    names = ("gain_seconds", "reads_per_day", "lasting_days")
    gain, reads, days = (fields.get(name, 1.0) for name in names)
    saved, cost = gain * reads * days, fields.get("cost_seconds", 1.0)
    figures = {"files": 11, "becomes": 5, "size_bytes": 46_000} | fields
    return WorkPrediction(
        partitions=5,
        cost_seconds=cost,
        gain_seconds=gain,
        reads_per_day=reads,
        lasting_days=days,
        saved_seconds=saved,
        score=saved / cost,
        **{name: int(figures[name]) for name in ("files", "becomes", "size_bytes")},
    )


@given(st.integers(1, 10**6), st.integers(1, 2**46), st.booleans())
@examples(200)
def test_the_size_of_the_files_that_would_be_is_that_of_the_rows_there(
    becomes: int, size_bytes: int, is_request: bool
) -> None:
    work = prediction(files=becomes + 1, becomes=becomes, size_bytes=size_bytes)

    text = requested(work, "ana") if is_request else chosen(work, None)

    match = re.search(rf"\({_SIZE}\) in .* would become ([0-9,]+) of {_SIZE}", text)
    assert match is not None
    total, mean = (int(parse_size(match[at].replace(",", ""))) for at in (1, 3))  # type: ignore[call-overload]
    assert int(match[2].replace(",", "")) == becomes
    assert total == pytest.approx(size_bytes, rel=0.06, abs=1)
    assert mean == pytest.approx(size_bytes / becomes, rel=0.06, abs=1)
    assert ("on average" in text) == (becomes > 1)


@given(*[st.floats(0.001, 1_000)] * 3)
@examples(200)
def test_what_is_saved_is_reads_a_day_times_seconds_times_days(
    gain: float, reads: float, days: float
) -> None:
    text = chosen(prediction(gain_seconds=gain, reads_per_day=reads, lasting_days=days), None)

    number = r"([0-9.e+,-]+)"
    match = re.search(
        rf"{number} reads a day x {number} (m?s) x {number} days? are {number} (m?s),", text
    )
    assert match is not None
    often, each, long, total = (float(match[at].replace(",", "")) for at in (1, 2, 4, 5))
    unit = {"s": 1.0, "ms": 0.001}
    assert often * each * unit[match[3]] * long == pytest.approx(
        total * unit[match[6]], rel=0.05, abs=0.001
    )


def test_a_rewrite_says_when_it_pays_off_or_that_it_does_not() -> None:
    soon = chosen(prediction(cost_seconds=7.0, reads_per_day=14.0, lasting_days=3.0), None)
    never = chosen(prediction(cost_seconds=100.0, reads_per_day=14.0, lasting_days=3.0), None)
    by_reads = requested(prediction(cost_seconds=6.5, gain_seconds=0.5), "ana")

    assert soon.endswith("it pays off after 12 hours")
    assert never.endswith("it does not pay off in that time")
    assert by_reads.endswith("It pays off after 13 reads")
