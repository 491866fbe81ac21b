"""openLooKeng's grouping: the rules of its design. Its own test cases are in test_conformance."""

from __future__ import annotations

import numpy as np

from tests.support.tables.inventories import MIB, inventory, marked
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import Policy


def plan(
    sizes: list[int], *, cap: int | None = None, limit: int = 64 * MIB, **columns: object
) -> GroupedSplits:
    policy = Policy(strategy="openlookeng", max_split_size=limit, max_small_splits_grouped=cap)
    return plan_groups(inventory(sizes, **columns), None, policy)  # type: ignore[arg-type]


def group_sizes(grouped: GroupedSplits) -> list[int]:
    return sorted(np.diff(grouped.offsets).tolist(), reverse=True)


def test_a_location_is_a_set_so_the_order_of_its_hosts_does_not_matter() -> None:
    grouped = plan([1] * 4, cap=10, hosts=[["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]])

    assert group_sizes(grouped) == [2, 2]


def test_host_names_that_are_equal_only_when_joined_are_different_locations() -> None:
    grouped = plan([1] * 4, hosts=[["a", "bc"], ["a", "bc"], ["ab", "c"], ["ab", "c"]])

    assert group_sizes(grouped) == [1, 1, 1, 1]


def test_a_missing_bucket_does_not_mix_with_bucket_zero() -> None:
    grouped = plan([1] * 4, buckets=[0, None, 0, None])

    assert group_sizes(grouped) == [2, 2]
    assert sorted(grouped.bucket.tolist()) == [-1, 0]


def test_a_cacheable_split_stays_alone_and_the_others_still_group() -> None:
    policy = Policy(strategy="openlookeng")
    cached = marked(np.array([False, True, False, False]))

    grouped = plan_groups(inventory([1] * 4), None, policy, cached)

    assert group_sizes(grouped) == [3, 1]


def test_the_pieces_of_a_cut_file_stay_alone_even_the_small_last_one() -> None:
    offsets = [[0, 90, 180, 250], [0], [0]]

    grouped = plan([260, 10, 20], limit=100, row_group_offsets=offsets)

    parts = np.split(grouped.splits.length, grouped.offsets[1:-1])
    assert sorted(sorted(part.tolist()) for part in parts) == [[10, 20], [80], [90], [90]]
