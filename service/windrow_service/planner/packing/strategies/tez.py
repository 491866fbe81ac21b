"""Tez's grouping: rounds over nodes that make one group each, then over racks.

Source: Tez's `TezSplitGrouper`, as described by the settings `tez.grouping.*`, grouping by length;
and Hive's `SplitGrouper` for what it requests from Tez when splits may not mix. A bucket gets its
part of the `parallelism` wanted groups by bytes, and the groups of a bucket aim for an equal length
between `min_split_size` and `max_split_size`.

In a round each node, by name, takes its next splits in path order until the next one would exceed
that length. A remainder of less than half the length is given up. Once no node fills a group, racks
do the same at a fraction of the length, `rack_split_reduction`. After a round in which at most one
in ten nodes filled a group, small groups are allowed, so that the remaining splits are grouped too.

Differences: hosts without a rack share one; splits without hosts form a node, and a rack, of
their own, which comes last. The count limit is `max_small_splits_grouped`; it does not shrink for
racks, and a group that reaches half of it is not too small.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from windrow_service.planner.packing.strategies.strategy import Strategy
from windrow_service.planner.policy import MIB, Policy
from windrow_service.planner.splits import (
    NO_BUCKET,
    Groups,
    Hosts,
    Ints,
    Splits,
    run_offsets,
    stable_order,
)

LOCALHOST = "localhost"


def pack(splits: Splits, policy: Policy) -> Groups:
    """Group the splits of each bucket by node, then by rack.

    Complexity: O(n * replicas) steps in Python, on integers in arrays.
    """
    order = stable_order(splits.bucket - NO_BUCKET)
    buckets = run_offsets(splits.bucket[order])
    total = int(splits.length.sum())
    number = np.empty(len(splits), np.int64)
    group_count = 0
    for begin, end in zip(buckets[:-1].tolist(), buckets[1:].tolist(), strict=True):
        rows = order[begin:end]
        some = splits if len(rows) == len(splits) else splits.take(rows)
        size = int(some.length.sum())
        count = max(policy.parallelism * size // max(total, 1), 1)
        count = _group_count(some, size, count, policy)
        if count >= len(rows):
            numbers = np.arange(len(rows))
        else:
            numbers = by_rounds(
                some.length,
                some.hosts,
                size // count,
                policy.max_small_splits_grouped,
                policy.rack_split_reduction,
            )
        number[rows] = group_count + numbers
        group_count += int(numbers.max()) + 1
    return Groups.by_number(number)


STRATEGY = Strategy(pack=pack, min_split_size=50 * MIB)


def _group_count(splits: Splits, size: int, count: int, policy: Policy) -> int:
    if size // count > policy.max_split_size:
        return size // policy.max_split_size + 1
    shortest = min(policy.min_split_size, policy.max_split_size)
    if size // count < shortest and not _is_local(splits.hosts):
        return size // shortest + 1
    return count


def _is_local(hosts: Hosts) -> bool:
    """Return whether every split is on this machine, where groups cost little."""
    return hosts.names == (LOCALHOST,) and bool((hosts.counts > 0).all())


def by_rounds(
    length: Ints,
    hosts: Hosts,
    group_length: int,
    max_count: int | None = None,
    rack_reduction: float = 0.75,
) -> Ints:
    """Return the group number of each split.

    Args:
        length: Bytes of the splits.
        hosts: Hosts of the splits.
        group_length: Most bytes of a group, unless it is a single split.
        max_count: Most splits of a group.
        rack_reduction: The part of `group_length` that a group of a rack may hold.
    """
    taker = _Taker(length, max_count)
    places = taker.places(hosts, np.arange(len(hosts.names)))
    node_count = len(places)
    idle: list[_Place] = []
    in_racks, allow_small = False, False
    while taker.left:
        full: list[_Place] = []
        for place in places:
            is_full = taker.take(place, group_length, allow_small)
            # A place with too little for a group now cannot have more later.
            (full if is_full else idle).append(place)
        places = full
        if not full and not in_racks:
            in_racks = True
            group_length = int(group_length * rack_reduction) or group_length
            _, rack = np.unique(hosts.racks, return_inverse=True)
            places, idle = taker.places(hosts, rack), []
        elif not allow_small and len(full) <= node_count // 10:
            allow_small = True
            places, idle = sorted(places + idle, key=lambda place: place.number), []
    return taker.numbers()


@dataclass(slots=True)
class _Place:
    """A node or a rack: its splits, and how many of them have been looked at."""

    number: int
    rows: memoryview
    seen: int = 0


class _Taker:
    """Takes splits into groups, each split once.

    It keeps integers in arrays, not one object per split.
    """

    def __init__(self, length: Ints, max_count: int | None) -> None:
        self._length = np.ascontiguousarray(length).data
        self._most = len(length) if max_count is None else max_count
        # Without a count limit, only the length decides whether a group is too small.
        self._small_count = len(length) + 1 if max_count is None else max_count // 2
        self._taken = np.zeros(len(length), np.bool_)
        self._order = array("q")
        self._counts = array("q")

    @property
    def left(self) -> int:
        """Number of splits that are in no group yet."""
        return len(self._taken) - len(self._order)

    def places(self, hosts: Hosts, place_of: Ints) -> list[_Place]:
        """Return the places that have splits left, in the order of their numbers.

        Args:
            hosts: Hosts of all splits.
            place_of: The place number of each host; splits without a host get a last place.
        """
        nowhere = int(place_of.max(initial=-1)) + 1
        lonely = np.flatnonzero(hosts.counts == 0)
        row = np.concatenate((np.repeat(np.arange(len(self._taken)), hosts.counts), lonely))
        place = np.concatenate((place_of[hosts.codes], np.full(len(lonely), nowhere)))
        left = ~self._taken[row]
        row, place = row[left], place[left]
        order = stable_order(place)
        row, offsets = row[order], run_offsets(place[order])
        rows = np.ascontiguousarray(row).data
        return [
            _Place(number, rows[begin:end])
            for number, (begin, end) in enumerate(pairwise(offsets.tolist()))
        ]

    def take(self, place: _Place, group_length: int, allow_small: bool) -> bool:
        """Make the next group of a place; tell whether there were enough splits for one."""
        length, taken, most = self._length, self._taken.data, self._most
        rows, at, end = place.rows, place.seen, len(place.rows)
        group: list[int] = []
        total = 0
        while at < end:
            row = rows[at]
            if not taken[row]:
                if group and (total + length[row] > group_length or len(group) == most):
                    break
                taken[row] = True
                group.append(row)
                total += length[row]
            at += 1
        small = total < group_length // 2 and len(group) < self._small_count
        if not group or (at == end and small and not allow_small):
            self._taken[group] = False
            return False
        place.seen = at
        self._order.extend(group)
        self._counts.append(len(group))
        return True

    def numbers(self) -> Ints:
        """Return the group number of each split."""
        number = np.empty(len(self._taken), np.int64)
        number[np.asarray(self._order)] = np.repeat(
            np.arange(len(self._counts)), np.asarray(self._counts)
        )
        return number
