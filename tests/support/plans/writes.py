"""Keys of writes for tests: days with given numbers of rows."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_service.planner.writes.keys import WriteKeys
from windrow_service.planner.writes.murmur3 import hash_columns

# 365 days: the largest has 400,000 rows, the smallest 1,977.
ZIPF = (400_000 / np.arange(1, 366) ** 0.9).astype(np.int64)
EVEN = np.full(365, 5_000, np.int64)


def days(count: int) -> list[str]:
    """Return the first days of 2018 as text."""
    first = datetime.date(2018, 1, 1)
    return [(first + datetime.timedelta(day)).isoformat() for day in range(count)]


def keys_of_days(rows: Sequence[int] | np.ndarray, target_rows: float = 1_000) -> WriteKeys:
    """Return one key per day (a text) with these numbers of rows."""
    counts = np.array(rows, np.int64)
    hashes = hash_columns([pa.array(days(len(counts)))], len(counts))
    return WriteKeys.of(counts, counts / target_rows, None, hashes)


def counts_of_days(rows: Sequence[int]) -> dict[str, Any]:
    """Return the same keys in the form of a request."""
    return {
        "columns": [{"name": "ds", "type": "string"}],
        "values": [days(len(rows))],
        "rows": [int(count) for count in rows],
    }
