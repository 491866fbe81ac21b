"""Explanation of groups: each has one reason and one bin in the histogram of fill."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables.inventories import inventory, marked
from windrow_service.planner.explain import Tally, fill_histogram, tally_reasons
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import Policy

NONE = Tally(0, 0, 0)


def planned(files: pa.Table, cacheable: Sequence[int] = (), **limits: int) -> GroupedSplits:
    flags = np.zeros(len(files), np.bool_)
    flags[list(cacheable)] = True
    return plan_groups(files, None, Policy(max_split_size=10, **limits), marked(flags))


def test_groups_of_several_splits_are_small() -> None:
    reasons = tally_reasons(planned(inventory([3, 4, 2])), 10)

    assert reasons == {
        "cacheable": NONE,
        "large": NONE,
        "no_location": NONE,
        "small": Tally(1, 3, 9),
    }


def test_a_small_file_alone_is_small_and_a_full_one_is_large() -> None:
    assert tally_reasons(planned(inventory([9])), 10)["small"] == Tally(1, 1, 9)
    assert tally_reasons(planned(inventory([10])), 10)["large"] == Tally(1, 1, 10)
    assert tally_reasons(planned(inventory([99])), 10)["large"] == Tally(1, 1, 99)


def test_a_piece_of_a_file_that_is_alone_is_large_however_short_it_is() -> None:
    files = inventory([14], row_group_offsets=[[0, 7]])

    assert tally_reasons(planned(files), 10)["large"] == Tally(2, 2, 14)


def test_cacheable_is_the_reason_of_any_group_with_cacheable_splits() -> None:
    files = inventory([99, 1, 2], hosts=[["a"], [], ["a"]])

    reasons = tally_reasons(planned(files, cacheable=[0, 1]), 10)

    assert reasons["cacheable"] == Tally(2, 2, 100)
    assert reasons["large"] == NONE


def test_no_location_is_a_reason_only_if_other_groups_have_one() -> None:
    some = inventory([6, 6], hosts=[["a"], []])
    nobody = inventory([6, 6])

    assert tally_reasons(planned(some, parallelism=2), 10)["no_location"] == Tally(1, 1, 6)
    assert tally_reasons(planned(nobody, parallelism=2), 10)["small"] == Tally(2, 2, 12)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    sizes=st.lists(st.integers(0, 30), max_size=20),
    limit=st.integers(1, 20),
    parallelism=st.integers(1, 5),
)
def test_every_group_has_one_reason_and_one_bin(
    strategy: str, sizes: list[int], limit: int, parallelism: int
) -> None:
    policy = Policy(strategy=strategy, max_split_size=limit, parallelism=parallelism)
    plan = plan_groups(inventory(sizes), None, policy)

    reasons = tally_reasons(plan, limit).values()
    bins = fill_histogram(plan, limit).tolist()

    assert sum(of.groups for of in reasons) == len(plan)
    assert sum(of.splits for of in reasons) == len(plan.splits)
    assert sum(of.size_bytes for of in reasons) == sum(sizes)
    assert bins == [
        sum(
            10 * size >= step * limit and (step == 9 or 10 * size < (step + 1) * limit)
            for size in plan.size_bytes.tolist()
        )
        for step in range(10)
    ]
