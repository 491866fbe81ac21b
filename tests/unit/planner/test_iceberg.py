"""Iceberg's packing under the limits of a plan."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tables.inventories import MIB
from windrow_service.planner.packing.strategies.iceberg import cut_size, first_fit
from windrow_service.planner.policy import Policy


@pytest.mark.parametrize(
    ("total", "target", "parallelism", "least", "expected"),
    [
        (1000, 100, 10, 1, 100),
        (1000, 100, 11, 1, 90),
        (1000, 100, 11, 95, 95),
        (1000, 100, 1000, 500, 100),
        (0, 100, 4, 1, 1),
        (64 * MIB, 128 * MIB, 8, 16 * MIB, 16 * MIB),
    ],
)
def test_the_target_shrinks_to_a_share_for_each_slot_but_not_below_the_minimum(
    total: int, target: int, parallelism: int, least: int, expected: int
) -> None:
    policy = Policy(max_split_size=target, min_split_size=least, parallelism=parallelism)

    assert cut_size(np.array([total]), policy) == expected


def test_a_bin_that_is_full_by_count_is_closed_first() -> None:
    assert first_fit([1, 1, 1, 1, 1], 10, 2) == [0, 0, 1, 1, 2]
    # Bin 0 is full and is closed first, so bin 1 is still open for the last file.
    assert first_fit([1, 1, 9, 6, 1], 10, 2, 2) == [0, 0, 1, 2, 1]


def test_the_fullest_bin_is_closed_first() -> None:
    # The bin with 9 is closed, so the bin with 5 can take the last file.
    assert first_fit([5, 9, 6, 4], 10, lookback=2) == [0, 1, 2, 0]
    assert first_fit([5, 9, 6, 1], 10, lookback=2) == [0, 1, 2, 0]


def test_a_weight_over_the_target_is_alone() -> None:
    assert first_fit([30, 0, 1, 12], 10) == [0, 1, 1, 2]
