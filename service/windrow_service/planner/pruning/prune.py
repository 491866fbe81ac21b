"""Prune files without a row that a filter wants, and return what the reader still has to check.

The cheapest evidence is used first: partition values, then statistics, then Bloom filters;
each step looks only at the files that the previous step has left. A limit is applied last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow_core.files.rows import bloom_columns
from windrow_service.planner.pruning.bounds import Bools, FileFacts, Ints, mask
from windrow_service.planner.pruning.expressions import (
    And,
    Expression,
    all_of,
    columns_of,
    conjuncts,
)
from windrow_service.planner.pruning.outcomes import truth_values
from windrow_service.planner.pruning.partitions import IN_PARTITIONS

Step: TypeAlias = Literal["manifest", "partition", "statistics", "bloom", "limit"]

# One bit of a 64-bit word for each conjunct.
_MAX_CONJUNCTS = 64


@dataclass(frozen=True, slots=True)
class Pruned:
    """The files that one step has ruled out, and their bytes."""

    files: int
    size_bytes: int


NOTHING = Pruned(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """Which of n files may hold a row that the filter wants.

    Attributes:
        survives: Files that may hold such a row, reduced to as many as a limit needs.
        conjuncts: At most 64 expressions; the filter is TRUE where all of them are.
        open: For each file, bit i is set unless conjunct i is certain, that is, TRUE for each row
            of the file. It has no meaning for files that do not survive.
        pruned: The files that each step has ruled out, of those that earlier steps left.
    """

    survives: Bools
    conjuncts: tuple[Expression, ...]
    open: npt.NDArray[np.uint64]
    pruned: Mapping[Step, Pruned]


def prune(
    files: pa.Table,
    expression: Expression | None,
    *,
    limit: int | None = None,
    by_manifest: Pruned = NOTHING,
) -> Pruning:
    """Return which files may hold a row for which `expression` is TRUE.

    Args:
        files: n files, with the schema of `columns.inventory_schema`, in any order. If there is a
            column `IN_PARTITIONS`, the step "partition" also rules out files for which it is false.
        expression: The filter; None keeps every file.
        limit: How many rows are enough. If files whose every row matches hold that many rows,
            only the first such files are kept, in the order of `files`.
        by_manifest: Totals of manifests that were ruled out earlier and are not in `files`.

    Complexity: O(n) for each node of the filter, O(n log n) for an IN; O(n) memory.
    """
    parts = conjuncts(expression) if expression is not None else ()
    if len(parts) > _MAX_CONJUNCTS:
        parts = (*parts[: _MAX_CONJUNCTS - 1], And(parts[_MAX_CONJUNCTS - 1 :]))
    size_bytes = files["size_bytes"].to_numpy()
    survives = np.ones(len(files), np.bool_)
    open_ = np.zeros(len(files), np.uint64)
    pruned: dict[Step, Pruned] = {"manifest": by_manifest}
    for step, of_step in _steps(files, parts):
        before = survives
        if step == "partition" and IN_PARTITIONS in files.column_names:
            survives = survives & mask(files[IN_PARTITIONS])
        if of_step and survives.any():
            rows = survives
            inventory = FileFacts(files, rows, evidence=step)
            matches = np.ones(inventory.file_count, np.bool_)
            for bit, part in of_step:
                possible = truth_values(part, inventory)
                matches &= possible.true
                word = np.uint64(1 << bit)
                open_[rows] &= ~word
                open_[rows] |= np.where(possible.false | possible.null, word, np.uint64(0))
            survives = rows.copy()
            survives[rows] = matches
        pruned[step] = _difference(before, survives, size_bytes)
    before = survives
    if limit is not None:
        survives = enough(files, survives & (open_ == 0), limit, survives)
    pruned["limit"] = _difference(before, survives, size_bytes)
    return Pruning(survives=survives, conjuncts=parts, open=open_, pruned=pruned)


def residuals(
    pruning: Pruning, file: Ints, offsets: Ints
) -> tuple[Ints, Sequence[Expression | None]]:
    """Return the filter that the reader of each group must still apply.

    Args:
        pruning: The result of `prune`.
        file: For each of m splits, the row of its file; only files that survive.
        offsets: Group g holds the splits `offsets[g]:offsets[g + 1]`, at least one.

    Returns:
        For each group a position in the following list, and the list of distinct residual
        filters; None means that nothing is left to apply.
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


def _steps(
    files: pa.Table, parts: Sequence[Expression]
) -> Iterator[tuple[Literal["partition", "statistics", "bloom"], list[tuple[int, Expression]]]]:
    """Yield each kind of evidence, with the conjuncts about which it may add something."""
    columns = [set(columns_of(part)) for part in parts]
    partition = set(files.schema.field("partition").type.names)
    bloom = set(bloom_columns(files.schema))
    bits = list(enumerate(parts))
    yield "partition", [(bit, part) for bit, part in bits if columns[bit] & partition]
    yield "statistics", [(bit, part) for bit, part in bits if not columns[bit] <= partition]
    yield "bloom", [(bit, part) for bit, part in bits if columns[bit] & bloom]


def enough(files: pa.Table, certain: Bools, limit: int, survives: Bools) -> Bools:
    """Return the first certain files that hold `limit` rows; `survives` if there are too few.

    Args:
        files: n files, with the columns `row_count` and `delete_count`.
        certain: For each file, whether every row is wanted.
        limit: How many rows are enough.
        survives: For each file, whether it may have a row that is wanted.
    """
    # The number of rows that a delete file removes is unknown, and so may be those of the file.
    certain &= files["delete_count"].to_numpy() == 0
    rows = np.where(certain, np.minimum(files["row_count"].fill_null(0).to_numpy(), limit), 0)
    total = np.cumsum(rows)
    if not len(total) or total[-1] < limit:
        return survives
    return np.asarray((rows > 0) & (total - rows < limit))


def _difference(before: Bools, after: Bools, size_bytes: Ints) -> Pruned:
    lost = before & ~after
    return Pruned(int(np.count_nonzero(lost)), int(size_bytes[lost].sum()))
