"""How far the predictions of costs and gains were off, by table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.keys import Floats

# Fewer receipts than this may be chance.
_FEWEST = 3
# The prediction itself counts as so many receipts.
_PRIOR = 2.0
# However far off it was, a prediction is changed by at most this factor.
_LARGEST = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """What n finished rewrites were predicted to cost and gain, and what they did, as columns.

    Predictions are those of the cost model, before corrections.

    Attributes:
        table: Number of the table, from 0.
        predicted_cost: Predicted core seconds of the rewrite.
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
    """What predictions for m tables are multiplied by.

    Attributes:
        cost: Factor of each table's costs.
        gain: Factor of each table's gains.
    """

    cost: Floats
    gain: Floats


def corrections(receipts: Receipts, tables: int) -> Corrections:
    """Return the factors by which predictions have to change to be those that were measured.

    A factor is the median of what was measured, as a multiple of what was predicted: one run on a
    busy machine does not change it. It is 1 for tables with fewer than 3 measurements, between an
    eighth and eight for the others, and drawn towards 1 while measurements are few.

    Args:
        receipts: Finished rewrites, in any order; give the newest few of each table, because
            machines change.
        tables: Number of tables.
    """
    return Corrections(
        cost=_factors(receipts.table, receipts.predicted_cost, receipts.cost, tables),
        gain=_factors(receipts.table, receipts.predicted_gain, receipts.gain, tables),
    )


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
