"""Predict the outcome of each scheme, before any row is moved."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, sqrt

import numpy as np

from windrow_core.sizes import SMALL
from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.exact import ExactTasks
from windrow_service.planner.writes.keys import WriteKeys, quantile
from windrow_service.planner.writes.murmur3 import hash_int, partition_of
from windrow_service.planner.writes.outcomes import Ideal, Outcome, Parts, hashed_evenly, placed

# More parts than this are not placed one by one: expected figures are good enough.
_MAX_PARTS = 2_000_000
# The default of `spark.sql.execution.rangeExchange.sampleSizePerPartition`, and the bound and
# oversampling factor of `RangePartitioner`.
_SAMPLES, _MAX_SAMPLES, _OVERSAMPLED = 100, 1_000_000, 3
_MAX_SCALE, _SCALES_TRIED = 100, 8


def dealt(keys: WriteKeys, tasks: int) -> Outcome:
    """Predict `coalesce(tasks)` and `repartition(tasks)`: every task gets rows of every key.

    This is the worst case, and what `repartition` does with rows that come in key order.
    """
    pieces = np.minimum(tasks, np.maximum(keys.rows, 1))
    size = keys.weight / pieces
    files = int(pieces.sum())
    busy = min(tasks, files)
    keys_each = int(np.count_nonzero(pieces == tasks)) + ceil(pieces[pieces < tasks].sum() / tasks)
    return Outcome(
        tasks=tasks,
        files=files,
        small_files=int(pieces[size < SMALL].sum()),
        mean_file=keys.total / files,
        largest_file=float(size.max()),
        largest_task=max(keys.total / busy, float(size.max())),
        efficiency=busy / files,
        collisions=float(keys_each > 1),
        severe=float(keys_each > 2),
        most_keys=keys_each,
        exact=len(keys) == 1,
    )


def by_columns(keys: WriteKeys, tasks: int) -> Outcome:
    """Predict `repartition(tasks, keys)`: one file for each key."""
    parts = _parts(keys, np.ones(len(keys), np.int64))
    if keys.hashes is None:
        return hashed_evenly(parts, tasks)
    return placed(parts, partition_of(keys.hashes[parts.key], tasks), tasks)


def salted(keys: WriteKeys, salts: int, scale: int) -> Outcome:
    """Predict `repartition(keys * salts * scale, keys, salt)`, with salts 0 to salts - 1."""
    tasks = len(keys) * salts * scale
    parts = _parts(keys, np.full(len(keys), salts, np.int64))
    if keys.hashes is None or len(keys) * salts > _MAX_PARTS:
        outcome = hashed_evenly(parts, tasks)
    else:
        task = partition_of(hash_int(_number(parts.key), keys.hashes[parts.key]), tasks)
        outcome = placed(parts, task, tasks)
    return replace(outcome, scale=scale, salts=salts)


def scale_for(keys: WriteKeys, salts: int, efficiency: float) -> int:
    """Return the least scale of `salted` that is expected to reach an efficiency.

    If Spark's own hash is known, a few more scales are tried, because the hash of a specific set
    of keys may do better or worse than the average.
    """
    things = len(keys) * salts
    scale = 1
    while scale < _MAX_SCALE and Ideal(things, things * scale).efficiency < efficiency:
        scale += 1
    if keys.hashes is None or things > _MAX_PARTS:
        return scale
    scales = range(scale, scale + _SCALES_TRIED)
    return next((s for s in scales if salted(keys, salts, s).efficiency >= efficiency), scale)


def ranged_by_hash(keys: WriteKeys, tasks: int) -> Outcome:
    """Predict `repartitionByRange(tasks, xxhash64(keys), salt)`: even ranges that cut keys.

    A key of x targets is cut in x places on average, and the pieces at its ends are of any size.
    """
    weight = keys.weight[keys.rows > 0] * tasks / max(keys.total, 1e-300)
    small = np.where(weight < SMALL, 1 + weight, 1.0)
    files = min(tasks + len(weight) - 1, int(keys.rows.sum())) if len(weight) else 0
    target = keys.total / tasks
    sampled = _OVERSAMPLED * min(_SAMPLES, max(1.0, _MAX_SAMPLES / tasks))
    # Every range holds the same number of gaps between sampled rows, but their lengths are random.
    largest = target * (1 + quantile(tasks) / sqrt(sampled)) if tasks > 1 else target
    per_task = files / tasks
    return Outcome(
        tasks=tasks,
        files=files,
        small_files=min(files, round(float(small.sum()))),
        mean_file=keys.total / max(files, 1),
        largest_file=min(largest, float(keys.weight.max(initial=0))),
        largest_task=largest,
        efficiency=min(tasks, files) / max(files, 1),
        collisions=_touched_by(per_task - 1, 1),
        severe=_touched_by(per_task - 1, 2),
        most_keys=min(len(weight), ceil(per_task + quantile(tasks) * sqrt(max(per_task - 1, 0)))),
        exact=False,
    )


def exactly(keys: WriteKeys, tasks: ExactTasks) -> Outcome:
    """Predict an exact plan."""
    parts = _parts(keys, tasks.files)
    return placed(parts, tasks.first[parts.key] + _number(parts.key), tasks.count)


def _parts(keys: WriteKeys, count: Ints) -> Parts:
    """Divide each key into `count` parts; parts that are expected to get no rows are left out."""
    rows = keys.rows.astype(np.float64)
    counts = count * -np.expm1(rows * np.log1p(-1 / np.maximum(count, 1.0 + 1e-12)))
    counts = np.where(count == 1, rows > 0, np.round(counts)).astype(np.int64)
    key = np.repeat(np.arange(len(keys)), counts)
    weight = keys.weight / np.maximum(counts, 1)
    return Parts(key, weight[key], keys.deviation(counts)[key])


def _number(key: Ints) -> Ints:
    """Return 0, 1, … for the parts of each key, which are adjacent."""
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    lengths = np.diff(starts, append=len(key))
    return np.arange(len(key)) - np.repeat(starts, lengths)


def _touched_by(cuts: float, least: int) -> float:
    """Return the share of ranges in which at least `least` keys begin, at random positions."""
    none = np.exp(-max(cuts, 0.0))
    return float(1 - none if least == 1 else 1 - none * (1 + max(cuts, 0.0)))
