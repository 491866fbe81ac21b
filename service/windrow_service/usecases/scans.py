"""Which files of a snapshot a plan looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_service.inventory.manifests import decode_manifest
from windrow_service.planner.columns import inventory_schema
from windrow_service.planner.expressions import Expression, asks_for_values
from windrow_service.planner.prune import Pruned
from windrow_service.planner.ranges import prune_manifests
from windrow_service.usecases.ports import ManifestEntry, Snapshot


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

    def files(self, bodies: Sequence[bytes]) -> pa.Table:
        """Return the inventory in `bodies`, the encoded rows of `manifests`."""
        bloom = self.expression is not None and asks_for_values(self.expression)
        decoded = [decode_manifest(body, bloom=bloom) for body in bodies]
        schema = inventory_schema(self.snapshot.data_schema, self.snapshot.partition_schema)
        return pa.concat_tables(decoded or [schema.empty_table()])


def types_of(snapshot: Snapshot) -> dict[str, pa.DataType]:
    """Return the types of a snapshot's columns by name, partition columns last."""
    return {field.name: field.type for field in [*snapshot.data_schema, *snapshot.partition_schema]}
