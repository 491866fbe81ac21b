"""Choose the hosts on which each group is best read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.splits import Bools, Hosts, Ints, Splits, run_offsets

Floats: TypeAlias = npt.NDArray[np.float64]

MAX_PREFERRED_HOSTS = 3
# A host that holds less than this share of a group's bytes saves too little to wait for it.
MIN_LOCAL_SHARE = 0.5
# Most counters (groups by hosts) that are processed together.
_MAX_COUNTERS = 2**22
# Every machine calls itself this, so it says nothing about where a file is.
_LOCALHOST = "localhost"


def preferred_hosts(splits: Splits, offsets: Ints, min_local_share: float) -> tuple[Ints, Ints]:
    """Return the preferred hosts of each group: those with most of its bytes, best first.

    If no host holds enough but a rack does, hosts of that rack are returned. If no rack does
    either, but the first MAX_PREFERRED_HOSTS hosts together do, those hosts are returned.

    Args:
        splits: In the order of their groups.
        offsets: Group g holds the splits `offsets[g]:offsets[g + 1]`.
        min_local_share: The part of a group's bytes that a host or a rack must hold.

    Returns:
        Offsets (one more than there are groups) and positions in `splits.hosts.names`; a group
        has at most MAX_PREFERRED_HOSTS.

    Complexity: O(n + groups * hosts) time.
    """
    hosts, group_count = splits.hosts, len(offsets) - 1
    if not hosts.names or not group_count:
        return np.zeros(group_count + 1, np.int64), np.empty(0, np.int64)
    # An empty file has a location, too: count it as one byte.
    size = np.maximum(splits.length, 1)
    by_rack = hosts.by_rack() if any(hosts.racks) else None
    has_name = np.array([name != _LOCALHOST for name in hosts.names])
    counts, codes = [], []
    for some in _in_steps(offsets, hosts):
        local = local_bytes(hosts, size, some)
        least = min_local_share * np.add.reduceat(size[some[0] : some[-1]], some[:-1] - some[0])
        enough = has_name & (local > 0) & (local >= least[:, None])
        if by_rack is not None:
            in_rack = local_bytes(by_rack, size, some)
            best = in_rack.argmax(axis=1)
            near = in_rack[np.arange(len(best)), best] >= least
            of_rack = np.array([by_rack.names.index(rack) if rack else -1 for rack in hosts.racks])
            lonely = near & ~enough.any(axis=1)
            enough |= lonely[:, None] & (of_rack == best[:, None]) & (local > 0)
        enough |= ~enough.any(axis=1, keepdims=True) & _enough_together(local * has_name, least)
        group, host = np.nonzero(enough)
        order = np.lexsort((host, -local[group, host], group))
        runs = run_offsets(group[order])
        rank = np.arange(len(group)) - np.repeat(runs[:-1], np.diff(runs))
        best_hosts = order[rank < MAX_PREFERRED_HOSTS]
        counts.append(np.bincount(group[best_hosts], minlength=len(local)))
        codes.append(host[best_hosts])
    return np.concatenate(([0], np.cumsum(np.concatenate(counts)))), np.concatenate(codes)


def _enough_together(local: Floats, least: Floats) -> Bools:
    """Return which hosts are among the first of a group, if the first together hold enough.

    Args:
        local: Bytes of each group that each host holds.
        least: Bytes of each group that are enough.
    """
    count = min(MAX_PREFERRED_HOSTS, local.shape[1])
    first = np.argsort(-local, axis=1, kind="stable")[:, :count]
    sizes = np.take_along_axis(local, first, axis=1)
    choice = np.zeros(local.shape, np.bool_)
    np.put_along_axis(choice, first, (sizes.sum(axis=1) >= least)[:, None] & (sizes > 0), axis=1)
    return choice


def most_local(hosts: Hosts, work: Ints, offsets: Ints) -> Ints:
    """Return how much of each group's work is at the host that holds most of it.

    Args:
        hosts: Hosts of m splits; at least one has a name.
        work: Work of the m splits.
        offsets: Group g holds the splits `offsets[g]:offsets[g + 1]`.
    """
    steps = _in_steps(offsets, hosts)
    most = [local_bytes(hosts, work, some).max(axis=1).astype(np.int64) for some in steps]
    return np.concatenate(most)


def _in_steps(offsets: Ints, hosts: Hosts) -> Iterator[Ints]:
    """Yield the offsets of some groups at a time, few enough to count by host."""
    step = max(_MAX_COUNTERS // len(hosts.names), 1)
    for first in range(0, len(offsets) - 1, step):
        yield offsets[first : first + step + 1]


def local_bytes(hosts: Hosts, size: Ints, offsets: Ints) -> Floats:
    """Return how many bytes of each group each host holds, as an array of groups by hosts.

    Args:
        hosts: Hosts of m splits.
        size: Bytes of the m splits.
        offsets: Group g holds the splits `offsets[g]:offsets[g + 1]`, for any range of groups.
    """
    group_count, host_count = len(offsets) - 1, len(hosts.names)
    begin, end = offsets[0], offsets[-1]
    counts = hosts.each or np.diff(hosts.offsets[begin : end + 1])
    group = np.repeat(np.arange(group_count), np.diff(offsets))
    codes = hosts.codes[hosts.offsets[begin] : hosts.offsets[end]]
    pair = np.repeat(group * host_count, counts) + codes
    weight = np.repeat(size[begin:end], counts).astype(np.float64)
    totals = np.bincount(pair, weight, group_count * host_count).astype(np.float64, copy=False)
    return totals.reshape(group_count, host_count)
