"""Which files of a snapshot a plan looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.planner.columns import inventory_schema
from windrow_service.planner.pruning.expressions import Expression, asks_for_values
from windrow_service.planner.pruning.prune import Pruned
from windrow_service.planner.pruning.ranges import prune_manifests
from windrow_service.usecases.snapshots.ports import ManifestEntry, Snapshot


@dataclass(frozen=True, slots=True)
class Scan:
    """The manifests of a snapshot that can match a filter.

    Attributes:
        snapshot: All of it.
        expression: The filter; None keeps every file.
        manifests: Those whose files are wanted.
        pruned: What the others hold.
    """

    snapshot: Snapshot
    expression: Expression | None
    manifests: Sequence[ManifestEntry]
    pruned: Pruned

    @classmethod
    def of(cls, snapshot: Snapshot, expression: Expression | None) -> Scan:
        """Look at the ranges of a snapshot's manifests."""
        kept, pruned = prune_manifests(snapshot.ranges, expression)
        manifests = [snapshot.manifests[at] for at in np.flatnonzero(kept).tolist()]
        return cls(snapshot, expression, manifests, pruned)

    @property
    def asks_for_values(self) -> bool:
        """Whether Bloom filters help the filter."""
        return self.expression is not None and asks_for_values(self.expression)

    def files(self, decoded: Sequence[pa.Table]) -> pa.Table:
        """Return the inventory in `decoded`, the rows of `manifests`."""
        if not decoded:
            schema = inventory_schema(self.snapshot.data_schema, self.snapshot.partition_schema)
            return schema.empty_table()
        return merge_files(decoded, [entry.removed for entry in self.manifests])


def types_of(snapshot: Snapshot) -> dict[str, pa.DataType]:
    """Return the types of a snapshot's columns by name, partition columns last."""
    return {field.name: field.type for field in [*snapshot.data_schema, *snapshot.partition_schema]}
