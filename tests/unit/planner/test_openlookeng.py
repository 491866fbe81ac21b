"""openLooKeng's grouping: the numbers that its own tests assert, and its design's rules."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.support.inventories import MIB, inventory
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import Policy


def plan(
    sizes: list[int], *, cap: int | None = None, limit: int = 64 * MIB, **columns: object
) -> GroupedSplits:
    policy = Policy(strategy="openlookeng", max_split_size=limit, max_small_splits_grouped=cap)
    return plan_groups(inventory(sizes, **columns), None, policy)  # type: ignore[arg-type]


def group_sizes(grouped: GroupedSplits) -> list[int]:
    return sorted(np.diff(grouped.offsets).tolist(), reverse=True)


@pytest.mark.parametrize(
    ("sizes", "hosts", "buckets", "cap", "expected"),
    [
        pytest.param([100] * 12, [["vm1", "vm3", "vm2"]] * 12, None, 10, {4: 3}, id="small-split"),
        pytest.param([100] * 30, [["vm1"]] * 30, None, 10, {10: 3}, id="one-replica"),
        pytest.param(
            [100] * 24,
            [[f"vm{n % 3}", f"vm{(n + 1) % 3}"] for n in range(24)],
            None,
            10,
            {4: 6},
            id="two-replicas",
        ),
        pytest.param(
            [100] * 90,
            [[f"vm{n % 3}", f"vm{(n + 1) % 3}"] for n in range(90)],
            None,
            10,
            {10: 9},
            id="two-replicas-more-than-ten-per-host",
        ),
        pytest.param([100] * 90, [["vm1"]] * 90, None, 30, {30: 3}, id="cap-of-30"),
        pytest.param(
            [100] * 100, [["vm1"]] * 100, [n % 4 for n in range(100)], 100, {25: 4}, id="buckets"
        ),
        pytest.param(
            [32 * MIB, 64 * MIB] * 50, [["vm1"]] * 100, None, 100, {1: 50, 2: 25}, id="alternating"
        ),
        pytest.param([64 * MIB] * 100, [["vm1"]] * 100, None, 100, {1: 100}, id="all-large"),
        pytest.param([100] * 10, None, [2] * 10, 10, {10: 1}, id="one-bucket-no-hosts"),
        pytest.param([100] * 25, None, None, 10, {10: 2, 5: 1}, id="no-hosts"),
    ],
)
def test_the_groups_are_those_that_openlookengs_own_tests_assert(
    sizes: list[int],
    hosts: list[list[str]] | None,
    buckets: list[int] | None,
    cap: int,
    expected: dict[int, int],
) -> None:
    assert Counter(group_sizes(plan(sizes, cap=cap, hosts=hosts, buckets=buckets))) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [1]),
        (2, [2]),
        (3, [1, 1, 1]),
        (4, [1, 1, 1, 1]),
        (5, [1, 1, 1, 1, 1]),
        (6, [2, 2, 2]),
        (7, [2, 2, 2, 1]),
        (11, [3, 3, 3, 2]),
    ],
)
def test_a_location_of_three_hosts_gets_a_third_of_its_splits_per_group(
    count: int, expected: list[int]
) -> None:
    grouped = plan([1] * count, hosts=[["a", "b", "c"]] * count)

    assert group_sizes(grouped) == expected


def test_a_group_takes_the_largest_and_the_smallest_in_turn() -> None:
    grouped = plan(list(range(1, 11)), limit=20, hosts=[["a"]] * 10)

    sizes = np.split(grouped.splits.length, grouped.offsets[1:-1])
    assert sorted(sorted(group.tolist()) for group in sizes) == [
        [1, 9, 10],
        [2, 3, 7, 8],
        [4, 5, 6],
    ]


def test_a_location_is_a_set_so_the_order_of_its_hosts_does_not_matter() -> None:
    grouped = plan([1] * 4, cap=10, hosts=[["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]])

    assert group_sizes(grouped) == [2, 2]


def test_host_names_that_read_alike_when_joined_are_different_locations() -> None:
    grouped = plan([1] * 4, hosts=[["a", "bc"], ["a", "bc"], ["ab", "c"], ["ab", "c"]])

    assert group_sizes(grouped) == [1, 1, 1, 1]


def test_a_missing_bucket_does_not_mix_with_bucket_zero() -> None:
    grouped = plan([1] * 4, buckets=[0, None, 0, None])

    assert group_sizes(grouped) == [2, 2]
    assert sorted(grouped.bucket.tolist()) == [-1, 0]


def test_a_cacheable_split_stays_alone_and_the_others_still_group() -> None:
    policy = Policy(strategy="openlookeng")
    cacheable = np.array([False, True, False, False])

    grouped = plan_groups(inventory([1] * 4), None, policy, cacheable)

    assert group_sizes(grouped) == [3, 1]
