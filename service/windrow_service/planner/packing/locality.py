"""Choose where each split is read: at one of its hosts, in one of its racks, or anywhere.

A place gets groups of its own when it holds at least half a share of a region (a bucket, or a part
of one). The remainder that a host holds beyond whole shares first tops up the groups of other
hosts that have a replica, then forms groups in its rack, then anywhere. This gives few,
well-filled groups and many local bytes.
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

# The part of a share that a place must hold to get a group of its own.
LEAST_SHARE = 0.5
# Counters are a dense array if it has at most this many more entries than there are pairs.
MAX_DENSE = 2**20


def places(splits: Splits, region: Ints, fill: Floats) -> tuple[Ints, Bools]:
    """Return a place number, at least 0, for each split; splits of one place have the same number.

    The flags returned with them mark splits that are not at the host their fingerprint prefers.

    Args:
        splits: m splits.
        region: m numbers from 0; regions do not share places.
        fill: The part of a group's share that each split takes.
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
    """How full the places of one kind are: whole shares, and the remainder.

    Args:
        region: The region of each split.
        fill: The part of a share that each split takes.
        pairs: Every `region * count + place` that will be looked up.
        count: Number of places in a region.
    """

    def __init__(self, region: Ints, fill: Floats, pairs: Ints, count: int) -> None:
        self._region = region
        self._fill = fill
        self._count = count
        size = int(pairs.max(initial=0)) + 1
        # There can be far more pairs of bucket and host than splits.
        self._known = distinct(pairs) if size > len(pairs) + MAX_DENSE else None
        self._held: Floats = np.zeros(size if self._known is None else len(self._known))
        self._room: Floats = np.zeros(len(self._held))

    def keep(self, rows: Ints, at: Ints, place: Ints, first: int) -> Ints:
        """Let each place keep whole shares, the last at least half full; return the other splits.

        Args:
            rows: Splits that have a place.
            at: The place of every split.
            place: Output: `first` + the place of each split that stays.
            first: Number of the first place.
        """
        key = self._key(rows, at[rows])
        self._held = np.bincount(key, self._fill[rows], len(self._held)).astype(np.float64)
        shares = np.floor(self._held + 1 - LEAST_SHARE)
        self._room = np.maximum(shares - self._held, 0.0)
        # A split half inside stays; otherwise one large split could leave almost nothing behind.
        most = np.where(shares < self._held, shares, np.inf)
        inside = self._within(key, self._fill[rows], most, part=0.5)
        place[rows[inside]] = first + at[rows[inside]]
        return rows[~inside]

    def top_up(self, rows: Ints, at: Ints, place: Ints, first: int) -> Ints:
        """Fill the room that is left at other places; return the splits that found none.

        Args:
            rows: Splits that need a place.
            at: A candidate place of each of them.
            place: Output: `first` + the place of each split that found one.
            first: Number of the first place.
        """
        key = self._key(rows, at)
        inside = self._within(key, self._fill[rows], self._room, part=1.0)
        load = np.bincount(key[inside], self._fill[rows[inside]], len(self._room))
        self._room = np.maximum(self._room - load, 0.0)
        place[rows[inside]] = first + at[inside]
        return rows[~inside]

    def reach(self, rows: Ints, at: Codes) -> Floats:
        """Return the sum of `fill` at the place of each given split."""
        key = self._key(rows, at)
        total: Floats = np.bincount(key, self._fill[rows], len(self._held)).astype(np.float64)
        return total[key]

    def _key(self, rows: Ints, at: Codes) -> Ints:
        key: Ints = self._region[rows] * self._count + at
        return key if self._known is None else np.searchsorted(self._known, key)

    def _within(self, key: Ints, fill: Floats, most: Floats, part: float) -> Bools:
        """Return which splits, taken in order, have the given part of themselves within `most`."""
        inside: Bools = most[key] == np.inf
        rows = np.flatnonzero(~inside & (most[key] > 0))
        rows = rows[stable_order(key[rows])]
        total = np.cumsum(fill[rows])
        starts = np.flatnonzero(np.diff(key[rows], prepend=-1))
        before = np.repeat((total - fill[rows])[starts], np.diff(np.append(starts, len(rows))))
        inside[rows] = total - (1 - part) * fill[rows] - before <= most[key[rows]]
        return inside


def _gather(level: _Level, rows: Ints, hosts: Hosts, place: Ints) -> Ints:
    """Gather leftover splits at hosts where they are enough for a group."""
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
    """Return the number of each host's rack, or NO_HOST; None if no rack is known."""
    names = sorted({rack for rack in hosts.racks if rack})
    if not names:
        return None
    number = {rack: at for at, rack in enumerate(names)}
    return np.array([number.get(rack, NO_HOST) for rack in hosts.racks], np.int64)
