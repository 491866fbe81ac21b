"""Say on which hosts each group is best read."""

from __future__ import annotations

import numpy as np

from windrow_service.planner.splits import Groups, Ints, Splits, run_offsets

MAX_PREFERRED_HOSTS = 3
# A host that holds less than this share of a group's bytes saves too little to wait for.
MIN_LOCAL_SHARE = 0.5


def preferred_hosts(splits: Splits, groups: Groups, min_local_share: float) -> tuple[Ints, Ints]:
    """Return each group's hosts: those with most of its bytes, best first.

    Returns:
        Offsets (one more than groups) and codes into `splits.hosts.names`; a group has at
        most MAX_PREFERRED_HOSTS, each with at least `min_local_share` of its bytes, and none
        where no host holds so much.
    """
    group_count = len(groups.offsets) - 1
    if not splits.hosts.names:
        return np.zeros(group_count + 1, np.int64), np.empty(0, np.int64)
    hosts = splits.hosts.take(groups.order)
    # A file of no bytes still has a place: count it as one byte.
    size = np.maximum(splits.length[groups.order], 1)
    group = np.repeat(np.arange(group_count), np.diff(groups.offsets))
    pair_key = np.repeat(group, hosts.counts) * len(hosts.names) + hosts.codes
    pair, where = np.unique(pair_key, return_inverse=True)
    local = np.bincount(where, np.repeat(size, hosts.counts), len(pair))
    pair_group, pair_host = np.divmod(pair, len(hosts.names))
    total = np.add.reduceat(size, groups.offsets[:-1]) if group_count else np.empty(0)

    enough = local >= min_local_share * total[pair_group]
    pair_group, pair_host, local = pair_group[enough], pair_host[enough], local[enough]
    best = np.lexsort((pair_host, -local, pair_group))
    pair_group, pair_host = pair_group[best], pair_host[best]
    runs = run_offsets(pair_group)
    rank = np.arange(len(pair_group)) - np.repeat(runs[:-1], np.diff(runs))
    kept = rank < MAX_PREFERRED_HOSTS
    counts = np.bincount(pair_group[kept], minlength=group_count)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), pair_host[kept]
