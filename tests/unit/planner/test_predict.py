"""Predicted costs of plans, against figures worked out by hand and by brute force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables.inventories import MIB, inventory
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import READ_BYTES_PER_SECOND, TASK_COST, Policy
from windrow_service.planner.predict import fewest_groups, predict
from windrow_service.planner.slots import slowest_slot


def as_simulated(tasks: Sequence[int], slots: int) -> int:
    """Simulate tick by tick: every free slot takes the next task. Return the time it takes."""
    waiting, left, clock = list(tasks), [0] * slots, 0
    while waiting or any(left):
        left = [time or (waiting.pop(0) if waiting else 0) for time in left]
        left = [max(time - 1, 0) for time in left]
        clock += 1
    return clock


@given(st.lists(st.integers(1, 12), max_size=12), st.integers(1, 5))
def test_the_slowest_slot_is_that_of_a_simulation(tasks: list[int], slots: int) -> None:
    assert slowest_slot(np.array(tasks, np.int64), slots) == as_simulated(tasks, slots)


def partitions(count: int) -> Iterator[list[list[int]]]:
    """Yield every way to divide 0…count-1 into groups."""
    if count == 0:
        yield []
        return
    for smaller in partitions(count - 1):
        yield [*smaller, [count - 1]]
        for at in range(len(smaller)):
            yield [*smaller[:at], [*smaller[at], count - 1], *smaller[at + 1 :]]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from([None, 0, 1])), max_size=6),
    st.integers(1, 12),
    st.none() | st.integers(1, 3),
)
def test_no_packing_within_the_limits_has_fewer_groups_than_the_bound(
    files: list[tuple[int, int | None]], limit: int, most: int | None
) -> None:
    sizes, buckets = [size for size, _ in files], [bucket for _, bucket in files]
    policy = Policy(max_split_size=limit, max_small_splits_grouped=most)

    plan = plan_groups(inventory(sizes, buckets=buckets), None, policy)

    def allowed(group: list[int]) -> bool:
        return (
            len({buckets[at] for at in group}) == 1
            and (len(group) == 1 or sum(sizes[at] for at in group) <= limit)
            and (most is None or len(group) <= most)
        )

    best = min(
        len(groups) for groups in partitions(len(sizes)) if all(allowed(group) for group in groups)
    )
    assert fewest_groups(plan, policy) <= best


@pytest.mark.parametrize(
    ("sizes", "buckets", "limit", "most", "groups"),
    [
        ([], [], 10, None, 0),
        ([0, 0], [None, None], 10, None, 1),
        ([5, 5, 5], [None] * 3, 10, None, 2),
        ([6, 6, 6], [None] * 3, 10, None, 3),
        ([10, 30, 1], [None] * 3, 10, None, 3),
        ([1, 1], [0, 1], 10, None, 2),
        ([1] * 7, [None] * 7, 10, 3, 3),
        ([10, 0], [None] * 2, 10, 2, 1),
    ],
    ids=[
        "no splits",
        "only empty splits",
        "bytes",
        "over half",
        "alone",
        "buckets",
        "count",
        "an empty split fits beside a full one",
    ],
)
def test_the_bound_respects_bytes_counts_and_buckets(
    sizes: list[int], buckets: list[int | None], limit: int, most: int | None, groups: int
) -> None:
    policy = Policy(max_split_size=limit, max_small_splits_grouped=most)

    plan = plan_groups(inventory(sizes, buckets=buckets), None, policy)

    assert fewest_groups(plan, policy) == groups


def test_a_task_costs_its_bytes_its_opens_its_deletes_and_a_fixed_cost() -> None:
    files = inventory([30 * MIB, 50 * MIB], deletes=[(0, 0), (2, MIB)])
    policy = Policy(open_file_cost=MIB, parallelism=2)

    said = predict(plan_groups(files, None, policy), policy)

    first, second = 30 * MIB + MIB + TASK_COST, 50 * MIB + MIB + 3 * MIB + TASK_COST
    assert said.longest_task_seconds == second / READ_BYTES_PER_SECOND
    assert said.slowest_slot_seconds == second / READ_BYTES_PER_SECOND
    assert said.all_tasks_seconds == (first + second) / READ_BYTES_PER_SECOND


def test_fill_is_the_mean_over_groups_and_a_group_is_never_more_than_full() -> None:
    files = inventory([5 * MIB, 200 * MIB])
    policy = Policy(max_split_size=10 * MIB)

    assert predict(plan_groups(files, None, policy), policy).fill == (0.5 + 1.0) / 2


def test_bytes_are_local_to_a_preferred_host_or_to_its_rack_or_not_local() -> None:
    # Host a holds most bytes; the other hosts hold too few to be preferred.
    sizes = [60 * MIB // 4] * 3 + [MIB, 2 * MIB, 3 * MIB]
    hosts = [["/r/a"]] * 3 + [["/r/b"], ["/q/c"], []]
    files = inventory(sizes, hosts=hosts)
    policy = Policy(strategy="openlookeng", max_small_splits_grouped=10)
    one = Policy(strategy="iceberg", open_file_cost=0)

    apart = predict(plan_groups(files, None, policy), policy)
    together = predict(plan_groups(files, None, one), one)

    located = sum(sizes) - 3 * MIB
    assert (apart.host_local_bytes, apart.rack_local_bytes) == (located, 0)
    assert apart.located_bytes == together.located_bytes == located
    assert together.host_local_bytes == 45 * MIB
    assert together.rack_local_bytes == MIB


def test_nothing_is_local_if_no_host_is_known() -> None:
    said = predict(plan_groups(inventory([MIB] * 3), None, Policy()), Policy())

    assert (said.host_local_bytes, said.rack_local_bytes, said.located_bytes) == (0, 0, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_plan_of_nothing_costs_nothing(strategy: str) -> None:
    policy = Policy(strategy=strategy)

    said = predict(plan_groups(inventory([]), None, policy), policy)

    assert (said.fill, said.fewest_groups, said.slowest_slot_seconds) == (0.0, 0, 0.0)
    assert (said.longest_task_seconds, said.all_tasks_seconds) == (0.0, 0.0)
