"""`balanced` on ten named workloads, compared with the limits and the other strategies."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.benchmarks import load_benchmark
from windrow_core.models import PlanOptions
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.planner.predict import Prediction, predict
from windrow_service.usecases.plans.options import policy_of, with_defaults

# So few slots that parallelism asks for no more groups than the limits do.
PARALLELISM = 4
# A fifth of their files. With fewer, 200 hosts hold too few files each to fill groups well.
WORKLOADS = {workload.name: workload for workload in load_benchmark("workloads").workloads(0.2)}
workloads = pytest.mark.parametrize("name", WORKLOADS)


@cache
def planned(name: str, strategy: str) -> tuple[int, Prediction]:
    workload = WORKLOADS[name]
    options = with_defaults(PlanOptions(strategy=strategy, parallelism=PARALLELISM))
    plan = plan_groups(workload.files, None, policy_of(options, 10**8))
    return len(plan), predict(plan, Policy(parallelism=PARALLELISM))


def test_there_are_ten_workloads() -> None:
    assert len(WORKLOADS) == 10


@workloads
def test_there_are_at_most_five_percent_more_groups_than_the_limits_require(name: str) -> None:
    groups, predicted = planned(name, "balanced")

    assert groups <= 1.05 * predicted.fewest_groups


@workloads
def test_bytes_are_read_on_hosts_with_a_replica(name: str) -> None:
    _, predicted = planned(name, "balanced")

    assert predicted.host_local_bytes >= 0.95 * predicted.located_bytes


@pytest.mark.slow
@workloads
def test_no_strategys_slowest_slot_is_faster_by_more_than_a_hundredth(name: str) -> None:
    _, ours = planned(name, "balanced")

    for strategy in set(STRATEGIES) - {"balanced"}:
        _, theirs = planned(name, strategy)
        assert ours.slowest_slot_seconds <= 1.01 * theirs.slowest_slot_seconds
