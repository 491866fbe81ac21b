"""Durations and sizes as text: those of a sentence or a column have one unit, and none is 0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_service.api.html.units import duration_texts, size_texts


@pytest.mark.parametrize(
    ("seconds", "texts"),
    [
        ([6.55, 0.0691], ["6.55 s", "0.069 s"]),
        ([0.0691, 0.002], ["69.1 ms", "2 ms"]),
        ([0.00068, 0.5], ["0.68 ms", "500 ms"]),
        ([0.00003, 5], ["less than 0.001 s", "5 s"]),
        ([54_321, 6.554, 0], ["54,321 s", "6.55 s", "0 s"]),
        ([120, 7_199], ["2 min", "120 min"]),
        ([7_200, 36_000, 0], ["2 h", "10 h", "0 h"]),
        ([119.96], ["120 s"]),
        ([0], ["0 s"]),
        ([], []),
    ],
)
def test_durations_have_the_unit_that_suits_all_of_them(
    seconds: list[float], texts: list[str]
) -> None:
    assert duration_texts(seconds) == texts


@given(st.lists(st.floats(0, 1e7), max_size=5))
def test_durations_have_one_unit_keep_their_order_and_only_zero_is_zero(
    seconds: list[float],
) -> None:
    texts = duration_texts(seconds)
    numbers = [
        float(one.removeprefix("less than ").split(" ")[0].replace(",", "")) for one in texts
    ]

    assert len({one.split(" ")[-1] for one in texts}) <= 1
    assert [number == 0 for number in numbers] == [one == 0 for one in seconds]
    in_order = [number for _, number in sorted(zip(seconds, numbers, strict=True))]
    assert in_order == sorted(in_order)
    assert not any("e" in one.removeprefix("less than") for one in texts)


@pytest.mark.parametrize(
    ("sizes", "texts"),
    [
        ([3 * 2**30, 466 * 2**10], ["3,072 MB", "0.46 MB"]),
        ([2**20, 0], ["1 MB", "0 MB"]),
        ([1_536], ["1.5 KB"]),
        ([5 * 2**30, 2**30], ["5 GB", "1 GB"]),
        ([12], ["12 B"]),
        ([], []),
    ],
)
def test_sizes_of_a_column_have_one_unit(sizes: list[float], texts: list[str]) -> None:
    assert size_texts(sizes) == texts
