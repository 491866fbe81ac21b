"""Bytes that a row takes in files, estimated from existing files or writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.keys import Floats

# Files with fewer rows than this share of the usual number say little about large files.
_TINY = 0.1
_LOW, _HIGH = 0.1, 0.9
# From this many rows on, a group of files has its own average.
_ENOUGH_ROWS = 1_000
# Most bytes of a file besides rows: headers and statistics of each column, and the footer.
_FIXED_BYTES, _FIXED_BYTES_PER_COLUMN = 1_024, 400


@dataclass(frozen=True, slots=True)
class RowSizes:
    """Bytes per row.

    Attributes:
        mean: Average of all files, weighted by rows.
        low: A tenth of the rows are in files with fewer bytes per row.
        high: A tenth of the rows are in files with more.
        rows: Number of rows that the figures rest on.
        of_group: Average of each group of files; `mean` for a group of too few rows.
    """

    mean: float
    low: float
    high: float
    rows: int
    of_group: Floats


def row_sizes(
    size_bytes: Ints | Floats,
    rows: Ints | Floats,
    columns: int | None,
    *,
    files: Ints | None = None,
    group: Ints | None = None,
    groups: int = 0,
) -> RowSizes | None:
    """Pool the sizes of files, weighted by rows; None if they hold no rows or no bytes.

    Tiny files are left out. The fixed bytes of a file, which do not depend on its rows, are not
    counted: they are the intercept of a line through rows and bytes, bounded by what the format
    needs.

    Args:
        size_bytes: Bytes of each file.
        rows: Rows of each file.
        columns: Number of columns in the files; None counts the fixed bytes as bytes of rows.
        files: Number of files that each entry stands for; 1 by default.
        group: The group of each file, for averages by group.
        groups: Number of groups.
    """
    many = np.ones(len(rows), np.int64) if files is None else files
    total = rows.astype(np.float64) * many
    usual = float((rows * total).sum()) / max(float(total.sum()), 1.0)
    rows_of_size = np.flatnonzero(rows >= max(_TINY * usual, 1))
    if not len(rows_of_size):
        return None
    size, each, count = (
        size_bytes[rows_of_size].astype(np.float64),
        rows[rows_of_size],
        total[rows_of_size],
    )
    of_each = size if columns is None else size - _fixed(size, each.astype(np.float64), columns)
    of_rows = of_each * many[rows_of_size]
    mean = float(of_rows.sum() / count.sum())
    if mean <= 0:
        return None
    low, high = _weighted_quantiles(of_each / each, count)
    of_group = np.full(groups, mean)
    if group is not None:
        in_group = np.bincount(group[rows_of_size], count, groups)
        bytes_in_group = np.bincount(group[rows_of_size], of_rows, groups)
        enough = in_group >= _ENOUGH_ROWS
        of_group[enough] = bytes_in_group[enough] / in_group[enough]
    return RowSizes(mean, min(low, mean), max(high, mean), int(count.sum()), of_group)


def _fixed(size: Floats, rows: Floats, columns: int) -> float:
    """Return the fixed bytes of each file, besides its rows."""
    spread = rows - rows.mean()
    variance = float((spread**2).sum())
    if variance == 0:
        return 0.0
    slope = float((spread * size).sum()) / variance
    begins = float(size.mean() - slope * rows.mean())
    most = min(_FIXED_BYTES + _FIXED_BYTES_PER_COLUMN * columns, 0.95 * float(size.min()))
    return min(max(begins, 0.0), most)


def _weighted_quantiles(values: Floats, weight: Floats) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    low, high = np.searchsorted(share, [_LOW, _HIGH])
    return float(values[order[low]]), float(values[order[min(high, len(order) - 1)]])
