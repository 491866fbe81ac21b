"""A budget that refills by the hour, and is carried over for some hours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.keys import Floats

# A budget without hours has no shares; this only keeps them finite.
_LEAST = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What maintenance may still use, in core seconds and in bytes.

    Attributes:
        seconds: Core seconds that are left; negative if a run cost more than predicted.
        size_bytes: Bytes that are left.
        hour_seconds: Core seconds that each hour adds.
        hour_bytes: Bytes that each hour adds.
        carried_hours: The budget never holds more than so many hours add.
    """

    seconds: float
    size_bytes: float
    hour_seconds: float
    hour_bytes: float
    carried_hours: float = 24.0

    @property
    def max_seconds(self) -> float:
        """Most core seconds that it can hold."""
        return self.hour_seconds * self.carried_hours

    @property
    def max_bytes(self) -> float:
        """Most bytes that it can hold."""
        return self.hour_bytes * self.carried_hours

    def refilled(self, hours: float) -> Budget:
        """Return the budget after some hours in which nothing is spent."""
        return replace(
            self,
            seconds=min(self.seconds + hours * self.hour_seconds, self.max_seconds),
            size_bytes=min(self.size_bytes + hours * self.hour_bytes, self.max_bytes),
        )

    def spent(self, seconds: float, size_bytes: float) -> Budget:
        """Return what is left after a run that cost so much."""
        return replace(
            self, seconds=self.seconds - seconds, size_bytes=self.size_bytes - size_bytes
        )

    def share_of(self, seconds: Floats, size_bytes: Ints) -> Floats:
        """Return costs in hours of this budget: of core seconds or of bytes, whichever is more."""
        return np.maximum(_parts(seconds, self.hour_seconds), _parts(size_bytes, self.hour_bytes))


def _parts(amount: Floats | Ints, hour: float) -> Floats:
    return np.asarray(amount / max(hour, _LEAST))
