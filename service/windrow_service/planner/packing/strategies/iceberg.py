"""Iceberg's task planning: first fit in path order, over a few open bins.

Source: Iceberg's `TableScanUtil` and `BinPacking`, as described in its documentation of
`read.split.target-size`, `read.split.open-file-cost` and `read.split.planning-lookback`.
The target is `max_split_size`. If that gives fewer splits than `parallelism`, the target shrinks
to an equal share of the bytes, but not below `min_split_size`. A split weighs its bytes plus those
of its delete files, and at least one open cost for each of these files.

A bucket corresponds to Iceberg's grouping key: each is packed separately. Differences: adjacent
splits of one file in the same group stay two splits. When too many bins are open, one that is full
by `max_small_splits_grouped` is closed first; otherwise the fullest is, and among equals the
oldest. Iceberg cuts a Parquet file with impossible offsets at any byte; here it stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from windrow_service.planner.packing.strategies.strategy import Strategy
from windrow_service.planner.policy import MIB, Policy
from windrow_service.planner.splits import Groups, Ints, Splits, run_offsets, stable_order

# Less than the room of any bin.
_CLOSED = -(2**63)


def cut_size(size_bytes: Ints, policy: Policy) -> int:
    """Return the adaptive target: the size at which files are cut, and the most a group weighs."""
    total, target = int(size_bytes.sum()), policy.max_split_size
    if -(-total // target) >= policy.parallelism:
        return target
    return min(max(total // policy.parallelism, min(policy.min_split_size, target), 1), target)


def pack(splits: Splits, policy: Policy) -> Groups:
    """Put each split into the oldest open bin of its bucket that has room.

    Complexity: O(n) steps in Python, each over at most `planning_lookback` bins.
    """
    target = cut_size(splits.length, policy)
    weight = splits.length
    files = np.ones(len(splits), np.int64)
    if splits.deletes is not None:
        weight = weight + splits.deletes.size_bytes
        files += splits.deletes.count
    weight = np.maximum(weight, files * policy.open_file_cost)
    order = stable_order(splits.bucket + 1)
    buckets = run_offsets(splits.bucket[order])
    number = np.empty(len(splits), np.int64)
    bin_count = 0
    for begin, end in zip(buckets[:-1].tolist(), buckets[1:].tolist(), strict=True):
        members = order[begin:end]
        bins = np.array(
            first_fit(
                weight[members].tolist(),
                target,
                policy.max_small_splits_grouped,
                policy.planning_lookback,
            )
        )
        number[members] = bin_count + bins
        bin_count += int(bins.max()) + 1
    return Groups.by_number(number)


def first_fit(
    weights: Iterable[int], target: int, max_items: int | None = None, lookback: int = 10
) -> list[int]:
    """Return the bin number of each weight.

    A weight goes to the first open bin that stays within `target`, else to a new one. When
    more than `lookback` bins are open, the fullest is closed.
    """
    bins: list[int] = []
    rooms: list[int] = []
    counts: list[int] = []
    numbers: list[int] = []
    bin_count = 0
    most = max_items or 0
    for weight in weights:
        for at, room in enumerate(rooms):
            if weight <= room:
                rooms[at] = room - weight
                break
        else:
            at = len(rooms)
            rooms.append(target - weight)
            counts.append(0)
            bins.append(bin_count)
            bin_count += 1
        numbers.append(bins[at])
        if most:
            counts[at] += 1
            if counts[at] == most:
                rooms[at] = _CLOSED
        if at == lookback:
            fullest = rooms.index(min(rooms))
            del rooms[fullest], counts[fullest], bins[fullest]
    return numbers


STRATEGY = Strategy(
    pack=pack,
    cut_size=cut_size,
    level_tail=False,
    min_split_size=16 * MIB,
    open_file_cost=4 * MIB,
)
