"""The keys of a write, as columns: the things that a scheme has to place."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.murmur3 import Words

Floats: TypeAlias = npt.NDArray[np.float64]

# In targets: more than the files of any plan, yet sums of them fit 64 bits.
_MOST = 1e12
# Row count of keys whose rows were not counted, so large that no part of them runs out of rows.
_PLENTY = 2**50


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteKeys:
    """n keys: distinct values of the partition columns and the bucket.

    Attributes:
        rows: Number of rows of each key.
        weight: Size of each key in targets: 2.0 means two files of the target size.
        bucket: Bucket of each key; None if the table has no buckets.
        hashes: Spark's hash of partition columns and bucket; None if unknown.
        counted: Whether rows and weights are from the data; otherwise all keys are presumed equal.
        estimated: Whether weights rest on an estimate of the bytes per row.
    """

    rows: Ints
    weight: Floats
    bucket: Ints | None = None
    hashes: Words | None = None
    counted: bool = True
    estimated: bool = False

    @classmethod
    def equal(cls, count: int, weight: float, rows: int | None) -> WriteKeys:
        """Return equal keys, given only their number, total size and total rows."""
        each = _PLENTY if rows is None else max(1, rows // count)
        return cls(
            rows=np.full(count, each, np.int64),
            weight=np.full(count, min(weight / count, _MOST)),
            counted=False,
        )

    @classmethod
    def of(
        cls,
        rows: Ints,
        weight: Floats,
        bucket: Ints | None,
        hashes: Words | None,
        *,
        estimated: bool = False,
    ) -> WriteKeys:
        """Return keys whose rows were counted."""
        weight = np.minimum(weight, _MOST)
        return cls(rows=rows, weight=weight, bucket=bucket, hashes=hashes, estimated=estimated)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> float:
        """Total size of all keys, in targets."""
        return float(self.weight.sum())

    def deviation(self, parts: Ints | Floats) -> Floats:
        """Return how much the size of a part deviates when a hash divides a key, in targets.

        Args:
            parts: Number of parts of each key.

        Returns:
            The standard deviation; the rows of a part are binomially distributed.
        """
        share = 1 / np.maximum(parts, 1)
        rows = np.maximum(self.rows, 1)
        deviation: Floats = self.weight * np.sqrt(share * (1 - share) / rows)
        return deviation


def quantile(count: int, chance: float = 0.5) -> float:
    """Return how many deviations the largest of `count` parts exceeds with the given chance."""
    # A float cannot represent probabilities closer to 1.
    return NormalDist().inv_cdf(1 - max(chance / max(count, 1), 1e-15))
