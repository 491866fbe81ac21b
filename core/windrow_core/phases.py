"""The phases of making a plan, under the names that metrics, traces and summaries show."""

from __future__ import annotations

from enum import Enum


class PlanPhase(Enum):
    """A phase of making a plan, in the order in which they follow one another.

    The value says what the coordinator does in it.
    """

    MANIFESTS = "Waiting for manifests, reading and decoding them"
    PRUNE = "Leaving out files without matching rows"
    CUT = "Cutting files into splits"
    CACHES = "Placing cacheable files at workers"
    PACK = "Packing splits into groups"
    HOSTS = "Choosing the hosts of groups"
    ENCODE = "Encoding the answer"

    @property
    def label(self) -> str:
        """The name in metrics, traces and summaries."""
        return self.name.lower()
