"""Spark's packing under the limits of a plan."""

from __future__ import annotations

import numpy as np

from tests.support.tables.inventories import MIB, inventory
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import Policy


def plan(
    sizes: list[int], buckets: list[int | None] | None = None, **options: int
) -> list[list[int]]:
    policy = Policy(strategy="spark", **options)  # type: ignore[arg-type]
    return lengths(plan_groups(inventory(sizes, buckets=buckets), None, policy))


def lengths(grouped: GroupedSplits) -> list[list[int]]:
    return sorted(part.tolist() for part in np.split(grouped.splits.length, grouped.offsets[1:-1]))


def test_each_core_gets_its_share_of_bytes_and_open_costs() -> None:
    assert plan([10] * 12, parallelism=3, open_file_cost=0) == [[10] * 4] * 3
    assert plan([10] * 12, parallelism=3, open_file_cost=10) == [[10] * 4] * 3


def test_a_partition_is_at_least_as_large_as_the_open_cost() -> None:
    assert plan([10] * 12, parallelism=12, open_file_cost=30) == [[10]] * 12
    assert plan([0] * 12, parallelism=12, open_file_cost=0) == [[0] * 12]


def test_a_bucket_over_the_largest_size_becomes_several_groups() -> None:
    assert plan([30] * 5, [7] * 5, max_split_size=60, parallelism=5, open_file_cost=10) == [
        [30],
        [30, 30],
        [30, 30],
    ]


def test_splits_with_and_without_a_bucket_are_packed_separately() -> None:
    groups = plan([10] * 4, [0, None, 0, None], open_file_cost=0, max_split_size=MIB)

    assert groups == [[10, 10], [10, 10]]


def test_no_group_holds_more_splits_than_allowed() -> None:
    assert plan([1] * 5, max_small_splits_grouped=2, open_file_cost=0) == [[1], [1, 1], [1, 1]]


def test_files_of_no_bytes_share_a_group() -> None:
    assert plan([0, 0, 0], open_file_cost=0) == [[0, 0, 0]]


def test_too_many_partitions_become_as_many_as_allowed_within_the_largest_size() -> None:
    assert plan([10] * 12, parallelism=12, open_file_cost=30, max_partition_num=4) == [[10] * 3] * 4
    assert (
        plan([10] * 12, parallelism=12, open_file_cost=30, max_partition_num=4, max_split_size=20)
        == [[10, 10]] * 6
    )
    assert plan([10] * 12, parallelism=3, open_file_cost=0, max_partition_num=4) == [[10] * 4] * 3


def test_buckets_do_not_count_among_the_partitions() -> None:
    groups = plan([10] * 6, [0, 1, 2, None, None, None], open_file_cost=0, max_partition_num=1)

    assert groups == [[10], [10], [10], [10, 10, 10]]
