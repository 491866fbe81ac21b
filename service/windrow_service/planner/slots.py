"""The cost of tasks, and when the slots that run them finish."""

from __future__ import annotations

import heapq

from windrow_service.planner.policy import TASK_COST
from windrow_service.planner.splits import Ints


def task_costs(work: Ints) -> Ints:
    """Return the cost of each group in bytes of reading: its work plus the fixed cost of a task."""
    return work + TASK_COST


def slowest_slot(tasks: Ints, parallelism: int) -> int:
    """Return when the last slot finishes: list scheduling (Graham 1966) in the given order.

    Args:
        tasks: Cost of each task.
        parallelism: Number of slots; each takes the next task as soon as it is free.

    Complexity: O(tasks * log(parallelism)), in Python.
    """
    free_at = [0] * min(parallelism, len(tasks))
    for task in tasks.tolist():
        heapq.heapreplace(free_at, free_at[0] + task)
    return max(free_at, default=0)
