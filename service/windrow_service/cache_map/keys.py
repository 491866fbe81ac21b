"""Sorted arrays of file keys: the files of one table that a worker holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow_service.planner.splits import Bools, Hashes

NO_KEYS: Hashes = np.empty(0, np.uint64)


def changed(keys: Hashes, added: Hashes, removed: Hashes) -> Hashes:
    """Return keys in ascending order, without the removed ones and with the added ones.

    Args:
        keys: Ascending, without duplicates.
        added: In any order.
        removed: In any order; a key that is also in `added` stays.
    """
    rest = keys[~_is_among(keys, np.unique(removed))]
    new = np.unique(added)
    new = new[~_is_among(new, rest)]
    return np.insert(rest, np.searchsorted(rest, new), new)


def shards_of(keys: Hashes) -> list[int]:
    """Return the distinct first bytes of keys, ascending."""
    return [int(shard) for shard in np.unique(keys >> np.uint64(56))]


def cut_shards(keys: Hashes, shards: Sequence[int]) -> list[Hashes]:
    """Return the keys of each shard.

    Args:
        keys: Ascending.
        shards: First bytes.
    """
    ends = np.searchsorted(keys, np.arange(1, 256, dtype=np.uint64) << np.uint64(56))
    pieces = np.split(keys, ends)
    return [pieces[shard] for shard in shards]


def _is_among(keys: Hashes, others: Hashes) -> Bools:
    """Return which keys are among `others`, which is ascending."""
    if not len(others):
        return np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(others, keys), len(others) - 1)
    mask: Bools = others[at] == keys
    return mask
