"""The limit on the totals of a snapshot's files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow_service.inventory.errors import TotalsTooLargeError
from windrow_service.planner.splits import Ints

# 8 PiB, and as many rows. Up to this, figures are exact in the floating-point numbers of the
# planner and of JSON readers, and sums with the costs of a plan (`Splits`) fit 64 bits.
MAX_TOTAL = 2**53


def check_totals(size_bytes: int, row_count: int) -> None:
    """Check that the totals of a snapshot are within the limit.

    Raises:
        TotalsTooLargeError: A total is too large.
    """
    for what, total in (("size_bytes", size_bytes), ("row_count", row_count)):
        if total > MAX_TOTAL:
            raise TotalsTooLargeError(what, total, MAX_TOTAL)


def check_files(files: pa.Table) -> None:
    """Check that the totals of files, none with a negative figure, are within the limit."""
    check_totals(_exact_sum(files["size_bytes"]), _exact_sum(files["row_count"].fill_null(0)))


def size_counts(sizes: pa.ChunkedArray) -> Ints:
    """Return how many sizes have each number of bits, from 0 to 63; that of size 0 is 0."""
    # Exact, since no size is above MAX_TOTAL.
    return np.bincount(np.frexp(sizes.to_numpy())[1], minlength=64).astype(np.int64)


def rows_in(files: pa.Table) -> int | None:
    """Return the rows in files; None if the row count of any file is unknown."""
    rows = files["row_count"]
    return None if rows.null_count else int(rows.to_numpy().sum())


def _exact_sum(column: pa.ChunkedArray) -> int:
    """Add up 64-bit numbers of at least 0 without overflowing 64 bits."""
    values = column.to_numpy()
    high, low = values >> 32, values & np.int64(2**32 - 1)
    return (int(high.sum()) << 32) + int(low.sum())
