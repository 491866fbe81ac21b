"""The outcome of a scheme: files, their sizes, and how evenly tasks are used."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from windrow_core.sizes import SMALL
from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.keys import Floats, quantile

# From this mean on, the number of things in a slot is close enough to normally distributed.
_CROWDED = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures of one scheme; sizes are in targets.

    Attributes:
        tasks: Number of Spark partitions that the data is repartitioned into.
        files: Number of files written.
        small_files: Number of files under `SMALL`.
        mean_file: Mean size of a file.
        largest_file: Expected size of the largest file.
        largest_task: Expected size of the largest Spark partition.
        efficiency: Spark partitions with rows, per file.
        collisions: Share of the Spark partitions with rows that have two or more files.
        severe: The same for three or more files.
        most_keys: Most files of any Spark partition.
        exact: Whether figures are computed with Spark's own hash; otherwise they are expectations.
        scale: For `salted`: Spark partitions per file.
        salts: For `salted`: number of parts that each key is divided into.
    """

    tasks: int
    files: int
    small_files: int
    mean_file: float
    largest_file: float
    largest_task: float
    efficiency: float
    collisions: float
    severe: float
    most_keys: int
    exact: bool
    scale: int | None = None
    salts: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The files that a scheme makes, as columns.

    Attributes:
        key: The key that each file belongs to.
        weight: Expected size, in targets.
        deviation: Standard deviation of the size.
    """

    key: Ints
    weight: Floats
    deviation: Floats

    def __len__(self) -> int:
        return len(self.key)

    @property
    def small(self) -> int:
        """Number of parts under `SMALL`."""
        return int(np.count_nonzero(self.weight < SMALL))

    @property
    def largest(self) -> float:
        """Expected size of the largest part."""
        return _largest(self.weight, self.deviation)


def placed(parts: Parts, task: Ints, tasks: int) -> Outcome:
    """Return the outcome when the task of each part is known.

    Complexity: O(n log n) for n parts, whatever the number of tasks.
    """
    tasks_with_rows, of = np.unique(task, return_inverse=True)
    counts = np.bincount(of)
    weight = np.bincount(of, parts.weight).astype(np.float64)
    deviation = np.sqrt(np.bincount(of, parts.deviation**2))
    share = 1 / max(len(tasks_with_rows), 1)
    return Outcome(
        tasks=tasks,
        files=len(parts),
        small_files=parts.small,
        mean_file=_mean(parts),
        largest_file=parts.largest,
        largest_task=max(parts.largest, _largest(weight, deviation)),
        efficiency=len(tasks_with_rows) / max(len(parts), 1),
        collisions=float(np.count_nonzero(counts > 1)) * share,
        severe=float(np.count_nonzero(counts > 2)) * share,
        most_keys=int(counts.max(initial=0)),
        exact=True,
    )


def hashed_evenly(parts: Parts, tasks: int) -> Outcome:
    """Return the expected outcome when a uniform hash sends each part to one of the tasks."""
    count = len(parts)
    ideal = Ideal(count, tasks)
    most = ideal.most
    mean = _mean(parts)
    return Outcome(
        tasks=tasks,
        files=count,
        small_files=parts.small,
        mean_file=mean,
        largest_file=parts.largest,
        largest_task=max(parts.largest, most * mean),
        efficiency=ideal.efficiency,
        collisions=ideal.collisions,
        severe=ideal.severe,
        most_keys=most,
        exact=False,
    )


@dataclass(frozen=True, slots=True)
class Ideal:
    """Average figures of a uniform hash that puts m things into n slots."""

    things: int
    slots: int

    @property
    def used(self) -> float:
        """Number of slots that are not empty."""
        return self.slots * (1 - (1 - 1 / self.slots) ** self.things)

    @property
    def efficiency(self) -> float:
        """Slots that are not empty, per thing: `s(1 - (1 - 1/n)^m)` with n = s m."""
        return self.used / self.things if self.things else 0.0

    @property
    def collisions(self) -> float:
        """Share of the non-empty slots that have two or more things."""
        return max(0.0, 1 - self._with(1) / self.used) if self.things else 0.0

    @property
    def severe(self) -> float:
        """The same for three or more things."""
        return max(0.0, 1 - (self._with(1) + self._with(2)) / self.used) if self.things else 0.0

    @property
    def most(self) -> int:
        """The number of things that the fullest slot can be expected to have."""
        mean = self.things / self.slots
        if mean > _CROWDED:
            crowded = mean + quantile(self.slots) * sqrt(mean * (1 - 1 / self.slots))
            return min(self.things, round(crowded))
        count, at_least = 0, 1 - self._with(0) / self.slots
        while count < self.things and at_least * self.slots >= 0.5:
            count += 1
            at_least -= self._with(count) / self.slots
        return max(count, min(self.things, 1))

    def _with(self, count: int) -> float:
        """Return the expected number of slots with exactly `count` things: binomial."""
        if count > self.things:
            return 0.0
        ways = 1.0
        for at in range(count):
            ways *= (self.things - at) / (at + 1) / self.slots
        return self.slots * ways * (1 - 1 / self.slots) ** (self.things - count)


def _mean(parts: Parts) -> float:
    return float(parts.weight.sum()) / len(parts) if len(parts) else 0.0


def _largest(weight: Floats, deviation: Floats) -> float:
    return float((weight + quantile(len(weight)) * deviation).max(initial=0.0))
