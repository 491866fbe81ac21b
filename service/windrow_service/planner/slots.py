"""What tasks cost, and when the slots that run them are done."""

from __future__ import annotations

import heapq

from windrow_service.planner.policy import TASK_COST
from windrow_service.planner.splits import Ints


def task_costs(work: Ints) -> Ints:
    """Return what each group costs, in bytes of reading: its work and that of a task in itself."""
    return work + TASK_COST


def slowest_slot(tasks: Ints, parallelism: int) -> int:
    """Return when the last slot is done: list scheduling (Graham 1966) in the given order.

    Args:
        tasks: What each task costs.
        parallelism: How many slots there are; each takes the next task as soon as it is free.

    Complexity: O(tasks * log(parallelism)), in Python.
    """
    free_at = [0] * min(parallelism, len(tasks))
    for task in tasks.tolist():
        heapq.heapreplace(free_at, free_at[0] + task)
    return max(free_at, default=0)
