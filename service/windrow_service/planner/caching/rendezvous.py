"""Two candidates for each key among the hosts that live, by rendezvous hashing.

Each host draws a weight for each key, and the heaviest two are its candidates (Thaler and
Ravishankar 1998). So a host that goes takes only its own keys with it, and one that comes takes
an even share from all others. Keys are looked up by their upper bits: that spreads as well, and
costs as much for ten million keys as for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import xxhash

from windrow_service.planner.fingerprints import mix
from windrow_service.planner.splits import NO_HOST, Hashes, Ints

_SLOT_BITS = 16


def candidates(keys: Hashes, hosts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the first and the second choice for each key.

    Args:
        keys: Evenly spread, as `file_keys` makes them.
        hosts: Distinct.

    Returns:
        Positions in `hosts` for each key, NO_HOST where there are too few.
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
        # No weight is 0, so that any host goes before none.
        weight = mix(slots ^ np.uint64(xxhash.xxh64_intdigest(host.encode()))) | np.uint64(1)
        leads = weight > heaviest
        follows = ~leads & (weight > heavy)
        second = np.where(leads, first, np.where(follows, at, second))
        heavy = np.where(leads, heaviest, np.where(follows, weight, heavy))
        first = np.where(leads, at, first)
        heaviest = np.where(leads, weight, heaviest)
    return first, second
