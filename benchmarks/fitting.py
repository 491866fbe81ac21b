"""Costs that explain measurements: least squares on relative errors, none below zero."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def fitted(rows: Floats, seconds: Floats) -> Floats:
    """Return the cost of each column.

    A cost that would come out below zero is left out, and the rest fitted again.

    Args:
        rows: What each of n measurements did, n x k.
        seconds: What each took.

    Returns:
        k costs, in seconds.
    """
    weighted = rows / seconds[:, None]
    # Bytes are millions of times as many as groups: without a scale the solver loses digits.
    scale = weighted.max(axis=0)
    costs: Floats = min(_solutions(weighted / scale), key=lambda found: found[1])[0] / scale
    return costs


def _solutions(rows: Floats) -> list[tuple[Floats, float]]:
    """Return every fit of some of the columns without negative costs, and its error."""
    found = [(np.zeros(rows.shape[1]), float(len(rows)))]
    for count in range(1, rows.shape[1] + 1):
        for used in itertools.combinations(range(rows.shape[1]), count):
            solved = np.linalg.lstsq(rows[:, used], np.ones(len(rows)), rcond=None)[0]
            if (solved >= 0).all():
                costs = np.zeros(rows.shape[1])
                costs[list(used)] = solved
                found.append((costs, float(((rows @ costs - 1) ** 2).sum())))
    return found
