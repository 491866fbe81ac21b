"""Decoded rows, and the splits that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_tables.executor.spec import Split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Decoded rows of one or more splits, in order.

    Attributes:
        table: The decoded columns, with the table's types.
        splits: The splits that the rows come from.
        counts: How many of the rows come from each split.
    """

    table: pa.Table
    splits: Sequence[Split]
    counts: Sequence[int]

    def origins(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return for each row the ordinal of its split."""
        return np.repeat(np.array([split.ordinal for split in self.splits], np.int64), self.counts)
