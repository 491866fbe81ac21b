"""Prune files that hold no row a filter wants, and say what is left for the reader.

For each node of a filter and each file, three flags say whether the node may be TRUE, may
be FALSE and may be NULL for some row. They err on one side only: a flag may be set in vain,
and is never missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow_service.planner.bounds import Bools, Bounds, Ints, Inventory
from windrow_service.planner.expressions import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    all_of,
    columns_of,
    conjuncts,
)

# One bit of a word for each conjunct.
_MAX_CONJUNCTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """Which of n files may hold a row that the filter wants.

    Attributes:
        by_partition: Files whose partition values allow a match.
        survives: Files whose statistics allow one, too.
        conjuncts: At most 64 expressions; the filter is TRUE where all of them are.
        open: For each file, bit i is set unless conjunct i is certain: TRUE for each row of
            the file. Without meaning for files that do not survive.
    """

    by_partition: Bools
    survives: Bools
    conjuncts: tuple[Expression, ...]
    open: npt.NDArray[np.uint64]

    @property
    def pruned_by_partition(self) -> int:
        """How many files the partition values rule out."""
        return len(self.by_partition) - int(np.count_nonzero(self.by_partition))

    @property
    def pruned_by_statistics(self) -> int:
        """How many of the other files their statistics rule out."""
        return int(np.count_nonzero(self.by_partition) - np.count_nonzero(self.survives))


def prune(files: pa.Table, expression: Expression | None) -> Pruning:
    """Tell which files may hold a row for which `expression` is TRUE.

    Args:
        files: n files, as `columns.inventory_schema` says, in any order.
        expression: The filter; None keeps every file.

    Complexity: O(n) for each node of the filter, O(n log n) for an IN; O(n) memory.
    """
    parts = conjuncts(expression) if expression is not None else ()
    if len(parts) > _MAX_CONJUNCTS:
        parts = (*parts[: _MAX_CONJUNCTS - 1], And(parts[_MAX_CONJUNCTS - 1 :]))
    partition = set(files.schema.field("partition").type.names)
    by_partition = np.ones(len(files), np.bool_)
    open_ = np.zeros(len(files), np.uint64)

    inventory = Inventory(files, statistics=False)
    rest = []
    for bit, part in enumerate(parts):
        columns = set(columns_of(part))
        if columns.isdisjoint(partition):
            rest.append((bit, part))
            continue
        outcome = _outcome(part, inventory)
        by_partition &= outcome.true
        if columns <= partition:
            open_ |= _bit(outcome.false | outcome.null, bit)
        else:
            rest.append((bit, part))

    survives = by_partition.copy()
    if rest and by_partition.any():
        inventory = Inventory(files, by_partition, statistics=True)
        kept = np.ones(inventory.file_count, np.bool_)
        for bit, part in rest:
            outcome = _outcome(part, inventory)
            kept &= outcome.true
            open_[by_partition] |= _bit(outcome.false | outcome.null, bit)
        survives[by_partition] = kept
    return Pruning(by_partition=by_partition, survives=survives, conjuncts=parts, open=open_)


def residuals(
    pruning: Pruning, file: Ints, offsets: Ints
) -> tuple[Ints, Sequence[Expression | None]]:
    """State what the reader of each group must still apply.

    Args:
        pruning: What `prune` returned.
        file: For each of m splits, the row of its file; only files that survive.
        offsets: Group g holds the splits `offsets[g]:offsets[g + 1]`, at least one.

    Returns:
        For each group a position in the list that follows, and the list of distinct
        residual filters; None is nothing left to apply.
    """
    if len(offsets) < 2:
        return np.empty(0, np.int64), ()
    words = np.bitwise_or.reduceat(pruning.open[file], offsets[:-1])
    distinct, residual = np.unique(words, return_inverse=True)
    filters = [
        all_of(part for bit, part in enumerate(pruning.conjuncts) if word >> bit & 1)
        for word in distinct.tolist()
    ]
    return residual.reshape(-1).astype(np.int64, copy=False), filters


@dataclass(frozen=True, slots=True)
class _Outcome:
    """For each file, what an expression may be for some row of it."""

    true: Bools
    false: Bools
    null: Bools


def _outcome(expression: Expression, inventory: Inventory) -> _Outcome:
    if isinstance(expression, And):
        return _junction(expression.args, inventory)
    if isinstance(expression, Or):
        return _not(_junction(expression.args, inventory, negated=True))
    if isinstance(expression, Not):
        return _not(_outcome(expression.arg, inventory))
    bounds = inventory.bounds(expression.column)
    if bounds is None:
        return _of_unknown(expression, inventory.file_count)
    if isinstance(expression, Comparison):
        return _compare(expression, bounds)
    if isinstance(expression, In):
        return _in(expression, bounds)
    if isinstance(expression, IsNull):
        never = np.zeros(inventory.file_count, np.bool_)
        return _Outcome(bounds.null, bounds.value | bounds.nan, never)
    return _starts_with(expression, bounds)


def _not(outcome: _Outcome) -> _Outcome:
    return _Outcome(outcome.false, outcome.true, outcome.null)


def _junction(
    args: Sequence[Expression], inventory: Inventory, *, negated: bool = False
) -> _Outcome:
    """Join by AND, the arguments negated first if asked: OR is that, negated again."""
    true = np.ones(inventory.file_count, np.bool_)
    not_false = true.copy()
    false = np.zeros(inventory.file_count, np.bool_)
    null = false.copy()
    for arg in args:
        outcome = _outcome(arg, inventory)
        if negated:
            outcome = _not(outcome)
        true &= outcome.true
        false |= outcome.false
        null |= outcome.null
        not_false &= outcome.true | outcome.null
    return _Outcome(true, false, null & not_false)


def _of_unknown(leaf: Comparison | In | IsNull | StartsWith, count: int) -> _Outcome:
    yes, no = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    if isinstance(leaf, IsNull):
        return _Outcome(yes, yes, no)
    if isinstance(leaf, Comparison) and leaf.value is None:
        return _Outcome(no, no, yes)
    if isinstance(leaf, In) and leaf.has_null:
        return _Outcome(yes, no, yes)
    return _Outcome(yes, yes, yes)


def _compare(leaf: Comparison, bounds: Bounds) -> _Outcome:
    literal = leaf.value
    if literal is None:
        no = np.zeros(len(bounds.null), np.bool_)
        return _Outcome(no, no, bounds.null | bounds.value | bounds.nan)
    above, equal, below = _ORDERS[leaf.op]
    if literal != literal:
        # Each value is below NaN, and NaN is equal to it.
        true = bounds.value & below | bounds.nan & equal
        false = bounds.value & (not below) | bounds.nan & (not equal)
        return _Outcome(true, false, bounds.null)
    lower, upper = bounds.lower, bounds.upper
    may_be_below = ~lower.known | lower.less(literal)
    may_be_above = ~upper.known | ~upper.less_equal(literal)
    may_be_equal = (~lower.known | lower.less_equal(literal)) & (
        ~upper.known | ~upper.less(literal)
    )
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
    return _Outcome(true, false, bounds.null)


# For each operator: whether it holds for a value above the literal, equal to it, below it.
_ORDERS = {
    "eq": (False, True, False),
    "ne": (True, False, True),
    "lt": (False, False, True),
    "le": (False, True, True),
    "gt": (True, False, False),
    "ge": (True, True, False),
}


def _in(leaf: In, bounds: Bounds) -> _Outcome:
    numbers = [value for value in leaf.values if value == value]
    has_nan = len(numbers) < len(leaf.values)
    if numbers:
        lower, upper = bounds.lower, bounds.upper
        # A partition column has few distinct values.
        before = lower.count_less(numbers, or_equal=False, repetitive=bounds.exact)
        until = upper.count_less(numbers, or_equal=True, repetitive=bounds.exact)
        before = np.where(lower.known, before, 0)
        until = np.where(upper.known, until, len(numbers))
        true = bounds.value & (until > before)
        known = lower.known & upper.known
        if lower.are_integers:
            # As many literals as there are integers within the bounds: each is in the list.
            covered = (until > before) & (
                lower.distance(upper) == np.maximum(until - before - 1, 0).astype(np.uint64)
            )
        else:
            covered = lower.equal(upper) & (until > before)
        false = bounds.value & ~(known & covered)
    else:
        true, false = np.zeros(len(bounds.null), np.bool_), bounds.value
    if has_nan:
        true = true | bounds.nan
    else:
        false = false | bounds.nan
    if leaf.has_null:
        return _Outcome(true, np.zeros(len(true), np.bool_), bounds.null | false)
    return _Outcome(true, false, bounds.null)


def _starts_with(leaf: StartsWith, bounds: Bounds) -> _Outcome:
    prefix = leaf.prefix.encode()
    if not prefix:
        return _Outcome(bounds.value, np.zeros(len(bounds.value), np.bool_), bounds.null)
    # The least text above all that begin so. UTF-8 has no byte 0xFF, so one more always fits.
    end = prefix[:-1] + bytes([prefix[-1] + 1])
    lower, upper = bounds.lower, bounds.upper
    starts_low = lower.known & ~lower.less_bytes(prefix)
    ends_high = upper.known & upper.less_bytes(end)
    above_all = lower.known & ~lower.less_bytes(end)
    below_all = upper.known & upper.less_bytes(prefix)
    return _Outcome(
        bounds.value & ~above_all & ~below_all,
        bounds.value & ~(starts_low & ends_high),
        bounds.null,
    )


def _bit(flags: Bools, bit: int) -> npt.NDArray[np.uint64]:
    words: npt.NDArray[np.uint64] = flags.astype(np.uint64) << np.uint64(bit)
    return words
