"""The possible truth values of a filter in one or many files: SQL's three-valued logic on bounds.

For each node of a filter and each file, three flags say whether the node may be TRUE, may
be FALSE and may be NULL for some row. They err on the safe side only: a flag may be set
unnecessarily, but a needed flag is never missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from windrow_service.planner.pruning.bounds import Bools, Bounds
from windrow_service.planner.pruning.expressions import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
)


class Facts(Protocol):
    """What is known about the columns of n files, or of n sets of files."""

    @property
    def file_count(self) -> int:
        """Number of files, or of sets of files."""

    def bounds(self, column: str) -> Bounds | None:
        """Return what is known about a column; None if nothing is known."""


@dataclass(frozen=True, slots=True)
class TruthValues:
    """For each file, the truth values that an expression may have for some row of it."""

    true: Bools
    false: Bools
    null: Bools


def truth_values(expression: Expression, facts: Facts) -> TruthValues:
    """Return the truth values that an expression may have for some row of each file."""
    if isinstance(expression, And):
        return _junction(expression.args, facts)
    if isinstance(expression, Or):
        return _not(_junction(expression.args, facts, negated=True))
    if isinstance(expression, Not):
        return _not(truth_values(expression.arg, facts))
    bounds = facts.bounds(expression.column)
    if bounds is None:
        return _of_unknown(expression, facts.file_count)
    if isinstance(expression, Comparison):
        return _compare(expression, bounds)
    if isinstance(expression, In):
        return _in(expression, bounds)
    if isinstance(expression, IsNull):
        never = np.zeros(facts.file_count, np.bool_)
        return TruthValues(bounds.null, bounds.value | bounds.nan, never)
    return _starts_with(expression, bounds)


def _not(one: TruthValues) -> TruthValues:
    return TruthValues(one.false, one.true, one.null)


def _junction(args: Sequence[Expression], facts: Facts, *, negated: bool = False) -> TruthValues:
    """Join by AND, negating the arguments first if asked: OR is the negation of that."""
    true = np.ones(facts.file_count, np.bool_)
    not_false = true.copy()
    false = np.zeros(facts.file_count, np.bool_)
    null = false.copy()
    for arg in args:
        one = truth_values(arg, facts)
        if negated:
            one = _not(one)
        true &= one.true
        false |= one.false
        null |= one.null
        not_false &= one.true | one.null
    return TruthValues(true, false, null & not_false)


def _of_unknown(leaf: Comparison | In | IsNull | StartsWith, count: int) -> TruthValues:
    yes, no = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    if isinstance(leaf, IsNull):
        return TruthValues(yes, yes, no)
    if isinstance(leaf, Comparison) and leaf.value is None:
        return TruthValues(no, no, yes)
    if isinstance(leaf, In) and leaf.has_null:
        return TruthValues(yes, no, yes)
    return TruthValues(yes, yes, yes)


def _compare(leaf: Comparison, bounds: Bounds) -> TruthValues:
    literal = leaf.value
    if literal is None:
        no = np.zeros(len(bounds.null), np.bool_)
        return TruthValues(no, no, bounds.null | bounds.value | bounds.nan)
    above, equal, below = _ORDERS[leaf.op]
    if literal != literal:
        # Every other value is less than NaN, and NaN equals itself.
        true = bounds.value & below | bounds.nan & equal
        false = bounds.value & (not below) | bounds.nan & (not equal)
        return TruthValues(true, false, bounds.null)
    lower, upper = bounds.lower, bounds.upper
    may_be_below = ~lower.known | lower.less(literal)
    may_be_above = ~upper.known | ~upper.less_equal(literal)
    may_be_equal = (~lower.known | lower.less_equal(literal)) & (
        ~upper.known | ~upper.less(literal)
    )
    if bounds.bloom is not None and leaf.op in ("eq", "ne"):
        last = (bounds.value & may_be_equal).astype(np.int64)
        may_be_equal &= bounds.bloom.may_hold([literal], np.zeros_like(last), last)
    nowhere = np.zeros(len(bounds.null), np.bool_)
    true, false = (
        bounds.value
        & (
            (may_be_below if below is wanted else nowhere)
            | (may_be_equal if equal is wanted else nowhere)
            | (may_be_above if above is wanted else nowhere)
        )
        | (bounds.nan if above is wanted else nowhere)
        for wanted in (True, False)
    )
    return TruthValues(true, false, bounds.null)


# For each operator: whether it holds for a value above, equal to, and below the literal.
_ORDERS = {
    "eq": (False, True, False),
    "ne": (True, False, True),
    "lt": (False, False, True),
    "le": (False, True, True),
    "gt": (True, False, False),
    "ge": (True, True, False),
}


def _in(leaf: In, bounds: Bounds) -> TruthValues:
    numbers = [value for value in leaf.values if value == value]
    has_nan = len(numbers) < len(leaf.values)
    if numbers:
        lower, upper = bounds.lower, bounds.upper
        # A partition column (exact bounds) has few distinct values.
        before = lower.count_less(numbers, or_equal=False, repetitive=bounds.exact)
        until = upper.count_less(numbers, or_equal=True, repetitive=bounds.exact)
        before = np.where(lower.known, before, 0)
        until = np.where(upper.known, until, len(numbers))
        true = bounds.value & (until > before)
        if bounds.bloom is not None:
            true &= bounds.bloom.may_hold(numbers, before, np.where(true, until, before))
        has_bounds = lower.known & upper.known
        if lower.are_integers:
            # The list has as many literals as the bounds hold integers: it has them all.
            covers = (until > before) & (
                lower.distance(upper) == np.maximum(until - before - 1, 0).astype(np.uint64)
            )
        else:
            covers = lower.equal(upper) & (until > before)
        false = bounds.value & ~(has_bounds & covers)
    else:
        true, false = np.zeros(len(bounds.null), np.bool_), bounds.value
    if has_nan:
        true = true | bounds.nan
    else:
        false = false | bounds.nan
    if leaf.has_null:
        return TruthValues(true, np.zeros(len(true), np.bool_), bounds.null | false)
    return TruthValues(true, false, bounds.null)


def _starts_with(leaf: StartsWith, bounds: Bounds) -> TruthValues:
    prefix = leaf.prefix.encode()
    if not prefix:
        return TruthValues(bounds.value, np.zeros(len(bounds.value), np.bool_), bounds.null)
    # The least text above all texts with this prefix. UTF-8 has no byte 0xFF, so +1 always fits.
    end = prefix[:-1] + bytes([prefix[-1] + 1])
    lower, upper = bounds.lower, bounds.upper
    starts_low = lower.known & ~lower.less_bytes(prefix)
    ends_high = upper.known & upper.less_bytes(end)
    above_all = lower.known & ~lower.less_bytes(end)
    below_all = upper.known & upper.less_bytes(prefix)
    return TruthValues(
        bounds.value & ~above_all & ~below_all,
        bounds.value & ~(starts_low & ends_high),
        bounds.null,
    )
