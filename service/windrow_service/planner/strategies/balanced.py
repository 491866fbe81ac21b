"""Windrow's own packing: few groups, of equal work, read where their files are.

The work of a split is its bytes, those of its delete files, and the cost of opening all of
them. Packing aims first at the time of the slowest slot, then at the cost of all tasks:

1. *Share.* The work of one group: that of all splits over the fewest groups that the limits
   allow, or more where it does not matter: up to 1/16 of a slot's whole work, which no slot
   notices, and up to what a task costs in itself. With fewer groups than `parallelism`, the
   work of all splits over `parallelism`. The share is rounded up to a step of a scale, so
   that a few more files do not move every group.
2. *Keys.* A group holds splits of one bucket and one place: host, else rack, else anywhere
   (`locality`). A large table is also divided into cells, runs of paths that end at files
   chosen by their fingerprint; packing stops at a cell's end, so that new files change the
   groups of their cell alone. Where cells would cost groups there are none.
3. *Waves.* Tasks run in waves of `parallelism`, and a last wave of one task takes as long as a
   full one. What does not fill a last wave is divided into as many smaller groups as do.
4. *Spread.* The splits of each key are spread over its groups (`spread`).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.locality import places
from windrow_service.planner.policy import TASK_COST, Policy
from windrow_service.planner.splits import Groups, Ints, Splits, run_offsets, stable_order
from windrow_service.planner.spread import Items
from windrow_service.planner.strategies.strategy import Strategy

Floats: TypeAlias = npt.NDArray[np.float64]

# So much of a share may go over the groups of a key before they become one more.
EXCESS = 0.25
# A slot's work over this is small enough that no slot waits long for the last of them.
GROUPS_PER_SLOT = 16
# Steps by which shares grow from one power of two to the next.
SHARE_STEPS = 8
# Groups that a key should have in each cell, and how many more groups cells may cost.
CELL_GROUPS = 48
CELL_COST = 0.02


def pack(splits: Splits, policy: Policy) -> Groups:
    """Group splits by bucket and place into equal shares of work.

    A split of at least `max_split_size` stays alone.

    Complexity: O(n log n) time, O(n) memory; no step per split in Python.
    """
    rows = np.flatnonzero(splits.length < policy.max_split_size)
    if not len(rows):
        return Groups.by_number(np.arange(len(splits), dtype=np.int64))
    if len(rows) == len(splits):
        return Groups.by_number(_number(splits, 0, policy))
    number = np.arange(len(splits), dtype=np.int64)
    number[rows] = len(splits) + _number(splits.take(rows), len(splits) - len(rows), policy)
    return Groups.by_number(number)


STRATEGY = Strategy(pack=pack)


def _number(splits: Splits, alone: int, policy: Policy) -> Ints:
    """Return a group number for each split, next to `alone` splits that are groups already."""
    work = splits.work(policy.open_file_cost)
    buckets = _Demand.of(splits.length, work, splits.bucket + 1, policy)
    share = _share(buckets, alone, policy)
    region = _regions(splits, work, buckets, share, policy)
    fill = np.maximum(work / share, splits.length / policy.max_split_size)
    if policy.max_small_splits_grouped is not None:
        fill = np.maximum(fill, 1 / policy.max_small_splits_grouped)
    place = places(splits, region, fill)
    key = _dense(region * (int(place.max(initial=0)) + 1) + place)
    order = stable_order(key)
    items = Items(splits.length[order], work[order], run_offsets(key[order]))
    demand = _Demand(
        np.add.reduceat(items.length, items.keys[:-1]),
        np.add.reduceat(items.work, items.keys[:-1]),
        np.diff(items.keys),
        policy,
    )
    group = np.empty(len(order), np.int64)
    group[order] = items.spread(_fill_waves(demand, share, alone), policy)
    return group


class _Demand:
    """What each key asks for: bytes, work and number of its splits, and the limits.

    Args:
        length: Bytes of each key.
        work: Work of each key.
        size: Splits of each key.
        policy: The limits.
    """

    def __init__(self, length: Ints, work: Ints, size: Ints, policy: Policy) -> None:
        self.work = work
        self.size = size
        self.parallelism = policy.parallelism
        limit = policy.max_small_splits_grouped or policy.max_files
        self.fewest = np.maximum(-(-length // policy.max_split_size), -(-size // limit))

    @classmethod
    def of(cls, length: Ints, work: Ints, key: Ints, policy: Policy) -> _Demand:
        """Add up splits by key; keys without splits ask for nothing."""
        total = (np.bincount(key, values).astype(np.int64) for values in (length, work))
        return cls(next(total), next(total), np.bincount(key), policy)

    def groups(self, share: float) -> Ints:
        """Return the fewest groups per key that keep the share and every limit."""
        wanted = np.maximum(np.ceil(self.work / share - EXCESS), 1).astype(np.int64)
        return np.minimum(np.maximum(self.fewest, wanted), self.size)


def _share(buckets: _Demand, alone: int, policy: Policy) -> float:
    """Return the work that one group should hold."""
    work = float(buckets.work.sum())
    fewest = int(buckets.fewest.clip(min=1)[buckets.size > 0].sum())
    if fewest + alone < policy.parallelism:
        return work / (policy.parallelism - alone)
    # List scheduling ends within the largest group's time, less one slot's part of it, of the
    # best there is (Graham 1969).
    others = policy.parallelism - 1
    unnoticed = work / (others * GROUPS_PER_SLOT) if others else work
    steps = np.ceil(np.log2(max(work / fewest, unnoticed, TASK_COST)) * SHARE_STEPS)
    return float(2 ** (steps / SHARE_STEPS))


def _regions(splits: Splits, work: Ints, buckets: _Demand, share: float, policy: Policy) -> Ints:
    """Return the bucket of each split, and its cell where cells cost nothing, as one number."""
    region = _dense(splits.bucket + 1)
    whole = int(buckets.groups(share).sum())
    keys = int(np.count_nonzero(buckets.size)) * max(len(splits.hosts.names), 1)
    cells = whole // (CELL_GROUPS * keys)
    if cells < 2 or whole < policy.parallelism:
        return region
    # A power of two moves seldom while the table grows.
    every = 1 << (len(splits) // cells).bit_length()
    ends = splits.fingerprint & np.uint64(every - 1) == 0
    # The pieces of a file stay together.
    ends[1:] &= splits.file[1:] != splits.file[:-1]
    celled = np.cumsum(ends) * (int(region.max()) + 1) + region
    demand = _Demand.of(splits.length, work, celled, policy)
    apart = int(demand.groups(share).sum())
    return celled if apart <= whole * (1 + CELL_COST) else region


def _dense(keys: Ints) -> Ints:
    """Number keys from 0 in their order, if they are not nearly so already."""
    if int(keys.max(initial=0)) < 2 * len(keys):
        return keys
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _fill_waves(demand: _Demand, share: float, alone: int) -> Ints:
    """Return how many groups each key becomes, so that the last wave of tasks is a full one.

    The keys behind all others are divided further: as the last paths they change most anyway.
    """
    count = demand.groups(share)
    total = int(count.sum()) + alone
    over = total % demand.parallelism
    missing = (demand.parallelism - over) % demand.parallelism
    if not missing:
        return count
    last_first = np.cumsum(count[::-1])
    can_be = np.cumsum(demand.size[::-1])
    enough = (last_first >= over) & (can_be >= last_first + missing)
    keys = int(np.argmax(enough)) + 1 if enough.any() else len(count)
    count[-keys:] = _divide(demand.work[-keys:], count[-keys:], demand.size[-keys:], missing)
    return count


def _divide(work: Ints, count: Ints, size: Ints, more: int) -> Ints:
    """Give `more` groups to keys, each time where the most work falls on one group."""
    budget = min(int(count.sum()) + more, int(size.sum()))
    low, high = 0.0, float((work / count).max())
    # The least share that the budget suffices for, by bisection to one part in 2**40.
    for _ in range(40):
        middle = (low + high) / 2
        wanted = np.clip(np.ceil(work / max(middle, 1e-300)), count, size)
        low, high = (middle, high) if wanted.sum() > budget else (low, middle)
    found: Ints = np.clip(np.ceil(work / high), count, size).astype(np.int64)
    spare = budget - int(found.sum())
    heaviest = np.argsort(-(work / found), kind="stable")
    heaviest = heaviest[found[heaviest] < size[heaviest]][:spare]
    found[heaviest] += 1
    return found
