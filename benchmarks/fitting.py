"""Fitting non-negative costs to measurements by least squares on relative errors."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def fitted(rows: Floats, seconds: Floats) -> Floats:
    """Return the cost of each column.

    If a cost would be negative, it is left out, and the rest is fitted again.

    Args:
        rows: Work done in each of n measurements, n x k.
        seconds: Seconds of each measurement.

    Returns:
        k costs, in seconds.
    """
    weighted = rows / seconds[:, None]
    # Numbers of bytes are millions of times larger than numbers of groups: without scaling, the
    # solver loses precision.
    scale = weighted.max(axis=0)
    costs: Floats = min(_solutions(weighted / scale), key=lambda solution: solution[1])[0] / scale
    return costs


def _solutions(rows: Floats) -> list[tuple[Floats, float]]:
    """Return every fit of a subset of columns that has no negative cost, with its error."""
    solutions = [(np.zeros(rows.shape[1]), float(len(rows)))]
    for count in range(1, rows.shape[1] + 1):
        for columns in itertools.combinations(range(rows.shape[1]), count):
            solved = np.linalg.lstsq(rows[:, columns], np.ones(len(rows)), rcond=None)[0]
            if (solved >= 0).all():
                costs = np.zeros(rows.shape[1])
                costs[list(columns)] = solved
                solutions.append((costs, float(((rows @ costs - 1) ** 2).sum())))
    return solutions
