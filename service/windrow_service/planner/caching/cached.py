"""Splits that workers keep in their caches: where they are read, and how they are grouped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.packing.waves import group_by_key
from windrow_service.planner.policy import TASK_COST, CachedSplits, Policy
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

Choices: TypeAlias = npt.NDArray[np.int8]

# Why a cacheable file is read where it is: the worker already holds it, the worker is its first
# or second choice, or no worker has room for it.
HELD, PRIMARY, SECONDARY, FALLBACK = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """Which of n files are cacheable, and at which worker each is read.

    Attributes:
        cacheable: A flag for each file.
        worker: For each file, a position in `workers`, or NO_HOST if it may be read anywhere.
        workers: Names of the workers.
        choice: HELD, PRIMARY, SECONDARY or FALLBACK for each file.
    """

    cacheable: Bools
    worker: Ints
    workers: tuple[str, ...]
    choice: Choices

    @classmethod
    def nothing(cls, file_count: int) -> Cached:
        """Return a value in which no file is cacheable."""
        return cls(
            cacheable=np.zeros(file_count, np.bool_),
            worker=np.full(file_count, NO_HOST, np.int64),
            workers=(),
            choice=np.full(file_count, FALLBACK, np.int8),
        )

    def spread(self, rows: Ints, file_count: int) -> Cached:
        """Expand to `file_count` files, with these at `rows`; the others are not cacheable."""
        if len(rows) == file_count:
            return self
        spread = Cached.nothing(file_count)
        for name in ("cacheable", "worker", "choice"):
            getattr(spread, name)[rows] = getattr(self, name)
        return replace(spread, workers=self.workers)

    def division_of(self, splits: Splits) -> CachedSplits:
        """Return `by_worker` if a task for each cacheable split would cost more than reading it."""
        lengths = splits.length[self.cacheable[splits.file]]
        return "by_worker" if len(lengths) and lengths.mean() < TASK_COST else "separate"


def at_workers(splits: Splits, cached: Cached) -> Splits:
    """Return the splits; if a worker reads a split, that worker is its only host."""
    worker = np.where(cached.cacheable, cached.worker, NO_HOST)[splits.file]
    at_worker = worker != NO_HOST
    if not at_worker.any():
        return splits
    hosts = splits.hosts
    rack_of = dict.fromkeys(cached.workers, "") | dict(zip(hosts.names, hosts.racks, strict=True))
    names = tuple(sorted(rack_of))
    position = {name: at for at, name in enumerate(names)}
    counts = np.where(at_worker, 1, hosts.counts)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    codes = np.empty(offsets[-1], np.int32)
    of_worker = np.zeros(len(codes), np.bool_)
    of_worker[offsets[:-1][at_worker]] = True
    codes[of_worker] = np.array([position[name] for name in cached.workers])[worker[at_worker]]
    new_codes = np.array([position[name] for name in hosts.names], np.int32)
    codes[~of_worker] = new_codes[hosts.codes[np.repeat(~at_worker, hosts.counts)]]
    racks = tuple(rack_of[name] for name in names)
    return replace(splits, hosts=Hosts(names, racks, offsets, codes))


def pack_cached(splits: Splits, cached: Cached, policy: Policy) -> Groups:
    """Group splits that are cacheable or, under `by_worker`, that a worker reads.

    Under `separate` each split is alone. Under `by_worker`, splits of one bucket that the same
    worker reads share groups within the limits; a split of `max_split_size` or more stays alone.
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
    # The byte and count limits suffice, because a worker reads its cached files fast.
    share = int(work.sum()) if enough else None
    number[rows] = len(splits) + group_by_key(splits.length[rows], work, keys, share, alone, policy)
    return Groups.by_number(number)
