"""The health of a table: how much of the time of reading it is lost to excess files."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

from windrow_core.sizes import WELL_SIZED_BYTES
from windrow_service.planner.policy import MIB

# From the best to the worst: `unread` has no snapshot, and the last refresh of `failing` failed.
Health: TypeAlias = Literal["good", "fair", "poor", "unread", "failing"]
HEALTHS: tuple[Health, ...] = get_args(Health)

# What opening a file costs, in bytes of reading, as Spark assumes by default. Windrow's own reader
# opens files faster, but is not the only one.
OPEN_FILE_BYTES = 4 * MIB
# Fewer excess files than this do not matter, however small the table is.
FEW_EXCESS = 20
# The parts of the time of reading that may be lost to excess files.
FAIR_WASTE, POOR_WASTE = 0.1, 0.5


def excess_files(file_count: int, size_bytes: int, fewest_files: int | None) -> int:
    """Return how many files a table has beyond those that it needs.

    Args:
        file_count: Number of its files.
        size_bytes: Bytes in all of them.
        fewest_files: The fewest files that its folders allow; None if that is not known.
    """
    return max(file_count - max(math.ceil(size_bytes / WELL_SIZED_BYTES), fewest_files or 0), 0)


def waste_of(excess: int, file_count: int, size_bytes: int) -> float:
    """Return the part of the time of reading a table that opening its excess files takes."""
    work = file_count * OPEN_FILE_BYTES + size_bytes
    return excess * OPEN_FILE_BYTES / work if work else 0.0


def health_of(excess: int, waste: float) -> Health:
    """Return the health of a table that has a snapshot and whose last refresh did not fail."""
    if excess < FEW_EXCESS or waste < FAIR_WASTE:
        return "good"
    return "fair" if waste < POOR_WASTE else "poor"
