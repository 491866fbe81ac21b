"""Where cacheable files are read: at a worker that holds them, or at one that will cache them.

A file that no worker holds goes to the first of its two candidates that has room. In a first pass
no worker takes much more than its fair share (bounded loads, Mirrokni et al. 2018). In a second
pass workers may fill up to their capacity, so that every file that fits somewhere is cached. A
file that fits at neither candidate is read anywhere, and is not cached.

The candidates come from rendezvous hashing: each host draws a weight for each key, and the two
heaviest are its candidates (Thaler and Ravishankar 1998). When a host leaves, only its own keys
move; a host that joins takes an even share from all the others. Only the upper bits of a key are
used: the spread is as even, and the table of candidates costs the same however many keys there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import xxhash

from windrow_service.planner.caching.cacheable import MarkingRule, cacheable_by
from windrow_service.planner.caching.cached import FALLBACK, HELD, PRIMARY, SECONDARY, Cached
from windrow_service.planner.caching.file_keys import Holding, file_keys
from windrow_service.planner.fingerprints import mix
from windrow_service.planner.splits import NO_HOST, Bools, Hashes, Ints, run_offsets

_SLOT_BITS = 16


def candidates(keys: Hashes, hosts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the first and the second choice for each key.

    Args:
        keys: Evenly spread, as `file_keys` makes them.
        hosts: Distinct.

    Returns:
        Positions in `hosts` for each key, NO_HOST if there are too few hosts.
    """
    first, second = _by_slot(tuple(hosts))
    slots = (keys >> np.uint64(64 - _SLOT_BITS)).view(np.int64)
    return first[slots], second[slots]


@lru_cache(maxsize=8)
def _by_slot(hosts: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Return the two candidates for each value of a key's upper bits."""
    count = 2**_SLOT_BITS
    slots = mix(np.arange(count, dtype=np.uint64))
    heaviest, heavy = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    first, second = np.full(count, NO_HOST, np.int64), np.full(count, NO_HOST, np.int64)
    for at, host in enumerate(hosts):
        # A weight is never 0, so that any host beats having none.
        weight = mix(slots ^ np.uint64(xxhash.xxh64_intdigest(host.encode()))) | np.uint64(1)
        leads = weight > heaviest
        follows = ~leads & (weight > heavy)
        second = np.where(leads, first, np.where(follows, at, second))
        heavy = np.where(leads, heaviest, np.where(follows, weight, heavy))
        first = np.where(leads, at, first)
        heaviest = np.where(leads, weight, heaviest)
    return first, second


# Most that a worker may get, relative to its fair share.
_OVERLOAD = 1.25
# A worker with less than this part of a fair share, and short of it by more than a few files, gets
# back files for which it is the first choice but which others hold.
_SHORT = 0.8
_FEW = 16
# Largest share of a plan's files returned at a time: each must be read from the store again.
_RETURNED_AT_ONCE = 0.1
_COLUMNS = ["path", "size_bytes", "mtime_ns", "partition"]
_SORTED_BITS = 16


@dataclass(frozen=True, slots=True)
class Caching:
    """The state of one table's caches.

    Attributes:
        rules: The rules that make files cacheable.
        holdings: The files of the table that each live worker holds, in any order.
    """

    rules: Sequence[MarkingRule] = ()
    holdings: Sequence[Holding] = ()

    def of(self, files: pa.Table, rows: Ints) -> Cached:
        """Return which of the files at `rows` are cacheable, and where they are read."""
        if not self.rules or not len(rows):
            return Cached.nothing(len(rows))
        table = files.select(_COLUMNS)
        if len(rows) < len(files):
            table = table.take(pa.array(rows))
        cacheable = cacheable_by(table, self.rules)
        at = np.flatnonzero(cacheable)
        if not len(at):
            return Cached.nothing(len(rows))
        if len(at) < len(rows):
            table = table.take(pa.array(at))
        sizes = table["size_bytes"].to_numpy()
        return place(file_keys(table), sizes, self.holdings).spread(at, len(rows))


def place(keys: Hashes, sizes: Ints, holdings: Sequence[Holding]) -> Cached:
    """Choose a worker for each of n cacheable files.

    Args:
        keys: Keys of the files, as returned by `file_keys`.
        sizes: Bytes of the files.
        holdings: The files of the table that each worker holds.
    """
    hosts, capacity = _rooms(holdings)
    choice = np.full(len(keys), FALLBACK, np.int8)
    worker = _holders(keys, holdings, hosts)
    choice[worker != NO_HOST] = HELD
    holder_rows = np.flatnonzero(worker != NO_HOST)
    back = holder_rows[_returned_files(keys[holder_rows], worker[holder_rows], holdings, hosts)]
    rows = np.flatnonzero(worker == NO_HOST)
    cached = Cached(
        cacheable=np.ones(len(keys), np.bool_), worker=worker, workers=hosts, choice=choice
    )
    if not hosts or not len(rows) + len(back):
        return cached
    load = _loads(worker[holder_rows], sizes[holder_rows], len(hosts))
    share = _OVERLOAD * int(sizes.sum()) / len(hosts) + int(sizes.max())
    fair = np.minimum(capacity, int(share))

    def settle(rows: Ints, wanted: Ints, limit: Ints, name: int) -> None:
        fits = _fitting(wanted, sizes[rows], limit - load)
        rows, wanted = rows[fits], wanted[fits]
        worker[rows], choice[rows] = wanted, name
        load[:] += _loads(wanted, sizes[rows], len(hosts))

    # In key order, so that whether a file finds room does not depend on its folder.
    rows = rows[np.argsort(keys[rows], kind="stable")]
    first, second = candidates(keys[rows], hosts)
    for limit in (fair, capacity):
        for wanted, name in ((first, PRIMARY), (second, SECONDARY)):
            open_ = (worker[rows] == NO_HOST) & (wanted != NO_HOST)
            settle(rows[open_], wanted[open_], limit, name)
    settle(back, candidates(keys[back], hosts)[0], fair, PRIMARY)
    return cached


def _rooms(holdings: Sequence[Holding]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct hosts, and the cache capacity of each in bytes."""
    capacity: dict[str, int] = {}
    for holding in holdings:
        capacity[holding.host] = capacity.get(holding.host, 0) + holding.capacity_bytes
    hosts = tuple(sorted(capacity))
    return hosts, np.array([min(capacity[host], 2**62) for host in hosts], np.int64)


def _holders(keys: Hashes, holdings: Sequence[Holding], hosts: tuple[str, ...]) -> Ints:
    """Return a host that holds each key; if several do, its better candidate."""
    number = {host: at for at, host in enumerate(hosts)}
    # Sorted by host, so that the result does not depend on the order of `holdings`: the sort by key
    # below is stable.
    holdings = sorted(
        (holding for holding in holdings if len(holding.keys)), key=lambda holding: holding.host
    )
    if not holdings or not len(keys):
        return np.full(len(keys), NO_HOST, np.int64)
    holding_keys = np.concatenate([holding.keys for holding in holdings])
    host = np.repeat(
        np.array([number[holding.host] for holding in holdings], np.int64),
        [len(holding.keys) for holding in holdings],
    )
    if len(holdings) > 1:
        # A stable sort is fast here, because it merges runs that are already sorted.
        order = np.argsort(holding_keys, kind="stable")
        holding_keys, host = holding_keys[order], host[order]
    # Looking up nearly sorted keys is several times faster, since neighbours share CPU cache lines;
    # sorting by 16 bits takes a tenth of the time of sorting by 64.
    order = np.argsort((keys >> np.uint64(64 - _SORTED_BITS)).astype(np.uint16), kind="stable")
    ordered = keys[order]
    at = np.searchsorted(holding_keys, ordered)
    matches = holding_keys[np.minimum(at, len(holding_keys) - 1)] == ordered
    worker = np.full(len(keys), NO_HOST, np.int64)
    worker[order[matches]] = host[at[matches]]
    if not (holding_keys[1:] == holding_keys[:-1]).any():
        return worker
    for candidate in reversed(candidates(keys, hosts)):
        holds = _holds(keys, candidate, holding_keys, host)
        worker[holds] = candidate[holds]
    return worker


def _holds(keys: Hashes, candidate: Ints, holding_keys: Hashes, host: Ints) -> Bools:
    """Return which keys are held by their candidate; `holding_keys` is sorted, equal keys by `host`."""
    at = np.searchsorted(holding_keys, keys)
    holds = np.zeros(len(keys), np.bool_)
    left = np.arange(len(keys))
    while len(left):
        left = left[at[left] < len(holding_keys)]
        left = left[holding_keys[at[left]] == keys[left]]
        holds[left] |= host[at[left]] == candidate[left]
        at[left] += 1
    return holds


def _returned_files(
    keys: Hashes, worker: Ints, holdings: Sequence[Holding], hosts: tuple[str, ...]
) -> Ints:
    """Return the files to move from their holders to a first choice that holds too few files."""
    if not len(keys):
        return np.empty(0, np.int64)
    number = {host: at for at, host in enumerate(hosts)}
    counts = np.zeros(len(hosts), np.int64)
    for holding in holdings:
        counts[number[holding.host]] += len(holding.keys)
    short = counts + _FEW < _SHORT * counts.sum() / len(hosts)
    if not short.any():
        return np.empty(0, np.int64)
    first, _ = candidates(keys, hosts)
    rows = np.flatnonzero((first != worker) & short[first])
    # Rounded up, so that plans of only a few files return files too.
    most = int(np.ceil(_RETURNED_AT_ONCE * len(keys)))
    return rows[np.argsort(keys[rows], kind="stable")[:most]]


def _loads(worker: Ints, sizes: Ints, count: int) -> Ints:
    return np.bincount(worker, sizes, minlength=count).astype(np.int64)


def _fitting(host: Ints, sizes: Ints, room: Ints) -> Bools:
    """Return which files, taken in order, fit into the room of the host that they want."""
    fits = np.zeros(len(host), np.bool_)
    # Skip a file too large for the whole host, so that later files can still fit.
    rows = np.flatnonzero(sizes <= room[host])
    rows = rows[np.argsort(host[rows], kind="stable")]
    if not len(rows):
        return fits
    offsets = run_offsets(host[rows])
    filling = np.cumsum(sizes[rows])
    before = np.repeat(filling[offsets[:-1]] - sizes[rows[offsets[:-1]]], np.diff(offsets))
    fits[rows] = filling - before <= room[host[rows]]
    return fits
