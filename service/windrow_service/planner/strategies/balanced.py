"""Windrow's own packing: few groups, of equal work, read where their files are.

The work of a split is its bytes plus the cost of opening its file. The number of groups is
the fewest that the size and count limits allow, but at least `parallelism`, and rounded up
to whole waves of `parallelism` tasks, since a last wave of one task takes as long as a full
one. That fixes each group's share of the work.

Splits with hosts go to one of their hosts; what a host holds of a bucket becomes groups
there if it is at least half a share. Everything else of the bucket is grouped without
regard to place, because many tiny groups cost more than a remote read.

Groups are filled by longest-processing-time-first scheduling (Graham 1969), done on columns.
Large splits are dealt, largest first, to the groups that hold least. Small ones follow class
by class, each class of similar sizes poured like water over what the groups hold already;
inside a class splits keep the order of their paths, so that a group reads neighbouring
folders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.policy import Policy
from windrow_service.planner.splits import (
    NO_HOST,
    Bools,
    Groups,
    Ints,
    Splits,
    run_numbers,
    run_offsets,
)
from windrow_service.planner.strategies.strategy import Strategy

Floats: TypeAlias = npt.NDArray[np.float64]

# Less than this part of a share at one host is left to the groups of any host.
MIN_HOST_SHARE = 0.5
# So much of a share may go over the groups of a key before they become one more.
EXCESS = 0.25
# A key that is over a limit gets one group in so many more, until it is not.
GROWTH = 32
# How fast the share shrinks while there are fewer groups than wanted.
SHRINK = 0.9
# Splits over this part of `max_split_size` are dealt one by one, smaller ones poured.
DEALT_PART = 16
# Poured sizes fall by half from class to class; what is below the last is too small to matter.
CLASSES = 12


def pack(splits: Splits, policy: Policy) -> Groups:
    """Group splits by bucket and host into equal shares of work.

    A split of at least `max_split_size` stays alone.

    Complexity: O(n log n) time, O(n) memory; no step per split in Python.
    """
    number = np.arange(len(splits), dtype=np.int64)
    rows = np.flatnonzero(splits.length < policy.max_split_size)
    if len(rows):
        together = splits.take(rows)
        wanted = _group_count(together, len(splits) - len(rows), policy)
        number[rows] = len(splits) + _number(together, wanted, policy)
    return Groups.by_number(number)


STRATEGY = Strategy(pack=pack)


def _group_count(splits: Splits, alone: int, policy: Policy) -> int:
    """Return how many groups to aim for, next to `alone` splits that are groups already."""
    fewest = -(-int(splits.length.sum()) // policy.max_split_size)
    if policy.max_small_splits_grouped:
        fewest = max(fewest, -(-len(splits) // policy.max_small_splits_grouped))
    waves = -(-(max(fewest, 1) + alone) // policy.parallelism)
    return min(max(waves * policy.parallelism - alone, 1), len(splits))


def _number(splits: Splits, wanted: int, policy: Policy) -> Ints:
    """Return a group number for each split."""
    work = splits.work(policy.open_file_cost)
    share = float(work.sum()) / wanted
    host = _hosts(splits, work, share)
    order = np.lexsort((np.arange(len(splits)), host, splits.bucket))
    items = _Items(
        splits.length[order], work[order], run_offsets(splits.bucket[order], host[order])
    )
    # A key with more shares of work than splits cannot use them all: others take them over.
    while (count := items.fewest_groups(share, policy)).sum() < wanted:
        share *= SHRINK
    group = np.empty(len(splits), np.int64)
    dealt = items.length > policy.max_split_size // DEALT_PART
    rows, used = order, 0
    # It ends: a key's splits dealt to as many groups leave none empty and none over a limit.
    while len(rows):
        spread = items.spread(count, dealt)
        group[rows] = used + spread
        used += int(count.sum())
        over, empty = items.faults(spread, count, policy)
        count = np.where(over, np.minimum(count + 1 + count // GROWTH, np.diff(items.keys)), count)
        again, count = over | empty, count[over | empty]
        key = run_numbers(items.keys)
        dealt = (dealt | empty[key])[again[key]]
        picked, items = items.only(again)
        rows = rows[picked]
    return group


def _hosts(splits: Splits, work: Ints, share: float) -> Ints:
    """Give each split one of its hosts, or NO_HOST where that host has too little to do."""
    host = splits.hosts.nth(np.arange(len(splits)) % np.maximum(splits.hosts.counts, 1))
    if not splits.hosts.names:
        return host
    key = (splits.bucket + 1) * (len(splits.hosts.names) + 1) + host + 1
    _, where = np.unique(key, return_inverse=True)
    held = np.bincount(where, work)[where]
    return np.where(held < MIN_HOST_SHARE * share, NO_HOST, host)


@dataclass(frozen=True, slots=True)
class _Items:
    """Splits in runs of equal key: their bytes, their work, and the offsets of the runs."""

    length: Ints
    work: Ints
    keys: Ints

    def fewest_groups(self, share: float, policy: Policy) -> Ints:
        """Return, per key, the fewest groups that keep the share and every limit."""
        size = np.diff(self.keys)
        count = np.maximum(
            np.ceil(np.add.reduceat(self.work, self.keys[:-1]) / share - EXCESS),
            -(-np.add.reduceat(self.length, self.keys[:-1]) // policy.max_split_size),
        ).astype(np.int64)
        if policy.max_small_splits_grouped:
            count = np.maximum(count, -(-size // policy.max_small_splits_grouped))
        fewest: Ints = np.minimum(np.maximum(count, 1), size)
        return fewest

    def spread(self, count: Ints, dealt: Bools) -> Ints:
        """Divide each key's splits over `count` groups of about equal work.

        Args:
            count: Groups of each key.
            dealt: Which splits are large.

        Returns:
            A number per split; those of key i are `sum(count[:i])` and following.
        """
        group = np.empty(len(self.work), np.int64)
        levels = _Levels.empty(count)
        self._deal(np.flatnonzero(dealt), group, levels)
        small = np.flatnonzero(~dealt)
        _, exponent = np.frexp(self.work[small].astype(np.float64))
        step = np.minimum(exponent.max(initial=0) - exponent, CLASSES - 1)
        for number in np.unique(step):
            self._pour(small[step == number], group, levels)
        return group

    def _deal(self, rows: Ints, group: Ints, levels: _Levels) -> None:
        """Give each split, largest first, to the group of its key that holds least.

        A round gives one split each to all groups that are within one split of the lowest,
        so there are about as many rounds as large splits fit into a group.
        """
        key = run_numbers(self.keys)[rows]
        order = np.lexsort((-self.work[rows], key))
        rows = rows[order]
        end = np.cumsum(np.bincount(key, minlength=len(levels.begin)))
        at = np.concatenate(([0], end[:-1]))
        while (at < end).any():
            lowest_first = np.lexsort((levels.held, levels.key))
            held = levels.held[lowest_first]
            largest = self.work[rows[np.minimum(at, len(rows) - 1)]]
            near = held < (held[levels.begin] + largest)[levels.key]
            taken = np.minimum(np.add.reduceat(near.astype(np.int64), levels.begin), end - at)
            turn = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
            given = rows[np.repeat(at, taken) + turn]
            group[given] = lowest_first[np.repeat(levels.begin, taken) + turn]
            levels.add(group[given], self.work[given])
            at = at + taken

    def _pour(self, rows: Ints, group: Ints, levels: _Levels) -> None:
        """Spread splits of similar size so that the groups of each key level out."""
        key = run_numbers(self.keys)[rows]
        work = self.work[rows].astype(np.float64)
        poured = np.bincount(key, work, len(levels.begin)).astype(np.float64)
        room = levels.room(poured)
        # All keys lie on one line: a key's splits are as long as its groups' room.
        found = np.searchsorted(np.cumsum(room), np.cumsum(work) - work / 2, side="right")
        group[rows] = np.clip(found, levels.begin[key], levels.end[key] - 1)
        levels.add(group[rows], work)

    def faults(self, group: Ints, count: Ints, policy: Policy) -> tuple[Bools, Bools]:
        """Tell which keys have a group over a limit, and which have an empty one."""
        total, begin = int(count.sum()), np.cumsum(count) - count
        members = np.bincount(group, minlength=total)
        over = (np.bincount(group, self.length, total) > policy.max_split_size) & (members > 1)
        if policy.max_small_splits_grouped:
            over |= members > policy.max_small_splits_grouped
        return np.logical_or.reduceat(over, begin), np.logical_or.reduceat(members == 0, begin)

    def only(self, keys: Bools) -> tuple[Ints, _Items]:
        """Return the rows of some keys, and those rows as items of their own."""
        rows = np.flatnonzero(keys[run_numbers(self.keys)])
        offsets = np.concatenate(([0], np.cumsum(np.diff(self.keys)[keys])))
        return rows, _Items(self.length[rows], self.work[rows], offsets)


@dataclass(frozen=True, slots=True)
class _Levels:
    """How much work the groups of each key hold so far; groups of a key lie side by side."""

    held: Floats
    key: Ints
    begin: Ints
    end: Ints

    @classmethod
    def empty(cls, count: Ints) -> _Levels:
        end = np.cumsum(count)
        return cls(np.zeros(end[-1]), np.repeat(np.arange(len(count)), count), end - count, end)

    def add(self, group: Ints, work: Floats | Ints) -> None:
        """Put work into groups."""
        self.held[:] += np.bincount(group, work, len(self.held))

    def room(self, poured: Floats) -> Floats:
        """Return how much each group takes when `poured[key]` levels out over a key's groups."""
        held = self.held[np.lexsort((self.held, self.key))]
        rank = np.arange(len(held)) - self.begin[self.key] + 1
        total = np.cumsum(held)
        below = total - (total - held)[self.begin][self.key]
        # The water stands at this height if it reaches just this group and the lower ones.
        height = (below + poured[self.key]) / rank
        wet = np.maximum(np.add.reduceat((held < height).astype(np.int64), self.begin), 1)
        return np.maximum(height[self.begin + wet - 1][self.key] - self.held, 0.0)
