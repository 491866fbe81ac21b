"""Predict what a plan costs to run, under the cost model that plans are made by."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from windrow_service.planner.plan import GroupedSplits
from windrow_service.planner.policy import READ_BYTES_PER_SECOND, TASK_COST, Policy
from windrow_service.planner.splits import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a plan is expected to cost.

    Attributes:
        fill: Mean size of the groups that a larger one could hold, in parts of `max_split_size`.
        host_local_bytes: Bytes of splits with a replica on a host that their group prefers.
        located_bytes: Bytes of splits of which any host is known.
        longest_task_seconds: Time of the group with the most work.
        all_tasks_seconds: Time of all groups, one after another.
        slowest_slot_seconds: When the last of `parallelism` slots is done, each taking the
            next group, in the plan's order, as soon as it is free.
        fewest_groups: A bound that no plan of these splits can go below.
    """

    fill: float
    host_local_bytes: int
    located_bytes: int
    longest_task_seconds: float
    all_tasks_seconds: float
    slowest_slot_seconds: float
    fewest_groups: int


def predict(plan: GroupedSplits, policy: Policy) -> Prediction:
    """Return what reading the plan's groups is expected to cost.

    Args:
        plan: The groups, in the order in which they are run.
        policy: Limits and costs; those of the reader, whatever strategy made the groups.
    """
    tasks = task_costs(plan, policy)
    size = plan.size_bytes
    local, located = _local(plan)
    return Prediction(
        fill=float(np.minimum(size / policy.max_split_size, 1.0).mean()) if len(plan) else 0.0,
        host_local_bytes=local,
        located_bytes=located,
        longest_task_seconds=_seconds(int(tasks.max(initial=0))),
        all_tasks_seconds=_seconds(int(tasks.sum())),
        slowest_slot_seconds=_seconds(slowest_slot(tasks, policy.parallelism)),
        fewest_groups=fewest_groups(plan, policy),
    )


def task_costs(plan: GroupedSplits, policy: Policy) -> Ints:
    """Return what each group costs, in bytes of reading: its splits' work and the task itself."""
    if not len(plan):
        return np.empty(0, np.int64)
    costs: Ints = np.add.reduceat(plan.splits.work(policy.open_file_cost), plan.offsets[:-1])
    return costs + TASK_COST


def slowest_slot(tasks: Ints, parallelism: int) -> int:
    """Return when the last slot is done: list scheduling (Graham 1966) in the given order."""
    free_at = [0] * min(parallelism, len(tasks))
    for task in tasks.tolist():
        heapq.heapreplace(free_at, free_at[0] + task)
    return max(free_at, default=0)


def fewest_groups(plan: GroupedSplits, policy: Policy) -> int:
    """Return the fewest groups that the limits allow: a lower bound, not always reachable.

    What holds at least `max_split_size` is alone; the rest of each bucket needs room for its
    bytes and its count, and a group for every two splits over half of `max_split_size`.
    """
    length = plan.splits.length
    rest = length < policy.max_split_size
    _, bucket = np.unique(plan.splits.bucket[rest], return_inverse=True)
    limit = policy.max_split_size
    held = np.bincount(bucket, length[rest]).astype(np.int64)
    fewest = -(-held // limit)
    fewest = np.maximum(fewest, np.bincount(bucket, length[rest] > limit // 2).astype(np.int64))
    if policy.max_small_splits_grouped is not None:
        fewest = np.maximum(fewest, -(-np.bincount(bucket) // policy.max_small_splits_grouped))
    alone = int(np.count_nonzero(~rest))
    return alone + int(np.maximum(fewest, 1).sum())


def _local(plan: GroupedSplits) -> tuple[int, int]:
    """Return the bytes at a preferred host of their group, and those of any known place."""
    splits, hosts = plan.splits, plan.splits.hosts
    located = int(splits.length[hosts.counts > 0].sum())
    if not located:
        return 0, 0
    host_count = len(hosts.names)
    preferred = np.repeat(np.arange(len(plan)), np.diff(plan.host_offsets)) * host_count
    preferred = np.unique(preferred + plan.host_codes)
    group = np.repeat(np.arange(len(plan)), np.diff(plan.offsets))
    split = np.repeat(np.arange(len(splits)), hosts.counts)
    pair = group[split] * host_count + hosts.codes
    at = np.minimum(np.searchsorted(preferred, pair), max(len(preferred) - 1, 0))
    here = np.zeros(len(splits), np.bool_)
    if len(preferred):
        here[split[preferred[at] == pair]] = True
    return int(splits.length[here].sum()), located


def _seconds(cost: int) -> float:
    return cost / READ_BYTES_PER_SECOND
