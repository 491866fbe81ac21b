"""The exact plan: the number of files of each key, and a Spark partition for each file.

docs/decisions/0014-exact-plans-bound-the-largest-file.md explains the number of files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.keys import Floats, WriteKeys, quantile

# No file should be larger than this, in targets.
MOST = 1.25
# Allowance for the error of estimated bytes per row.
_OFF = 1.04
# Allowed chance that a plan makes any file above MOST.
_CHANCE = 0.01
# Most files in one task, because even a tiny file takes time to open.
_FILES_PER_TASK = 64
# With this many tasks for each slot, all slots finish at about the same time.
_WAVES = 4
# Number of bisection steps in the search for the best share of a task.
_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class ExactTasks:
    """Where an exact plan puts n keys.

    Attributes:
        files: Number of files of each key, at least 1.
        first: The first Spark partition of each key; its others follow.
        count: Number of Spark partitions.
    """

    files: Ints
    first: Ints
    count: int


def files_per_key(keys: WriteKeys) -> Ints:
    """Return how many files each key is divided into.

    The number is the k that minimises `|ln(weight / k)|`, or a larger one if files of that mean
    would probably exceed `MOST`: the rows of a part are binomially distributed, so some of many
    files are larger than the mean.
    """
    most = MOST / _OFF if keys.estimated else MOST
    nearest = _nearest(keys.weight)
    spread = quantile(int(nearest.sum()), _CHANCE) * keys.weight / np.sqrt(np.maximum(keys.rows, 1))
    # The least k for which weight/k + spread/sqrt(k) is `most`, which bounds the exact condition.
    root = (spread + np.sqrt(spread**2 + 4 * most * keys.weight)) / (2 * most)
    enough = np.ceil(root**2)
    fewer = np.maximum(enough - 1, 1)
    fits = keys.weight / fewer + spread * np.sqrt(fewer - 1) / fewer <= most
    enough = np.where(fits, fewer, enough)
    # Files divided because of `most` become no smaller than half of it.
    limit = np.maximum(nearest, np.floor(2 * keys.weight / most))
    files = np.clip(enough, nearest, limit).astype(np.int64)
    return np.minimum(files, np.maximum(keys.rows, 1))


def pack(keys: WriteKeys, files: Ints, parallelism: int | None = None) -> ExactTasks:
    """Give each file its own Spark partition; keys below the target share partitions.

    Keys that share a partition are of one bucket and neighbours among its small keys. Together they
    come to at most one target, or to less if there would otherwise be too few tasks.

    Args:
        keys: The keys to write.
        files: Number of files of each key.
        parallelism: How many tasks run at the same time, if known.
    """
    first = np.empty(len(keys), np.int64)
    small = (files == 1) & (keys.weight <= 1)
    large = np.flatnonzero(~small)
    ends = np.cumsum(files[large])
    first[large] = ends - files[large]
    count = int(ends[-1]) if len(ends) else 0
    rows = np.flatnonzero(small)
    bucket = np.zeros(len(keys), np.int64) if keys.bucket is None else keys.bucket
    rows = rows[np.argsort(bucket[rows], kind="stable")]
    weight = np.maximum(keys.weight[rows], 1 / _FILES_PER_TASK)
    starts = np.empty(0, np.int64)
    if len(rows):
        share = 1.0
        if parallelism is not None:
            total = float(keys.weight[large].sum() + weight.sum())
            slots = parallelism * _WAVES
            share = _share(weight, bucket[rows], min(1.0, total / slots), slots - count)
        starts = _fill(weight / share, bucket[rows])
    first[rows] = count - 1 + np.cumsum(starts)
    return ExactTasks(files, first, count + int(starts.sum()))


def _share(weight: Floats, bucket: Ints, least: float, tasks: int) -> float:
    """Return the part of a target that small keys may share, so that they take at most `tasks` tasks.

    One task beyond full waves would need a wave of its own. The search goes from `least` to `least`
    plus one key, which is enough unless buckets keep keys apart; then the result is `least`.
    """
    most = min(1.0, least + float(weight.max()))

    def is_enough(share: float) -> bool:
        return int(_fill(weight / share, bucket).sum()) <= tasks

    if not is_enough(most):
        return least
    low = least
    for _ in range(_HALVINGS):
        middle = (low + most) / 2
        low, most = (low, middle) if is_enough(middle) else (middle, most)
    return most


def _nearest(weight: Floats) -> Ints:
    """Return the k >= 1 for which `|ln(weight / k)|` is least."""
    below = np.maximum(np.floor(weight), 1)
    # Halfway between k and k + 1, on a logarithmic scale.
    return np.where(weight > np.sqrt(below * (below + 1)), below + 1, below).astype(np.int64)


def _fill(weight: Floats, bucket: Ints) -> Ints:
    """Return 1 where a new task starts, so that neighbours of a bucket fill tasks up to 1.0."""
    starts = np.zeros(len(weight), np.int64)
    before = np.concatenate(([0.0], np.cumsum(weight)))
    ends = np.append(np.flatnonzero(np.diff(bucket)) + 1, len(weight))
    # For a task that starts at each key, the first key that no longer fits; sums are not exact.
    full = np.searchsorted(before, before[:-1] + 1 + 1e-9, side="right") - 1
    full = np.minimum(full, ends[np.searchsorted(ends, np.arange(len(weight)), side="right")])
    at = 0
    for_each = full.tolist()
    while at < len(for_each):
        starts[at] = 1
        at = max(for_each[at], at + 1)
    return starts
