"""Spread the splits of each key over a number of groups, so that groups take equal time.

The method is longest-processing-time-first scheduling (Graham 1969), on columns. Large splits
are dealt, largest first, to the groups that hold least. Small ones follow in size classes; each
class is poured like water over what the groups already hold. Within a class splits keep their
order, so that a group reads neighbouring folders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.policy import Policy
from windrow_service.planner.splits import Bools, Ints, key_blocks, run_numbers

Floats: TypeAlias = npt.NDArray[np.float64]

# A key whose groups exceed a limit gets 1/GROWTH more groups (at least one) until none does.
GROWTH = 64
# Splits over 1/DEALT_PART of `max_split_size` are dealt one by one, smaller ones are poured.
DEALT_PART = 16
# Size halves from class to class; splits smaller than the last class are too small to matter.
CLASSES = 12


@dataclass(frozen=True, slots=True)
class Items:
    """Splits in runs of equal key.

    Attributes:
        length: Bytes of each split.
        work: Cost of reading each split.
        keys: Starts of the runs, followed by the number of splits; no run is empty.
    """

    length: Ints
    work: Ints
    keys: Ints

    def spread(self, count: Ints, policy: Policy) -> Ints:
        """Return a group number for each split, ascending from key to key.

        A key gets more groups than wanted if its groups would otherwise exceed `max_split_size` or
        `max_small_splits_grouped`. No group is empty.

        Args:
            count: Number of groups wanted for each key, at most one for each of its splits.
            policy: The limits.

        Complexity: O(n log n) time, O(n) memory; no step per split in Python.
        """
        group = np.empty(len(self.length), np.int64)
        group_count = 0
        for first, last in key_blocks(self.keys):
            begin, end = self.keys[first], self.keys[last]
            keys = self.keys[first : last + 1] - begin
            some = Items(self.length[begin:end], self.work[begin:end], keys)
            group[begin:end], group_count = some._spread(count[first:last], policy, group_count)
        return _in_key_order(group, self.keys)

    def _spread(self, count: Ints, policy: Policy, group_count: int) -> tuple[Ints, int]:
        """Return numbers from `group_count` on, and the first number after them that is free."""
        items, rows = self, np.arange(len(self.length))
        group = np.empty(len(rows), np.int64)
        dealt = items.length > policy.max_split_size // DEALT_PART
        # This terminates: with one group per split, no group is empty or over a limit.
        while len(rows):
            spread = items._once(count, dealt)
            group[rows] = group_count + spread
            group_count += int(count.sum())
            over, empty = items._faults(spread, count, policy)
            again = over | empty
            if not again.any():
                break
            more = np.minimum(count + 1 + count // GROWTH, np.diff(items.keys))
            count = np.where(over, more, count)[again]
            key = run_numbers(items.keys)
            dealt = (dealt | empty[key])[again[key]]
            again_rows, items = items._only(again)
            rows = rows[again_rows]
        return group, group_count

    def _once(self, count: Ints, dealt: Bools) -> Ints:
        """Divide each key's splits over exactly `count` groups; some may stay empty."""
        group = np.empty(len(self.work), np.int64)
        levels = _Levels.empty(count)
        self._deal(np.flatnonzero(dealt), group, levels)
        small = np.flatnonzero(~dealt)
        _, exponent = np.frexp(self.work[small].astype(np.float64))
        step = np.minimum(exponent.max(initial=0) - exponent, CLASSES - 1)
        for number in np.flatnonzero(np.bincount(step)).tolist():
            self._pour(small[step == number], group, levels)
        return group

    def _deal(self, rows: Ints, group: Ints, levels: _Levels) -> None:
        """Give each split, largest first, to the group of its key that holds least.

        Each round gives one split to every group that is within one split of the lowest, so
        there are about as many rounds as large splits that fit into a group.
        """
        key = run_numbers(self.keys)[rows]
        order = np.lexsort((-self.work[rows], key))
        rows = rows[order]
        end = np.cumsum(np.bincount(key, minlength=len(levels.begin)))
        at = np.concatenate(([0], end[:-1]))
        while (at < end).any():
            lowest_first = np.lexsort((levels.loads, levels.key))
            loads = levels.loads[lowest_first]
            largest = self.work[rows[np.minimum(at, len(rows) - 1)]]
            near = loads < (loads[levels.begin] + largest)[levels.key]
            counts = np.minimum(np.add.reduceat(near.astype(np.int64), levels.begin), end - at)
            turn = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            splits = rows[np.repeat(at, counts) + turn]
            group[splits] = lowest_first[np.repeat(levels.begin, counts) + turn]
            levels.add(group[splits], self.work[splits])
            at = at + counts

    def _pour(self, rows: Ints, group: Ints, levels: _Levels) -> None:
        """Spread splits of similar size so that the groups of each key become level."""
        key = run_numbers(self.keys)[rows]
        work = self.work[rows].astype(np.float64)
        water = np.bincount(key, work, len(levels.begin)).astype(np.float64)
        room = levels.room(water)
        # All keys are laid out on one line: a key's splits are as long as its groups' room.
        slots = np.searchsorted(np.cumsum(room), np.cumsum(work) - work / 2, side="right")
        group[rows] = np.clip(slots, levels.begin[key], levels.end[key] - 1)
        levels.add(group[rows], work)

    def _faults(self, group: Ints, count: Ints, policy: Policy) -> tuple[Bools, Bools]:
        """Return which keys have a group over a limit, and which have an empty one."""
        total, begin = int(count.sum()), np.cumsum(count) - count
        members = np.bincount(group, minlength=total)
        over = (np.bincount(group, self.length, total) > policy.max_split_size) & (members > 1)
        if policy.max_small_splits_grouped is not None:
            over |= members > policy.max_small_splits_grouped
        return np.logical_or.reduceat(over, begin), np.logical_or.reduceat(members == 0, begin)

    def _only(self, keys: Bools) -> tuple[Ints, Items]:
        """Return the rows of the given keys, and those rows as separate items."""
        rows = np.flatnonzero(keys[run_numbers(self.keys)])
        offsets = np.concatenate(([0], np.cumsum(np.diff(self.keys)[keys])))
        return rows, Items(self.length[rows], self.work[rows], offsets)


def _in_key_order(group: Ints, keys: Ints) -> Ints:
    """Renumber groups in the order of their keys, without gaps."""
    key_of = np.full(int(group.max()) + 1, len(keys), np.int64)
    key_of[group] = run_numbers(keys)
    number = np.empty(len(key_of), np.int64)
    number[np.argsort(key_of, kind="stable")] = np.arange(len(key_of))
    return number[group]


@dataclass(frozen=True, slots=True)
class _Levels:
    """How much work the groups of each key hold so far; groups of a key are adjacent."""

    loads: Floats
    key: Ints
    begin: Ints
    end: Ints

    @classmethod
    def empty(cls, count: Ints) -> _Levels:
        end = np.cumsum(count)
        return cls(np.zeros(end[-1]), np.repeat(np.arange(len(count)), count), end - count, end)

    def add(self, group: Ints, work: Floats | Ints) -> None:
        """Put work into groups."""
        self.loads[:] += np.bincount(group, work, len(self.loads))

    def room(self, water: Floats) -> Floats:
        """Return how much each group takes when `poured[key]` is levelled over a key's groups."""
        loads = self.loads[np.lexsort((self.loads, self.key))]
        rank = np.arange(len(loads)) - self.begin[self.key] + 1
        total = np.cumsum(loads)
        below = total - (total - loads)[self.begin][self.key]
        # The water level if it reaches exactly this group and the lower ones.
        height = (below + water[self.key]) / rank
        wet = np.maximum(np.add.reduceat((loads < height).astype(np.int64), self.begin), 1)
        return np.maximum(height[self.begin + wet - 1][self.key] - self.loads, 0.0)
