"""How far the predictions of costs and gains were off, by table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.keys import Floats

# What a piece of work costs beside its files, in core seconds, until receipts tell: planning,
# starting tasks, comparing the folders, the commit. Measured on a quiet machine.
PIECE_SECONDS = 1.0
# Fewer receipts than this may be chance.
_FEWEST = 3
# The prediction itself counts as so many receipts. What costs were on this machine is surer than
# what reads save, which others change at the same time.
_PRIOR, _COST_PRIOR = 2.0, 0.5
# However far off it was, a prediction is changed by at most this factor.
_LARGEST, _LARGEST_COST = 8.0, 64.0
# Which part of costs is that of the piece is tried out in these steps, and how far a step has to
# bring predictions nearer to receipts, beside a single one, before it is believed.
_STEPS = np.exp2(np.arange(-4.0, 7.0))
_DOUBT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """What n finished rewrites should have cost and gained, and what they did, as columns.

    Predictions are those of the cost model, before corrections, for what was really rewritten.

    Attributes:
        table: Number of the table, from 0.
        predicted_cost: Predicted core seconds of the rewrite, without those of each piece of work.
        cost: Core seconds that it took.
        predicted_gain: Predicted core seconds that each later read saves.
        gain: Core seconds that later reads did save, on average; NaN while there were none.
    """

    table: Ints
    predicted_cost: Floats
    cost: Floats
    predicted_gain: Floats
    gain: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """What rewrites of m tables really cost and gain.

    Attributes:
        piece: Core seconds of a piece of work beside its rewrites.
        cost: Factor of each table's costs.
        gain: Factor of each table's gains.
    """

    piece: Floats
    cost: Floats
    gain: Floats

    def cost_of(self, seconds: float, table: int = 0) -> float:
        """Return the cost of a piece of work whose rewrites cost so much by the model."""
        return float(self.piece[table] + self.cost[table] * seconds)


def corrections(receipts: Receipts, tables: int) -> Corrections:
    """Return how predictions have to change to be those that were measured.

    Costs are fitted as a part of each piece of work and a factor. Those of a table with fewer than
    3 measurements are those of all tables together, whose machines are mostly the same. Factors
    are medians: one run on a busy machine does not change them. They have bounds, and are drawn
    towards what was expected while measurements are few. The factor of gains is 1 for tables with
    fewer than 3.

    Args:
        receipts: Finished rewrites, in any order; give the newest few of each table, because
            machines change.
        tables: Number of tables.

    Complexity: O(n log n + m).
    """
    table, model, cost = receipts.table, receipts.predicted_cost, receipts.cost
    usable = (model > 0) & (cost > 0) & np.isfinite(model) & np.isfinite(cost)
    table, model, cost = table[usable], model[usable], cost[usable]
    usual = _fit(model, cost, (PIECE_SECONDS, 1.0))
    fits = np.tile(usual, (tables, 1))
    order = np.argsort(table, kind="stable")
    numbers, begins = np.unique(table[order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, begins[1:]), strict=False):
        fits[number] = _fit(model[rows], cost[rows], usual)
    return Corrections(
        piece=fits[:, 0],
        cost=fits[:, 1],
        gain=_factors(receipts.table, receipts.predicted_gain, receipts.gain, tables),
    )


def _fit(model: Floats, cost: Floats, usual: tuple[float, float]) -> tuple[float, float]:
    """Return what a piece of work costs beside its rewrites, and the factor of these.

    Args:
        model: Costs of rewrites by the model.
        cost: What they took, each in a piece of its own.
        usual: The same two as far as they were known before.
    """
    count, (piece, factor) = len(cost), usual
    if count < _FEWEST:
        return usual
    # In logarithms, twice and half are equally far off.
    off = np.log(cost[:, None] / (factor * model[:, None] + piece * _STEPS))
    middle = np.median(off, axis=0)
    doubt = _DOUBT * np.abs(np.log(_STEPS)) / count
    best = int((np.abs(off - middle).mean(0) + doubt).argmin())
    change = np.exp(middle[best] * count / (count + _COST_PRIOR))
    most = float(np.clip(factor * change, 1 / _LARGEST_COST, _LARGEST_COST))
    return piece * float(_STEPS[best]) * most / factor, most


def _factors(table: Ints, prediction: Floats, outcome: Floats, tables: int) -> Floats:
    usable = (prediction > 0) & np.isfinite(prediction) & np.isfinite(outcome)
    table = table[usable]
    ratio = outcome[usable] / prediction[usable]
    # In logarithms, twice and half are equally far off.
    off = np.log(np.clip(ratio, 1 / _LARGEST, _LARGEST))
    order = np.lexsort((off, table))
    table, off = table[order], off[order]
    counts = np.bincount(table, minlength=tables)
    begins = np.cumsum(counts) - counts
    factors = np.ones(tables)
    some = np.flatnonzero(counts >= _FEWEST)
    lower, upper = begins[some] + (counts[some] - 1) // 2, begins[some] + counts[some] // 2
    median = (off[lower] + off[upper]) / 2
    factors[some] = np.exp(median * counts[some] / (counts[some] + _PRIOR))
    return factors
