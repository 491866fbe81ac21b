"""Splits that workers keep in their caches: where they are, and how they are grouped."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windrow_service.planner.policy import Policy
from windrow_service.planner.splits import (
    NO_HOST,
    Bools,
    Groups,
    Hosts,
    Ints,
    Splits,
    run_offsets,
    stable_order,
)
from windrow_service.planner.waves import group_by_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """Which of n files are cacheable, and which worker holds each.

    Attributes:
        cacheable: A flag per file.
        worker: Position in `workers` per file, or NO_HOST where no worker holds it.
        workers: Names of workers.
    """

    cacheable: Bools
    worker: Ints
    workers: tuple[str, ...]

    @classmethod
    def nothing(cls, file_count: int) -> Cached:
        """Return that no file is cacheable."""
        return cls(
            cacheable=np.zeros(file_count, np.bool_),
            worker=np.full(file_count, NO_HOST, np.int64),
            workers=(),
        )

    def take(self, rows: Ints) -> Cached:
        """Return the same of the files at `rows`, in that order."""
        return replace(self, cacheable=self.cacheable[rows], worker=self.worker[rows])


def at_workers(splits: Splits, cached: Cached) -> Splits:
    """Return splits whose host is the worker that holds them, where one does."""
    worker = np.where(cached.cacheable, cached.worker, NO_HOST)[splits.file]
    held = worker != NO_HOST
    if not held.any():
        return splits
    hosts = splits.hosts
    rack_of = dict.fromkeys(cached.workers, "") | dict(zip(hosts.names, hosts.racks, strict=True))
    names = tuple(sorted(rack_of))
    position = {name: at for at, name in enumerate(names)}
    counts = np.where(held, 1, hosts.counts)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    codes = np.empty(offsets[-1], np.int32)
    of_worker = np.zeros(len(codes), np.bool_)
    of_worker[offsets[:-1][held]] = True
    codes[of_worker] = np.array([position[name] for name in cached.workers])[worker[held]]
    known = np.array([position[name] for name in hosts.names], np.int32)
    codes[~of_worker] = known[hosts.codes[np.repeat(~held, hosts.counts)]]
    racks = tuple(rack_of[name] for name in names)
    return replace(splits, hosts=Hosts(names, racks, offsets, codes))


def pack_cached(splits: Splits, cached: Cached, policy: Policy) -> Groups:
    """Group cacheable splits.

    Under `separate` each is alone. Under `by_worker` those of one bucket that one worker holds
    share groups within the limits; what no worker holds, and what is at least
    `max_split_size`, stays alone.
    """
    number = np.arange(len(splits), dtype=np.int64)
    worker = cached.worker[splits.file]
    together = (worker != NO_HOST) & (splits.length < policy.max_split_size)
    rows = np.flatnonzero(together)
    if policy.cached_splits == "separate" or not len(rows):
        return Groups.by_number(number)
    worker_count = len(cached.workers)
    rows = rows[stable_order((splits.bucket[rows] + 1) * worker_count + worker[rows])]
    keys = run_offsets(splits.bucket[rows], worker[rows])
    work = splits.work(policy.open_file_cost)
    alone = work[~together]
    work = work[rows]
    enough = len(keys) - 1 + len(alone) >= policy.parallelism
    # Bytes and count are limits enough: what a worker has cached it reads fast.
    share = int(work.sum()) if enough else None
    number[rows] = len(splits) + group_by_key(splits.length[rows], work, keys, share, alone, policy)
    return Groups.by_number(number)
