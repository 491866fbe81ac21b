"""Fill groups one after another, so that new files do not change earlier groups.

Splits are taken in order, as in next-fit packing, but from two streams: a group first takes its
portion of the large splits, then fills the remaining room with small ones. Groups become nearly
full, and a new file only moves the group boundaries after it.

Where most splits are large, there are too few small ones to fill the room. Then splits are taken
in order in batches of some dozens of groups, and spread within each batch as in `spread`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.packing.spread import Items
from windrow_service.planner.policy import Policy
from windrow_service.planner.splits import Bools, Ints, key_blocks, run_numbers, run_offsets

Floats: TypeAlias = npt.NDArray[np.float64]

# A split over this part of a group is large.
LARGE_PART = 1 / 16
# The large splits' portion of a group is rounded to such steps, so that it seldom changes.
PART_STEPS = 16
# Above this portion of large splits, groups are made in batches of BATCH_GROUPS.
MAX_LARGE_PART = 0.5
BATCH_GROUPS = 96


def fill_groups(length: Ints, work: Ints, keys: Ints, share: int, policy: Policy) -> Ints:
    """Return a group number for each split; the groups of a key are numbered consecutively.

    A group takes splits of one key while it stays within the share of work and every limit.
    The first split is always taken, however much work it is.

    Args:
        length: Bytes of m splits, each under `max_split_size`.
        work: Cost of reading each split.
        keys: Starts of the runs of equal keys, followed by m.
        share: Most work of a group.
        policy: The limits.

    Complexity: O(m) on columns, and O(log m) in Python for each group.
    """
    group = np.empty(len(length), np.int64)
    group_count = 0
    for first, last in key_blocks(keys):
        begin, end = keys[first], keys[last]
        some = keys[first : last + 1] - begin
        numbers = _fill_keys(length[begin:end], work[begin:end], some, share, policy)
        group[begin:end] = group_count + numbers
        group_count += int(numbers.max()) + 1
    return group


def _fill_keys(length: Ints, work: Ints, keys: Ints, share: int, policy: Policy) -> Ints:
    part = np.maximum(length / policy.max_split_size, work / share)
    is_large = part > LARGE_PART
    key = run_numbers(keys)
    parts = np.bincount(key, part, len(keys) - 1)
    large_part = np.bincount(key, part * is_large, len(keys) - 1) / parts
    in_batches = (large_part > MAX_LARGE_PART)[key]
    group = np.empty(len(length), np.int64)
    rows = np.flatnonzero(~in_batches)
    group_count = 0
    if len(rows):
        large = _Stream(length, work, key, is_large & ~in_batches, len(keys) - 1)
        small = _Stream(length, work, key, ~is_large & ~in_batches, len(keys) - 1)
        _fill(large, small, large_part, share, policy)
        group_count = len(large.counts)
        for stream in (large, small):
            group[stream.rows] = np.repeat(np.arange(group_count), stream.counts)
    rows = np.flatnonzero(in_batches)
    if len(rows):
        group[rows] = group_count + _batches(
            length[rows], work[rows], key[rows], part[rows], policy
        )
    return group


def _fill(large: _Stream, small: _Stream, large_part: Floats, share: int, policy: Policy) -> None:
    """Let each group take from both streams, one key after another."""
    count_limit = policy.max_small_splits_grouped or len(large.rows) + len(small.rows)
    limits = (policy.max_split_size, share, count_limit)
    steps = np.minimum(np.floor(large_part * PART_STEPS + 1.5) / PART_STEPS, 1.0)
    for key, part in enumerate(steps.tolist()):
        budget = tuple(int(limit * part) for limit in limits)
        while large.has_more(key) or small.has_more(key):
            amounts = large.take(key, budget if small.has_more(key) else limits, 1)
            room = tuple(limit - used for limit, used in zip(limits, amounts, strict=True))
            small.take(key, room, 0 if amounts[2] else 1)


def _batches(length: Ints, work: Ints, key: Ints, part: Floats, policy: Policy) -> Ints:
    """Return group numbers of splits in runs of equal key, packed in batches."""
    begin = run_offsets(key)
    total = np.cumsum(part)
    before = np.repeat((total - part)[begin[:-1]], np.diff(begin))
    batch = ((total - part - before) / BATCH_GROUPS).astype(np.int64)
    runs = run_offsets(key, batch)
    parts = np.add.reduceat(part, runs[:-1])
    if policy.max_small_splits_grouped is not None:
        parts = np.maximum(parts, np.diff(runs) / policy.max_small_splits_grouped)
    count = np.minimum(np.ceil(parts).astype(np.int64), np.diff(runs))
    return Items(length, work, runs).spread(count, policy)


class _Stream:
    """Splits that are taken in order, key by key.

    Attributes:
        rows: The splits in the stream.
        counts: How many of them each group has taken so far.
    """

    def __init__(self, length: Ints, work: Ints, key: Ints, which: Bools, keys: int) -> None:
        self.rows = np.flatnonzero(which)
        self.counts: list[int] = []
        # Running sums; a memoryview creates Python numbers only for the elements that are read.
        self._bytes = memoryview(np.cumsum(length[self.rows]).data)
        self._work = memoryview(np.cumsum(work[self.rows]).data)
        self._ends = np.cumsum(np.bincount(key[self.rows], minlength=keys)).tolist()
        self._next = 0

    def has_more(self, key: int) -> bool:
        """Return whether splits of this key are left."""
        return bool(self._next < self._ends[key])

    def take(self, key: int, limits: tuple[int, ...], least: int) -> tuple[int, int, int]:
        """Take splits of a key for one more group; return their bytes, work and count.

        Args:
            key: The key.
            limits: Most bytes, work and count.
            least: How many to take regardless of the limits, if there are that many.
        """
        begin, end = self._next, self._ends[key]
        bytes_before = self._bytes[begin - 1] if begin else 0
        work_before = self._work[begin - 1] if begin else 0
        until = min(end, begin + limits[2])
        until = bisect_right(self._bytes, bytes_before + limits[0], begin, max(until, begin))
        until = bisect_right(self._work, work_before + limits[1], begin, until)
        until = max(until, min(begin + least, end))
        self.counts.append(until - begin)
        self._next = until
        if until == begin:
            return 0, 0, 0
        return (
            self._bytes[until - 1] - bytes_before,
            self._work[until - 1] - work_before,
            until - begin,
        )
