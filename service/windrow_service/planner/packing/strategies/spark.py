"""Spark's packing of files into partitions, largest first.

Source: Spark's `FilePartition` and `PartitionedFileUtil`, as described by their settings. Files are
cut, and partitions closed, at the lesser of `max_split_size` and a core's share: the sum of all
bytes and open costs over `parallelism`, but at least one open cost. A partition takes the largest
remaining split until the next would exceed that size (next fit); an open cost is added after each
split. If there are more than `max_partition_num` partitions, they are made as large as that number
requires, but not larger than `max_split_size`. Locality plays no part, and delete files weigh
nothing; a group's hosts are the three that hold most of its bytes.

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
    Bools,
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
    order = np.lexsort((-splits.length, splits.bucket))
    filling = _Filling(splits.take(order), policy)
    first = filling.starts(_partition_size(int(splits.length.sum()), files, policy))
    most = policy.max_partition_num
    if most is not None and np.count_nonzero(first & filling.free) > most:
        first = filling.starts(-(-int(filling.weight[filling.free].sum()) // most))
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(first)
    return Groups.by_number(number)


class _Filling:
    """Splits that partitions are filled with, largest first in each bucket.

    Attributes:
        free: Which splits have no bucket, so that Spark's partition size applies to them.
        weight: Bytes of each split, and its open cost if it is free.
    """

    def __init__(self, splits: Splits, policy: Policy) -> None:
        self.free = splits.bucket == NO_BUCKET
        self.weight = splits.length + np.where(self.free, policy.open_file_cost, 0)
        self._length = splits.length
        self._policy = policy
        buckets = run_offsets(splits.bucket)
        self._end = buckets[1:][run_numbers(buckets)]

    def starts(self, size: int) -> Bools:
        """Return which splits begin a partition; partitions of free splits weigh at most `size`."""
        policy, nth = self._policy, np.arange(len(self._length))
        limit = np.where(self.free, size, policy.max_split_size)
        # The size of a partition does not include the open cost after its last split.
        end = _fitting(self.weight, limit + self.weight - self._length)
        end = np.minimum(end, _fitting(self._length, np.int64(policy.max_split_size)))
        if policy.max_small_splits_grouped is not None:
            end = np.minimum(end, nth + policy.max_small_splits_grouped)
        first = np.zeros(len(nth), np.bool_)
        first[walk(np.clip(end, nth + 1, self._end))] = True
        return first


def _fitting(weight: Ints, limit: Ints | np.int64) -> Ints:
    """Return, for each split, the end of the longest run from it that weighs at most the limit."""
    before = np.concatenate(([0], np.cumsum(weight)))
    end: Ints = np.searchsorted(before, before[:-1] + limit, side="right") - 1
    return end


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
