"""Generated events, with a number of rows per day that follows a distribution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from windrow_demo.write_once import write_once

Ints: TypeAlias = NDArray[np.int64]

FIRST_DAY = np.datetime64("2025-01-01")
_LAYOUT = 3
_CUSTOMERS = 100


def growing(days: int, row_count: int) -> Ints:
    """Return rows per day that grow linearly from almost none."""
    return _shared(np.arange(1, days + 1, dtype=np.float64), row_count)


def zipf(days: int, row_count: int) -> Ints:
    """Return rows per day where the n-th largest day holds 1/n of the rows of the largest.

    The order of the days is random, but the same at every call.
    """
    weights = 1.0 / np.arange(1, days + 1)
    return _shared(np.random.default_rng(days).permutation(weights), row_count)


def day_names(days: int) -> pa.Array:
    """Return the names of consecutive days, from `2025-01-01`."""
    return pa.array((FIRST_DAY + np.arange(days)).astype(str))


def write_events(
    folder: Path, rows_per_day: Ints, on_written: Callable[[int], None], *, files: int = 8
) -> None:
    """Make sure that `folder` holds the events, in files that each hold rows of all days.

    Columns: `ds` (the day, text), `id` and `amount` (longs), `customer` and `country` (text).

    Args:
        folder: Folder of the files.
        rows_per_day: Number of rows of each day.
        on_written: Called with the number of rows written since the last call.
        files: Number of files to spread the rows over.
    """
    row_count = int(rows_per_day.sum())

    def write(to: Path) -> None:
        random = np.random.default_rng(len(rows_per_day))
        days = np.repeat(np.arange(len(rows_per_day), dtype=np.int32), rows_per_day)
        random.shuffle(days)
        ids = np.arange(row_count)
        for number, part in enumerate(np.array_split(ids, files)):
            table = _events(random, days[part], part, len(rows_per_day))
            pq.write_table(table, to / f"part-{number:05d}.parquet")
            on_written(len(part))

    stamp = {"table": "events", "layout": _LAYOUT, "rows_per_day": rows_per_day.tolist()}
    write_once(folder, stamp, write, file_count=files)


def _events(
    random: np.random.Generator, days: NDArray[np.int32], ids: Ints, count: int
) -> pa.Table:
    return pa.table(
        {
            "ds": day_names(count).take(pa.array(days)),
            "id": ids,
            "customer": _names("c", random.integers(0, _CUSTOMERS, len(ids))),
            "country": _names("k", random.integers(0, 40, len(ids))),
            "amount": random.integers(0, 10_000_000, len(ids)),
        }
    )


def _names(letter: str, numbers: Ints) -> pa.Array:
    names = pa.array([f"{letter}{number:05d}" for number in range(_CUSTOMERS)])
    return names.take(pa.array(numbers))


def _shared(weights: NDArray[np.float64], row_count: int) -> Ints:
    """Divide exactly `row_count` rows by weight; each day gets at least one row."""
    ends = np.cumsum(weights) / weights.sum() * (row_count - len(weights))
    rows: Ints = np.diff(np.rint(ends).astype(np.int64), prepend=0) + 1
    return rows
