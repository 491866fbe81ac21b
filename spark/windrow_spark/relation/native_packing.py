"""How many partitions Spark's own reader should make of files, so that its last task ends soonest."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

# Partitions have about this size at most if there are several for each slot.
_PARTITION_BYTES = 256 * 2**20

# Spark cuts files at this size whatever the number of partitions; see `PlannedFiles.java`.
_MAX_SPLIT_BYTES = 512 * 2**20

# Bytes that a task could read in the time that it takes to open a file, as Spark estimates it.
_OPEN_BYTES = 4 * 2**20


def partition_count(sizes: npt.NDArray[np.int64], slots: int) -> int:
    """Return how many partitions Spark should make of files.

    Spark fills one partition after another, the largest files first, and neither looks back nor
    knows the slots: it packs ten files of 64 MB into five partitions of two, of which two slots
    read six files one after another, and into ten, of which they read five. Therefore the numbers
    that come into question are tried.

    Args:
        sizes: Bytes of each file.
        slots: How many tasks run at the same time.

    Returns:
        Of few possible numbers, so that there are few sessions, the one with which the last task
        ends soonest.
    """
    size_bytes = int(sizes.sum())
    waves = math.ceil(size_bytes / (slots * _PARTITION_BYTES))
    least = slots * (1 << (max(1, waves) - 1).bit_length())
    # Spark fails if it is to make more partitions than there are bytes.
    counts = [max(1, min(count, size_bytes)) for count in (least, least * 3 // 2, least * 2)]
    return min(counts, key=lambda count: _end(sizes, count, slots))


def partitions_of(sizes: npt.NDArray[np.int64], count: int) -> Iterator[tuple[int, int]]:
    """Yield the splits and the bytes of each partition that Spark makes of files.

    Args:
        sizes: Bytes of each file.
        count: How many partitions Spark is to make, at least.
    """
    most = max(1, min(_MAX_SPLIT_BYTES, int(sizes.sum()) // count))
    whole, rest = np.divmod(sizes, most)
    splits = np.concatenate([np.full(int(whole.sum()), most), np.sort(rest[rest > 0])[::-1]])
    ends = np.cumsum(splits)
    first = before = 0
    while first < len(splits):
        # A split that does not fit into any partition has one of its own.
        after = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        yield after - first, int(ends[after - 1]) - before
        first, before = after, int(ends[after - 1])


def _end(sizes: npt.NDArray[np.int64], count: int, slots: int) -> int:
    """Return when the last task ends, in bytes that a slot could read until then."""
    ends = [0] * slots
    for splits, size_bytes in partitions_of(sizes, count):
        heapq.heapreplace(ends, ends[0] + size_bytes + splits * _OPEN_BYTES)
    return max(ends)
