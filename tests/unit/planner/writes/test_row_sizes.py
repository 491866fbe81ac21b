"""Bytes per row, from files of all sizes."""

from __future__ import annotations

import numpy as np
import pytest

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.row_sizes import RowSizes, row_sizes


def sizes_of(size_bytes: list[int], rows: list[int], columns: int = 10) -> RowSizes:
    known = row_sizes(ints(size_bytes), ints(rows), columns)
    assert known is not None
    return known


def ints(values: list[int]) -> Ints:
    return np.array(values, np.int64)


def test_a_commit_of_three_rows_changes_nothing() -> None:
    alone = sizes_of([50_000_000, 51_000_000], [1_000_000, 1_000_000])

    with_it = sizes_of([50_000_000, 51_000_000, 9_000], [1_000_000, 1_000_000, 3])

    assert (with_it.mean, with_it.rows) == (alone.mean, alone.rows)
    assert alone.mean == pytest.approx(50.5, rel=0.001)


def test_averages_are_weighted_by_rows_not_files() -> None:
    known = sizes_of([10_000_000, 3_000_000], [1_000_000, 150_000])

    assert known.mean == pytest.approx(13_000_000 / 1_150_000, rel=0.01)


def test_the_overhead_of_small_files_is_not_counted_as_rows() -> None:
    rows = [10, 20, 30, 40]

    known = sizes_of([3_000 + 25 * count for count in rows], rows)

    assert known.mean == pytest.approx(25)


def test_files_of_one_size_give_a_plain_average() -> None:
    assert sizes_of([2_000, 2_000], [100, 100]).mean == 20


def test_bytes_of_large_files_of_random_sizes_are_not_taken_for_overhead() -> None:
    known = sizes_of([100_000_000, 100_100_000, 99_900_000], [1_000_000, 900_000, 1_100_000])

    assert known.mean == pytest.approx(100, rel=0.01)


def test_a_tenth_of_the_rows_lies_below_low_and_a_tenth_above_high() -> None:
    size = [count * 1_000 for count in range(1, 101)]

    known = sizes_of(size, [1_000] * 100)

    assert (known.low, known.high) == (10, 90)


def test_a_group_of_few_rows_has_the_average_of_all() -> None:
    known = row_sizes(
        ints([400_000, 100_000, 2_970]),
        ints([10_000, 10_000, 990]),
        None,
        group=ints([0, 1, 2]),
        groups=4,
    )

    assert known is not None
    pooled = 502_970 / 20_990
    assert known.of_group.tolist() == [40, 10, pooled, pooled]


def test_files_without_rows_or_bytes_give_no_row_size() -> None:
    assert row_sizes(ints([0, 0]), ints([500, 600]), 3) is None
    assert row_sizes(ints([500, 600]), ints([0, 0]), 3) is None
    assert row_sizes(ints([]), ints([]), 3) is None
