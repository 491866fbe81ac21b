"""Choose where each split is read: at one of its hosts, in one of its racks, or anywhere.

A place is worth a group of its own when it holds at least half a share of a region (a bucket,
or a part of one). What a host holds beyond whole shares first tops up the groups of the other
hosts that have a replica, then forms groups in its rack, then anywhere: few groups, well
filled, and the most bytes at home.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.splits import (
    NO_HOST,
    Bools,
    Hosts,
    Ints,
    Splits,
    distinct,
    stable_order,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Codes: TypeAlias = npt.NDArray[np.integer[Any]]

# What a place must hold of a share for a group of its own.
LEAST_SHARE = 0.5
# As many counters are kept without looking which of them are used.
MAX_DENSE = 2**20


def places(splits: Splits, region: Ints, fill: Floats) -> tuple[Ints, Bools]:
    """Return a number per split, at least 0, that is equal for splits of one place.

    The flags returned with them tell which splits are not where their fingerprint wants them.

    Args:
        splits: m splits.
        region: m numbers from 0; places of different regions have nothing to do with each other.
        fill: What part of a group's share each split is.
    """
    hosts = splits.hosts
    place, is_guest = np.zeros(len(splits), np.int64), np.zeros(len(splits), np.bool_)
    if not hosts.names:
        return place, is_guest
    count, replicas = len(hosts.names), hosts.counts
    first = (splits.fingerprint % np.maximum(replicas, 1).astype(np.uint64)).astype(np.int64)
    rows = np.flatnonzero(replicas > 0)
    host = hosts.nth(first)
    level = _Level(region, fill, hosts.repeat(region) * count + hosts.codes, count)
    rows = level.keep(rows, host, place, 1)
    is_guest[rows] = True
    for step in range(1, int(replicas.max())):
        if not len(rows):
            break
        other = _nth(hosts, rows, (first[rows] + step) % replicas[rows])
        rows = level.top_up(rows, other, place, 1)
    rows = _gather(level, rows, hosts, place)
    rack = _racks(hosts)
    if len(rows) and rack is not None:
        rows = rows[rack[host[rows]] >= 0]
        in_rack = np.zeros(len(splits), np.int64)
        in_rack[rows] = rack[host[rows]]
        racks = int(rack.max()) + 1
        level = _Level(region, fill, region[rows] * racks + in_rack[rows], racks)
        level.keep(rows, in_rack, place, 1 + count)
    return place, is_guest


class _Level:
    """How full the places of one kind are, in whole shares and what is over.

    Args:
        region: The region of each split.
        fill: What part of a share each split is.
        pairs: Every `region * count + place` that will be asked for.
        count: How many places there are in a region.
    """

    def __init__(self, region: Ints, fill: Floats, pairs: Ints, count: int) -> None:
        self._region = region
        self._fill = fill
        self._count = count
        size = int(pairs.max(initial=0)) + 1
        # Buckets by hosts can be far more than there are splits.
        self._known = distinct(pairs) if size > len(pairs) + MAX_DENSE else None
        self._held: Floats = np.zeros(size if self._known is None else len(self._known))
        self._room: Floats = np.zeros(len(self._held))

    def keep(self, rows: Ints, at: Ints, place: Ints, first: int) -> Ints:
        """Let each place keep whole shares, the last at least half full; return who leaves.

        Args:
            rows: Splits that have a place.
            at: The place of every split.
            place: Where to write `first` + the place of those that stay.
            first: Number of the first place.
        """
        key = self._key(rows, at[rows])
        self._held = np.bincount(key, self._fill[rows], len(self._held)).astype(np.float64)
        shares = np.floor(self._held + 1 - LEAST_SHARE)
        self._room = np.maximum(shares - self._held, 0.0)
        # Who lies half inside stays: else a large split could leave next to nothing behind.
        most = np.where(shares < self._held, shares, np.inf)
        inside = self._within(key, self._fill[rows], most, part=0.5)
        place[rows[inside]] = first + at[rows[inside]]
        return rows[~inside]

    def top_up(self, rows: Ints, at: Ints, place: Ints, first: int) -> Ints:
        """Fill up what room there is at other places; return the splits that found none.

        Args:
            rows: Splits that look for a place.
            at: A place of each of them.
            place: Where to write `first` + the place of those that found one.
            first: Number of the first place.
        """
        key = self._key(rows, at)
        inside = self._within(key, self._fill[rows], self._room, part=1.0)
        taken = np.bincount(key[inside], self._fill[rows[inside]], len(self._room))
        self._room = np.maximum(self._room - taken, 0.0)
        place[rows[inside]] = first + at[inside]
        return rows[~inside]

    def reach(self, rows: Ints, at: Codes) -> Floats:
        """Return for each of some splits and places what all of them add up to there."""
        key = self._key(rows, at)
        total: Floats = np.bincount(key, self._fill[rows], len(self._held)).astype(np.float64)
        return total[key]

    def _key(self, rows: Ints, at: Codes) -> Ints:
        key: Ints = self._region[rows] * self._count + at
        return key if self._known is None else np.searchsorted(self._known, key)

    def _within(self, key: Ints, fill: Floats, most: Floats, part: float) -> Bools:
        """Tell of which splits, taken in order, such a part is within what their key takes."""
        inside: Bools = most[key] == np.inf
        rows = np.flatnonzero(~inside & (most[key] > 0))
        rows = rows[stable_order(key[rows])]
        total = np.cumsum(fill[rows])
        starts = np.flatnonzero(np.diff(key[rows], prepend=-1))
        before = np.repeat((total - fill[rows])[starts], np.diff(np.append(starts, len(rows))))
        inside[rows] = total - (1 - part) * fill[rows] - before <= most[key[rows]]
        return inside


def _gather(level: _Level, rows: Ints, hosts: Hosts, place: Ints) -> Ints:
    """Bring together, at hosts that can make a group of it, what is left over elsewhere."""
    if not len(rows):
        return rows
    some = hosts.take(rows)
    turn = some.repeat(np.arange(len(rows)))
    reach = level.reach(rows[turn], some.codes)
    best = np.lexsort((some.codes, -reach, turn))[some.offsets[:-1]]
    at = some.codes[best]
    enough = level.reach(rows, at) >= LEAST_SHARE
    place[rows[enough]] = 1 + at[enough]
    return rows[~enough]


def _nth(hosts: Hosts, rows: Ints, position: Ints) -> Ints:
    at: Ints = hosts.codes[hosts.offsets[rows] + position]
    return at


def _racks(hosts: Hosts) -> Ints | None:
    """Return the number of each host's rack, or NO_HOST; None where no rack is known."""
    names = sorted({rack for rack in hosts.racks if rack})
    if not names:
        return None
    number = {rack: at for at, rack in enumerate(names)}
    return np.array([number.get(rack, NO_HOST) for rack in hosts.racks], np.int64)
