"""Windrow's own packing: few groups, of equal work, read where their files are.

The work of a split is its bytes, the bytes of its delete files, and the cost of opening all of
them. Packing first minimises the time of the slowest slot, then the cost of all tasks:

1. *Share.* The most work of one group: that of a full group, or more where more does no harm:
   up to 1/16 of a slot's whole work (no slot notices it), and up to the fixed cost of a task. It
   is rounded up to a step of a scale, so that a few more files do not change every group.
2. *Keys.* A group holds splits of one bucket and one place: a host, else a rack, else anywhere
   (`locality`). A large table is also divided into cells: runs of paths that end at files chosen
   by their fingerprint. Packing stops at the end of a cell, so that new files only change the
   groups of their cell. There are no cells where they would cost extra groups.
3. *Hosts.* If groups at hosts or racks make the slowest slot finish later than groups without
   places, even though all work on other hosts costs more (`REMOTE_COST`), places are dropped: a
   group then holds splits of neighbouring hosts. This happens in small tables on many hosts.
4. *Fill.* The groups of a key are filled one after another (`fill`).
5. *Last wave.* Tasks run in waves of `parallelism`, and a last wave of one task takes as long
   as a full one. If it helps the slowest slot, the groups of an incomplete last wave are divided
   into `parallelism` groups of equal work (`waves`, `spread`). A table of fewer groups than
   `parallelism` consists of a last wave only.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.packing.fill import LARGE_PART
from windrow_service.planner.packing.locality import places
from windrow_service.planner.packing.preferred_hosts import most_local
from windrow_service.planner.packing.strategies.strategy import Strategy
from windrow_service.planner.packing.waves import group_by_key
from windrow_service.planner.policy import REMOTE_COST, TASK_COST, Policy
from windrow_service.planner.slots import slowest_slot, task_costs
from windrow_service.planner.splits import Groups, Hosts, Ints, Splits, run_offsets, stable_order

Floats: TypeAlias = npt.NDArray[np.float64]

# A group of 1/GROUPS_PER_SLOT of a slot's work is small enough that no slot waits long for it.
GROUPS_PER_SLOT = 16
# Number of steps of the share between one power of two and the next.
SHARE_STEPS = 8
# Groups that a key should have in each cell, and the part of groups that cells may add.
CELL_GROUPS = 48
CELL_COST = 0.02
# The part by which places may delay the slowest slot before groups without them are tried.
PLACE_COST = 0.02


def pack(splits: Splits, policy: Policy) -> Groups:
    """Group splits by bucket and place into groups of equal work.

    A split of at least `max_split_size` stays alone.

    Complexity: O(n) time and memory on columns, and one step in Python for each group.
    """
    work = splits.work(policy.open_file_cost)
    number = np.arange(len(splits), dtype=np.int64)
    small = splits.length < policy.max_split_size
    if small.all() and len(splits):
        number = _number(splits, work, work[:0], policy)
    elif small.any():
        rows = np.flatnonzero(small)
        number[rows] = len(splits) + _number(splits.take(rows), work[rows], work[~small], policy)
    return Groups.by_number(number)


STRATEGY = Strategy(pack=pack)


def _number(splits: Splits, work: Ints, alone: Ints, policy: Policy) -> Ints:
    """Return a group number for each split, given the work of the groups that are `alone`."""
    region = _dense(splits.bucket + 1)
    sizes = np.bincount(region, splits.length).astype(np.int64)
    fewest = policy.fewest_groups(sizes, np.bincount(region))
    is_short = int(fewest.sum()) + len(alone) < policy.parallelism
    if is_short:
        share = -(-int(work.sum()) // (policy.parallelism - len(alone)))
    else:
        share = _share(splits.length, work, policy)
        region = _with_cells(splits, work, region, share, policy)

    def grouped(key: Ints, order: Ints) -> Ints:
        group = np.empty(len(order), np.int64)
        group[order] = group_by_key(
            splits.length[order],
            work[order],
            run_offsets(key[order]),
            None if is_short else share,
            alone,
            policy,
        )
        return group

    parts = _parts(splits.length, work, share, policy)
    place, is_guest = places(splits, region, parts)
    key = _dense(region * (int(place.max(initial=0)) + 1) + place)
    # Guests come last, so that they do not change the groups of the splits at home.
    group = grouped(key, stable_order(2 * key + is_guest))
    if not splits.hosts.names:
        return group
    slot = _slot(splits.hosts, work, group, alone, policy)
    # No groups without places can end before this, even if all their work were local.
    total = int(work.sum()) + int(alone.sum()) + TASK_COST * (math.ceil(parts.sum()) + len(alone))
    if slot <= total / policy.parallelism * (1 + PLACE_COST):
        return group
    near = stable_order(region * (len(splits.hosts.names) + 1) + _homes(splits) + 1)
    without = grouped(region, near)
    better = (_slot(splits.hosts, work, without, alone, policy), int(without.max()))
    return without if better < (slot, int(group.max())) else group


def _homes(splits: Splits) -> Ints:
    """Return the host that the fingerprint of each split chooses among its own, or NO_HOST."""
    replicas = np.maximum(splits.hosts.counts, 1).astype(np.uint64)
    return splits.hosts.nth((splits.fingerprint % replicas).astype(np.int64))


def _slot(hosts: Hosts, work: Ints, group: Ints, alone: Ints, policy: Policy) -> int:
    """Return when the slowest slot finishes if each task runs on the host with most of its work."""
    order = stable_order(group)
    offsets = run_offsets(group[order])
    loads = np.add.reduceat(work[order], offsets[:-1])
    local = most_local(hosts.take(order), work[order], offsets)
    cost = np.concatenate((loads + ((loads - local) * REMOTE_COST).astype(np.int64), alone))
    return slowest_slot(task_costs(np.sort(cost)[::-1]), policy.parallelism)


def _share(length: Ints, work: Ints, policy: Policy) -> int:
    """Return the most work of a group if there are at least `parallelism` groups."""
    full_groups = int(length.sum()) / policy.max_split_size
    if policy.max_small_splits_grouped is not None:
        full_groups = max(full_groups, len(length) / policy.max_small_splits_grouped)
    total = int(work.sum())
    # A group of more than a slot's part of the work would itself be the slowest slot.
    of_full_group = total / max(full_groups, policy.parallelism)
    # List scheduling ends at most one largest group, less a slot's part of that group, after the
    # optimum (Graham 1966).
    others = policy.parallelism - 1
    unnoticed = total / (others * GROUPS_PER_SLOT) if others else total
    steps = np.ceil(np.log2(max(of_full_group, unnoticed, TASK_COST)) * SHARE_STEPS)
    return int(2 ** (steps / SHARE_STEPS))


def _parts(length: Ints, work: Ints, share: int, policy: Policy) -> Floats:
    """Return the part of a group that each split takes; their sum is the number of groups.

    On average, half a split's room is left in a group.
    """
    parts = [length / policy.max_split_size, work / share]
    if policy.max_small_splits_grouped is not None:
        parts.append(np.full(len(length), 1 / policy.max_small_splits_grouped))
    part = np.maximum.reduce(parts)
    scale = max(float(one.sum()) for one in parts) / max(float(part.sum()), 1e-300)
    small = part[part <= LARGE_PART]
    loss = float((small @ small) / (2 * small.sum())) if len(small) else 0.0
    scaled: Floats = part * (scale * (1 + loss))
    return scaled


def _with_cells(splits: Splits, work: Ints, region: Ints, share: int, policy: Policy) -> Ints:
    """Divide regions into cells, where that adds almost no groups."""
    regions = int(region.max()) + 1
    whole = int(_groups(splits.length, work, region, share, policy).sum())
    region_count = int(np.count_nonzero(np.bincount(region)))
    cells = whole // (CELL_GROUPS * region_count * max(len(splits.hosts.names), 1))
    if cells < 2:
        return region
    # A power of two seldom changes while the table grows.
    every = 1 << (len(splits) // cells).bit_length()
    starts = splits.fingerprint & np.uint64(every - 1) == 0
    # The pieces of a file stay together.
    starts[1:] &= splits.file[1:] != splits.file[:-1]
    cell = np.cumsum(starts) * regions + region
    apart = int(_groups(splits.length, work, cell, share, policy).sum())
    return cell if apart <= whole * (1 + CELL_COST) else region


def _groups(length: Ints, work: Ints, key: Ints, share: int, policy: Policy) -> Ints:
    """Return about how many groups each key makes; 0 for a key without splits."""
    groups = np.maximum(
        np.bincount(key, length) / policy.max_split_size, np.bincount(key, work) / share
    )
    if policy.max_small_splits_grouped is not None:
        groups = np.maximum(groups, np.bincount(key) / policy.max_small_splits_grouped)
    return np.ceil(groups).astype(np.int64)


def _dense(keys: Ints) -> Ints:
    """Number keys from 0 in their order, unless their numbers are small enough already."""
    if int(keys.max(initial=0)) < 2 * len(keys):
        return keys
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
