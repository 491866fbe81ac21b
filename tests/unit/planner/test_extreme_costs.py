"""Costs of any size are added up without exceeding 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables.inventories import inventory
from windrow_service.planner.packing.cut import cut
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.planner.predict import predict
from windrow_service.planner.splits import MAX_COST

DELETES = st.tuples(
    st.sampled_from([0, 1, 2**20, 2**31 - 1]), st.sampled_from([0, 1, 2**40, 2**63 - 1])
)


@given(deletes=st.lists(DELETES, min_size=1, max_size=9), asked=st.sampled_from([0, 1, 2**40]))
def test_work_is_the_sum_of_its_parts(deletes: list[tuple[int, int]], asked: int) -> None:
    files = inventory([2**49] * len(deletes), deletes=deletes)
    splits = cut(files, np.arange(len(deletes)), 2**48)
    cost = splits.open_cost(asked)

    work = splits.work(cost).tolist()

    counts = splits.deletes.count.tolist() if splits.deletes else [0] * len(splits)
    sizes = splits.deletes.size_bytes.tolist() if splits.deletes else [0] * len(splits)
    parts = zip(splits.length.tolist(), counts, sizes, strict=True)
    assert work == [length + size + (1 + count) * cost for length, count, size in parts]
    assert sum(work) < 2**62
    assert cost == asked or (cost + 1) * (len(splits) + sum(counts)) > MAX_COST


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_infinite_costs_come_first(strategy: str) -> None:
    files = inventory([10, 1, 10], deletes=[(0, 0), (2**31 - 1, 2**63 - 1), (0, 0)])
    policy = Policy(strategy=strategy, open_file_cost=2**40, max_small_splits_grouped=1)

    plan = plan_groups(files, None, policy)

    assert plan.splits.file[0] == 1
    predicted = predict(plan, policy)
    assert predicted.longest_task_seconds > predicted.all_tasks_seconds / 2 > 0
