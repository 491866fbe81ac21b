"""What callers see of planning by name: packing strategies, phases of a plan, reasons against packs."""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

# Each is a module of `windrow_service.planner.packing.strategies`.
StrategyName: TypeAlias = Literal["balanced", "openlookeng", "spark", "iceberg", "tez"]

# Why the rows of a planned file are not read from a pack.
AloneReason: TypeAlias = Literal["in_no_pack", "cut", "few_wanted"]
# Why a file is left out of packs; in the order in which they are checked.
UnpackedReason: TypeAlias = Literal[
    "packed",
    "excluded",
    "quiet",
    "deletes",
    "no_rows",
    "large",
    "null_partition",
    "unknown_layout",
    "few",
]


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
