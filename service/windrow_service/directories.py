"""Tables as folders of a file system: where they may be, and what they contain."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from windrow_core.files.limits import USUAL_LIMITS, ReadLimits
from windrow_core.models import TableDefinition
from windrow_service.delta.vector_files import framed_vectors
from windrow_service.iceberg.inventory import (
    own_metadata,
    planned_files,
    planned_snapshot,
)
from windrow_service.iceberg.own_tables import OwnMetadata, PlannedManifest, PlannedSnapshot
from windrow_service.inventory.footers.layouts import with_layouts
from windrow_service.inventory.listing.locations import canonical_location, lies_under
from windrow_service.inventory.listing.partition_lists import ListedPartitions, outside
from windrow_service.kinds.choice import inventories_of
from windrow_service.kinds.surroundings import Surroundings
from windrow_service.usecases.snapshots.ports import InventoryRequest, NextSnapshot
from windrow_service.usecases.tables.errors import LocationNotAllowedError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class DirectoryInventories:
    """`Locations` and `Inventories` of folders, on a local disk, an object store or HDFS.

    Args:
        allowed: Folders that may be tables or contain tables, as paths or URIs.
        limits: What is read of one file.

    Raises:
        InvalidLocationError: An allowed folder is neither a path nor a URI.
    """

    def __init__(self, allowed: tuple[str, ...], limits: ReadLimits = USUAL_LIMITS) -> None:
        self._allowed = allowed
        self._limits = limits
        self._prefixes()

    def locate(self, definition: TableDefinition) -> str:
        """See `Locations.locate`; links and `..` of a local path are resolved."""
        return self._located(definition)[0]

    def allowed(self, locations: Sequence[str]) -> list[str]:
        """See `Locations.allowed`."""
        prefixes = self._prefixes()
        canonical_locations = [canonical_location(location) for location in locations]
        for sent_location, canonical in zip(locations, canonical_locations, strict=True):
            if not any(lies_under(canonical, prefix) for prefix in prefixes):
                raise LocationNotAllowedError(sent_location, self._allowed)
        return canonical_locations

    def _located(self, definition: TableDefinition) -> tuple[str, str]:
        """Return the location, and the topmost folder above it that may be inspected."""
        location = canonical_location(definition.location)
        prefixes = [prefix for prefix in self._prefixes() if lies_under(location, prefix)]
        if not prefixes:
            raise LocationNotAllowedError(definition.location, self._allowed)
        return location, min(prefixes, key=len)

    def _prefixes(self) -> list[str]:
        # Resolved each time, because the target of a link may have changed.
        return [
            canonical_location(prefix if _URI.match(prefix) else os.path.abspath(prefix))
            for prefix in self._allowed
        ]

    def _partition_list(self, partitions: bytes | None) -> ListedPartitions | None:
        if partitions is None:
            return None
        partition_list = ListedPartitions.decoded(partitions)
        # Links are looked for when a folder is listed; here, only the prefixes may have changed.
        prefixes = self._prefixes()
        for folder in outside(partition_list):
            if not any(lies_under(folder, prefix) for prefix in prefixes):
                raise LocationNotAllowedError(folder, self._allowed)
        return partition_list

    def take(self, request: InventoryRequest) -> NextSnapshot:
        """See `Inventories.take`."""
        location, topmost = self._located(request.definition)
        around = Surroundings(
            location=location,
            topmost=topmost,
            roots=tuple(self._prefixes()),
            limits=self._limits,
            partition_list=self._partition_list(request.partitions),
        )
        return inventories_of(request.definition.kind)(request, around)

    def own_metadata(
        self, definition: TableDefinition, properties: Mapping[str, str], *, all_snapshots: bool
    ) -> OwnMetadata:
        """See `TableFiles.own_metadata`."""
        return own_metadata(
            self._located(definition)[0],
            options=definition.format_options,
            roots=tuple(self._prefixes()),
            max_fields=self._limits.fields,
            properties=properties,
            all_snapshots=all_snapshots,
        )

    def planned_snapshot(
        self, definition: TableDefinition, snapshot_id: int | None
    ) -> PlannedSnapshot:
        """See `TableFiles.planned_snapshot`."""
        return planned_snapshot(
            self._located(definition)[0],
            options=definition.format_options,
            roots=tuple(self._prefixes()),
            max_fields=self._limits.fields,
            snapshot_id=snapshot_id,
        )

    def planned_files(
        self, definition: TableDefinition, manifests: Sequence[PlannedManifest]
    ) -> list[pa.Table]:
        """See `TableFiles.planned_files`."""
        location, roots = self._located(definition)[0], tuple(self._prefixes())
        return planned_files(location, roots=roots, manifests=manifests)

    def with_layouts(self, definition: TableDefinition, files: pa.Table) -> pa.Table:
        """See `TableFiles.with_layouts`."""
        return with_layouts(self._located(definition)[0], files, self._limits)

    def vectors(self, definition: TableDefinition, deletes: pa.Array) -> list[bytes]:
        """See `TableFiles.vectors`."""
        return framed_vectors(self._located(definition)[0], deletes)
