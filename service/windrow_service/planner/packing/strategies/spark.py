"""Spark's packing of files into partitions, largest first.

Source: Spark's `FilePartition` and `PartitionedFileUtil`, as described by their settings. Files are
cut, and partitions closed, at the lesser of `max_split_size` and a core's share: the sum of all
bytes and open costs over `parallelism`, but at least one open cost. A partition takes the largest
remaining split until the next would exceed that size (next fit); an open cost is added after each
split. Locality plays no part, and delete files weigh nothing; a group's hosts are the three that
hold most of its bytes.

Spark reads each bucket of a bucketed table as one partition, however large. Here the limits
of a plan take precedence: the splits of a bucket share a group until `max_split_size` or the count
limit closes it, and a bucket without files has no group. Splits without a bucket are packed
like those of an unbucketed table.
"""

from __future__ import annotations

import numpy as np

from windrow_service.planner.packing.strategies.strategy import Strategy
from windrow_service.planner.policy import MIB, Policy
from windrow_service.planner.splits import (
    NO_BUCKET,
    Groups,
    Ints,
    Splits,
    run_numbers,
    run_offsets,
    walk,
)


def cut_size(size_bytes: Ints, policy: Policy) -> int:
    """Return the size at which files are cut: Spark's `maxSplitBytes`."""
    return _partition_size(int(size_bytes.sum()), len(size_bytes), policy)


def pack(splits: Splits, policy: Policy) -> Groups:
    """Fill one partition after another, largest splits first.

    Complexity: O(n log n) time, then one step per group.
    """
    if not len(splits):
        return Groups.by_number(np.empty(0, np.int64))
    files = int(np.count_nonzero(np.diff(splits.file))) + 1
    size = _partition_size(int(splits.length.sum()), files, policy)
    order = np.lexsort((-splits.length, splits.bucket))
    free = splits.bucket[order] == NO_BUCKET
    length = splits.length[order]
    open_cost = np.where(free, policy.open_file_cost, 0)
    limit = np.where(free, size, policy.max_split_size)

    # The size of a partition does not include the open cost after its last split.
    before = np.concatenate(([0], np.cumsum(length + open_cost)))
    nth = np.arange(len(order))
    end = np.searchsorted(before, before[:-1] + limit + open_cost, side="right") - 1
    if policy.max_small_splits_grouped is not None:
        end = np.minimum(end, nth + policy.max_small_splits_grouped)
    buckets = run_offsets(splits.bucket[order])
    end = np.clip(end, nth + 1, buckets[1:][run_numbers(buckets)])
    number = np.empty(len(order), np.int64)
    first = np.zeros(len(order), np.int64)
    first[walk(end)] = 1
    number[order] = np.cumsum(first)
    return Groups.by_number(number)


STRATEGY = Strategy(
    pack=pack,
    cut_size=cut_size,
    level_tail=False,
    open_file_cost=4 * MIB,
    min_local_share=0,
)


def _partition_size(size_bytes: int, file_count: int, policy: Policy) -> int:
    per_core = (size_bytes + file_count * policy.open_file_cost) // policy.parallelism
    return max(min(policy.max_split_size, max(policy.open_file_cost, per_core)), 1)
