"""Make groups of splits that have keys, and even out the last wave of tasks."""

from __future__ import annotations

import numpy as np

from windrow_service.planner.packing.fill import fill_groups
from windrow_service.planner.packing.spread import Items
from windrow_service.planner.policy import Policy
from windrow_service.planner.slots import slowest_slot, task_costs
from windrow_service.planner.splits import Ints, run_numbers, run_offsets


def group_by_key(
    length: Ints, work: Ints, keys: Ints, share: int | None, alone: Ints, policy: Policy
) -> Ints:
    """Return a group number for each of m splits.

    Args:
        length: Bytes of each split, under `max_split_size`.
        work: Cost of reading each split.
        keys: Starts of the runs of equal keys, followed by m.
        share: Most work of a group; None makes one last wave of all splits.
        alone: Work of each group that exists besides these.
        policy: The limits.
    """
    if share is None:
        size = np.diff(keys)
        fewest = policy.fewest_groups(np.add.reduceat(length, keys[:-1]), size)
        # A single split may exceed a limit.
        fewest = np.minimum(fewest, size)
        missing = -(int(fewest.sum()) + len(alone)) % policy.parallelism
        return _spread(length, work, keys, fewest, missing, policy)
    number = fill_groups(length, work, keys, share, policy)
    # A last wave that is already full is included: its groups may still be made equal.
    over = (int(number.max()) + len(alone)) % policy.parallelism + 1
    divided = _divide_last(number, over, length, work, keys, policy)
    # When little is left over, more tasks cost more than they save.
    better = _slowest(divided, work, alone, policy) < _slowest(number, work, alone, policy)
    return divided if better else number


def _divide_last(
    number: Ints, over: int, length: Ints, work: Ints, keys: Ints, policy: Policy
) -> Ints:
    """Divide the last `over` groups, which new files change most anyway, into `parallelism`."""
    first = max(int(number.max()) + 1 - over, 0)
    rows = np.flatnonzero(number >= first)
    runs = run_offsets(run_numbers(keys)[rows])
    begin = np.minimum.reduceat(number[rows], runs[:-1])
    last = np.maximum.reduceat(number[rows], runs[:-1])
    divided: Ints = number.copy()
    divided[rows] = first + _spread(
        length[rows], work[rows], runs, last - begin + 1, policy.parallelism - over, policy
    )
    return divided


def _slowest(number: Ints, work: Ints, alone: Ints, policy: Policy) -> int:
    loads = np.bincount(number, work).astype(np.int64)
    tasks = task_costs(np.sort(np.concatenate((loads, alone)))[::-1])
    return slowest_slot(tasks, policy.parallelism)


def _spread(length: Ints, work: Ints, keys: Ints, count: Ints, more: int, policy: Policy) -> Ints:
    """Spread the splits of each key over its groups, after adding `more` groups in all."""
    items = Items(length, work, keys)
    counts = _divide(np.add.reduceat(work, keys[:-1]), count, np.diff(keys), more)
    return items.spread(counts, policy)


def _divide(work: Ints, count: Ints, size: Ints, more: int) -> Ints:
    """Give `more` groups to keys, each to the key with the most work per group.

    Args:
        work: Work of each key.
        count: Groups of each key.
        size: Splits of each key.
        more: Number of groups to add, limited by the number of splits.
    """
    budget = min(int(count.sum()) + more, int(size.sum()))
    low, high = 0.0, float((work / count).max())
    # Bisect for the least share that the budget allows, to one part in 2**40.
    for _ in range(40):
        middle = (low + high) / 2
        counts = np.clip(np.ceil(work / max(middle, 1e-300)), count, size)
        low, high = (middle, high) if counts.sum() > budget else (low, middle)
    groups: Ints = np.clip(np.ceil(work / high), count, size).astype(np.int64)
    heaviest = np.argsort(-(work / groups), kind="stable")
    heaviest = heaviest[groups[heaviest] < size[heaviest]]
    groups[heaviest[: budget - int(groups.sum())]] += 1
    return groups
