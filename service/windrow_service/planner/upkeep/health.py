"""The health of a table: what its reads lose to excess files."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

from windrow_core.sizes import WELL_SIZED_BYTES

# From the best to the worst: `unread` has no snapshot, and the last refresh of `failing` failed.
Health: TypeAlias = Literal["good", "fair", "poor", "unread", "failing"]
HEALTHS: tuple[Health, ...] = get_args(Health)

# Reads of so many days count.
READ_DAYS = 7
# Excess files that one read of all of the table may open, and that all its reads of a day may, for
# it to be fair or poor. Opening 10,000 takes a core a second, by the cost model of plans.
FAIR_EACH, POOR_EACH = 500, 10_000
FAIR_DAILY, POOR_DAILY = 50_000, 600_000


def excess_files(file_count: int, size_bytes: int, fewest_files: int | None) -> int:
    """Return how many files a table has beyond those that it needs.

    Args:
        file_count: Number of its files.
        size_bytes: Bytes in all of them.
        fewest_files: The fewest files that its folders allow; None if that is not known.
    """
    return max(file_count - max(math.ceil(size_bytes / WELL_SIZED_BYTES), fewest_files or 0), 0)


def health_of(excess: int, reads: int) -> Health:
    """Return the health of a table that has a snapshot and whose last refresh did not fail.

    Args:
        excess: Number of its excess files.
        reads: Number of its reads in `READ_DAYS` days.
    """
    if excess >= POOR_EACH or excess * reads >= POOR_DAILY * READ_DAYS:
        return "poor"
    return "fair" if excess >= FAIR_EACH or excess * reads >= FAIR_DAILY * READ_DAYS else "good"
