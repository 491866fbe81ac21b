"""openLooKeng's small-split grouping, as described in its design.

Source: the design "Merging small file size splits" of openLooKeng, section "High level
design", and its HiveSplitSource for the order in which splits are taken.
"""

from __future__ import annotations

import numpy as np

from windrow_service.planner.packing.strategies.strategy import Strategy
from windrow_service.planner.policy import Policy
from windrow_service.planner.splits import Groups, Hosts, Ints, Splits, run_numbers, run_offsets

HOSTS_IN_LOCATION = 3


def pack(splits: Splits, policy: Policy) -> Groups:
    """Group small splits of one bucket and one location, largest and smallest in turn.

    A location is the set of the first three hosts of a file. A group takes the largest remaining
    split, then the smallest, then the next largest, and so on. It closes before the first split
    that would exceed `max_split_size` or the count limit, which is the lesser of
    `max_small_splits_grouped` and the location's splits per host, rounded down. The pieces of a
    file of at least `max_split_size` stay alone, the small last one as well.

    Complexity: O(n log n) for sorting, then one step per group.
    """
    limit = policy.max_split_size
    location, host_count = _locations(splits.hosts)
    file = run_numbers(run_offsets(splits.file))
    file_size = np.bincount(file, splits.length)[file] if len(file) else splits.length
    rows = np.flatnonzero(file_size < limit)
    rows = rows[np.lexsort((rows, -splits.length[rows], location[rows], splits.bucket[rows]))]
    keys = run_offsets(splits.bucket[rows], location[rows])

    number = np.arange(len(splits), dtype=np.int64)
    position = np.arange(len(rows), dtype=np.int64)
    prefix = [0, *np.cumsum(splits.length[rows]).tolist()]
    group = np.empty(len(rows), np.int64)
    size = np.diff(keys)
    per_host = np.maximum(host_count[rows[keys[:-1]]], 1)
    count_limit = np.where(size >= per_host, size // per_host, size)
    if policy.max_small_splits_grouped is not None:
        count_limit = np.minimum(count_limit, policy.max_small_splits_grouped)
    for begin, end, most in zip(
        keys[:-1].tolist(), keys[1:].tolist(), count_limit.tolist(), strict=True
    ):
        while begin < end:
            count = _fill(prefix, begin, end, min(most, end - begin), limit)
            large, little = (count + 1) // 2, count // 2
            members = np.concatenate(
                (position[begin : begin + large], position[end - little : end])
            )
            group[members] = rows[begin]
            begin, end = begin + large, end - little
    number[rows] = group
    return Groups.by_number(number)


STRATEGY = Strategy(pack=pack, max_small_splits_grouped=10)


def _fill(prefix: list[int], begin: int, end: int, most: int, limit: int) -> int:
    """Return how many of the splits `begin:end` fit, taken from both ends in turn."""
    low, high = 1, most
    while low < high:
        count = (low + high + 1) // 2
        large, little = (count + 1) // 2, count // 2
        total = prefix[begin + large] - prefix[begin] + prefix[end] - prefix[end - little]
        low, high = (count, high) if total <= limit else (low, count - 1)
    return low


def _locations(hosts: Hosts) -> tuple[Ints, Ints]:
    """Return a number for each split, equal for equal sets of first hosts, and the set's size."""
    split_count = len(hosts.offsets) - 1
    first = np.sort(
        np.stack([hosts.nth(np.full(split_count, n)) for n in range(HOSTS_IN_LOCATION)], axis=1)
    )
    first[:, 1:][first[:, 1:] == first[:, :-1]] = -1
    first.sort()
    base = len(hosts.names) + 1
    number = np.zeros(split_count, np.int64)
    for n in range(HOSTS_IN_LOCATION):
        number = number * base + first[:, n] + 1
    return number, np.count_nonzero(first >= 0, axis=1)
