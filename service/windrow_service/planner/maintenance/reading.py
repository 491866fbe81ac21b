"""How often partitions will be read, or written, judging by the last days."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.keys import Floats

# After so many days, a day counts half as much.
_HALF_LIFE = 3.0
# What other partitions of the table had at the same age counts as much as so many events.
_PRIOR = 2.0
# Less than any span that is known; it only avoids a division by zero.
_LEAST = 1e-9
# A partition differs from others of its age by at most this factor.
_LARGEST = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is expected of n partitions, as columns.

    Attributes:
        per_day: Events of the next day.
        lasting_days: For how many days that rate would have to last to give as many events as are
            expected until the horizon.
    """

    per_day: Floats
    lasting_days: Floats


def expected_events(
    table: Ints, age_days: Floats, events: npt.NDArray[np.int64], horizon_days: int
) -> Expectation:
    """Expect of each partition what others of its table had at the ages that it comes to.

    Partitions of a day are read less as they grow older, and a new one has no past. So the past of
    the table says how many events a partition of an age has, and that of the partition itself how
    much it differs from those.

    Args:
        table: Number of the table of n partitions, from 0.
        age_days: Days since each partition was first written, with fractions.
        events: Reads, or writes, of n partitions in each of the last k spans of 24 hours, the
            newest span first.
        horizon_days: Events count until then.

    Complexity: O(n x k + m x k x horizon) for m tables.
    """
    days = events.shape[1]
    tables = int(table.max(initial=-1)) + 1
    span = np.arange(days)
    # How much of each span the partition was there, and its age in the middle of that.
    there = np.clip(age_days[:, None] - span, 0.0, 1.0)
    weight = np.exp2(-span / _HALF_LIFE)
    weights = there * weight
    counts = np.where(there > 0, events, 0) * weight
    middle = np.maximum(age_days[:, None] - span - there / 2, 0.0)
    # All that are older than the days that are known are alike.
    cell = table[:, None] * (days + 1) + np.minimum(middle.astype(np.int64), days)
    cells = tables * (days + 1)
    of_cell = np.bincount(cell.ravel(), weights.ravel(), cells)
    sums = np.bincount(cell.ravel(), counts.ravel(), cells)
    rates = np.where(of_cell > 0, sums / np.maximum(of_cell, _LEAST), np.nan)
    curve = _filled(rates.reshape(tables, days + 1))
    usual = (curve.ravel()[cell] * weights).sum(1)
    own = counts.sum(1)
    factor = np.clip((own + _PRIOR) / (usual + _PRIOR), 1 / _LARGEST, _LARGEST)
    ahead = np.zeros((tables, days + 1))
    for later in range(horizon_days):
        ahead += curve[:, np.minimum(np.arange(days + 1) + later, days)]
    per_day = factor * _at(curve, table, age_days)
    return Expectation(
        per_day=per_day,
        lasting_days=np.divide(
            factor * _at(ahead, table, age_days),
            per_day,
            out=np.zeros(len(table)),
            where=per_day > 0,
        ),
    )


def _filled(curve: Floats) -> Floats:
    """Return curves by age, where ages that no partition had are like the nearest younger one."""
    is_known = ~np.isnan(curve)
    ages = np.arange(curve.shape[1])
    at = np.maximum.accumulate(np.where(is_known, ages, -1), axis=1)
    at = np.where(at < 0, is_known.argmax(1)[:, None], at)
    return np.nan_to_num(np.take_along_axis(curve, at, axis=1))


def _at(curve: Floats, table: Ints, age_days: Floats) -> Floats:
    """Return the day that begins at an age, which lies between two whole ones."""
    last = curve.shape[1] - 1
    age = np.clip(age_days, 0, last)
    whole = age.astype(np.int64)
    part = age - whole
    below, above = curve[table, whole], curve[table, np.minimum(whole + 1, last)]
    return np.asarray(below * (1 - part) + above * part)
