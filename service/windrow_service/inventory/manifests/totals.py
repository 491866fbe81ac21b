"""What the files of a snapshot may add up to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow_service.inventory.errors import TotalsTooLargeError

# 8 PiB, and as many rows. Figures stay exact in the floating-point numbers that plans are weighed
# by and that JSON readers have, and sums with the costs of a plan (`Splits`) fit 64 bits.
MAX_TOTAL = 2**53


def check_totals(size_bytes: int, row_count: int) -> None:
    """Make sure that a snapshot may hold so much.

    Raises:
        TotalsTooLargeError: It is too much.
    """
    for what, total in (("size_bytes", size_bytes), ("row_count", row_count)):
        if total > MAX_TOTAL:
            raise TotalsTooLargeError(what, total, MAX_TOTAL)


def check_files(files: pa.Table) -> None:
    """Make sure that files, each with no negative figure, do not come to too much.

    Raises:
        TotalsTooLargeError: They do.
    """
    check_totals(_exact_sum(files["size_bytes"]), _exact_sum(files["row_count"]))


def _exact_sum(column: pa.ChunkedArray) -> int:
    """Add up 64-bit numbers of at least 0 without passing 64 bits."""
    values = column.to_numpy()
    high, low = values >> 32, values & np.int64(2**32 - 1)
    return (int(high.sum()) << 32) + int(low.sum())
