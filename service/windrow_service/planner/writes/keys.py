"""The keys of a write, as columns: what a scheme has to place."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.murmur3 import Words

Floats: TypeAlias = npt.NDArray[np.float64]

# Under half of the target.
SMALL = 0.5
# More targets than any plan may have files, and sums of them still fit 64 bits.
_MOST = 1e12
# Of keys whose rows nobody counted, so that no part of them runs out of rows.
_PLENTY = 2**50


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """n keys: distinct values of the partition columns, and bucket.

    Attributes:
        rows: How many each holds.
        weight: Size of each in targets: 2.0 are two files of the size that is wanted.
        bucket: Of each; None where the table has none.
        hashes: Spark's hash of partition columns and bucket; None where it is not known.
        counted: Whether rows and weights are those of the data; else all keys are taken as equal.
        estimated: Whether weights are in bytes, which rows are only thought to take.
    """

    rows: Ints
    weight: Floats
    bucket: Ints | None = None
    hashes: Words | None = None
    counted: bool = True
    estimated: bool = False

    @classmethod
    def equal(cls, count: int, weight: float, rows: int | None) -> Keys:
        """Return keys of which only the number is known, and what they hold together."""
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
    ) -> Keys:
        """Return keys whose rows were counted."""
        weight = np.minimum(weight, _MOST)
        return cls(rows=rows, weight=weight, bucket=bucket, hashes=hashes, estimated=estimated)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> float:
        """Size of all together, in targets."""
        return float(self.weight.sum())

    def deviation(self, parts: Ints | Floats) -> Floats:
        """Return how far the size of a part strays where a hash divides a key, in targets.

        Args:
            parts: Into how many each key is divided.

        Returns:
            The standard deviation, since the rows of a part are binomial.
        """
        share = 1 / np.maximum(parts, 1)
        rows = np.maximum(self.rows, 1)
        deviation: Floats = self.weight * np.sqrt(share * (1 - share) / rows)
        return deviation


def quantile(count: int, chance: float = 0.5) -> float:
    """Return how many deviations the largest of so many parts exceeds, with this chance."""
    # Beyond, a float is not told from 1.
    return NormalDist().inv_cdf(1 - max(chance / max(count, 1), 1e-15))
