"""Tables as folders of a file system: where they may lie, and what is in them."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from windrow.models import Column, RefreshProgress, TableDefinition
from windrow_service.inventory.build import Inventory, PreviousInventory, take_inventory
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.locations import canonical_location, lies_under
from windrow_service.inventory.manifests import PreviousManifest, cut_manifests, decode_manifest
from windrow_service.inventory.progress import InventoryProgress
from windrow_service.inventory.published import accept_inventory, read_published
from windrow_service.inventory.spark_types import arrow_type
from windrow_service.planner.columns import inventory_schema
from windrow_service.planner.ranges import join_ranges
from windrow_service.usecases.errors import LocationNotAllowedError
from windrow_service.usecases.ports import ManifestEntry, Snapshot, TakenInventory

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

# A published inventory may decode to so much; compressed, the body limit holds.
_MAX_PUBLISHED_BYTES = 2 * 2**30


class DirectoryInventories:
    """`Inventories` of folders, local or of an object store or HDFS.

    Args:
        allowed: Folders that tables may be or lie under, as paths or URIs.

    Raises:
        InvalidLocationError: One of them is neither.
    """

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self._allowed = allowed
        self._prefixes()

    def locate(self, definition: TableDefinition) -> str:
        """See `Inventories.locate`; links and `..` of a local path are resolved."""
        location = canonical_location(definition.location)
        if not any(lies_under(location, prefix) for prefix in self._prefixes()):
            raise LocationNotAllowedError(definition.location, self._allowed)
        return location

    def _prefixes(self) -> list[str]:
        # Each time anew, as links may lead elsewhere by now.
        return [
            canonical_location(prefix if _URI.match(prefix) else os.path.abspath(prefix))
            for prefix in self._allowed
        ]

    def take(
        self,
        definition: TableDefinition,
        previous: Snapshot | None,
        previous_bodies: Sequence[bytes],
        listing: bytes | None,
        on_progress: Callable[[RefreshProgress], None],
        cancelled: threading.Event,
    ) -> TakenInventory:
        """See `Inventories.take`."""
        location = self.locate(definition)
        decoded = [decode_manifest(body) for body in previous_bodies]
        taken = take_inventory(
            location,
            columns=_schema(definition.columns),
            partition_types=_schema(definition.partition_columns),
            bucket_count=definition.bucket_spec.count if definition.bucket_spec else None,
            previous=replace(_previous_inventory(previous, decoded), folders=listing)
            if previous
            else None,
            on_progress=lambda progress: on_progress(_wire_progress(progress)),
            cancelled=cancelled,
            bloom=definition.bloom_columns,
        )
        return _taken(taken, previous, decoded)

    def accept(
        self,
        definition: TableDefinition,
        previous: Snapshot | None,
        previous_bodies: Sequence[bytes],
        published: bytes,
    ) -> TakenInventory:
        """See `Inventories.accept`."""
        known = previous.data_schema if previous else _schema(definition.columns)
        if known is None:
            raise InvalidInventoryError(
                "the table's columns are not known: declare them, or refresh the table first"
            )
        decoded = [decode_manifest(body) for body in previous_bodies]
        accepted = accept_inventory(
            read_published(pa.py_buffer(published), _MAX_PUBLISHED_BYTES),
            columns=known,
            partition_types=_schema(definition.partition_columns),
            bucket_count=definition.bucket_spec.count if definition.bucket_spec else None,
            previous=_previous_inventory(previous, decoded) if previous else None,
            bloom=definition.bloom_columns,
        )
        return _taken(accepted, previous, decoded)


def _taken(
    inventory: Inventory, previous: Snapshot | None, decoded: Sequence[pa.Table]
) -> TakenInventory:
    """Cut an inventory into manifests, keeping those of `previous` that did not change."""
    manifests = cut_manifests(
        inventory.files,
        [
            PreviousManifest(
                manifest_id=entry.manifest_id,
                first_path=entry.first_path,
                files=table,
                range=previous.ranges.slice(at, 1),
            )
            for at, (entry, table) in enumerate(zip(previous.manifests, decoded, strict=True))
        ]
        if previous
        else [],
    )
    return TakenInventory(
        data_schema=inventory.data_schema,
        partition_schema=inventory.partition_schema,
        manifests=tuple(
            ManifestEntry(
                manifest_id=manifest.manifest_id,
                first_path=manifest.first_path,
                last_path=manifest.first_path,
                body=manifest.data,
            )
            for manifest in manifests
        ),
        ranges=join_ranges([manifest.range for manifest in manifests]),
        file_count=len(inventory.files),
        row_count=_sum(inventory.files["row_count"]),
        size_bytes=_sum(inventory.files["size_bytes"]),
        files_added=inventory.added_count,
        files_removed=inventory.removed_count,
        listing=inventory.folders,
    )


def _previous_inventory(snapshot: Snapshot, manifests: Sequence[pa.Table]) -> PreviousInventory:
    # A table that has become empty has no manifests, and still its columns.
    schema = inventory_schema(snapshot.data_schema, snapshot.partition_schema)
    return PreviousInventory(
        files=pa.concat_tables(manifests or [schema.empty_table()]),
        data_schema=snapshot.data_schema,
        partition_schema=snapshot.partition_schema,
    )


def _schema(columns: Sequence[Column] | None) -> pa.Schema | None:
    if columns is None:
        return None
    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


def _wire_progress(progress: InventoryProgress) -> RefreshProgress:
    return RefreshProgress(
        phase=progress.phase,
        folders_listed=progress.folders_listed,
        folders_unchanged=progress.folders_unchanged,
        files_found=progress.files_found,
        footers_read=progress.footers_read,
        footers_total=progress.footers_total,
    )


def _sum(column: pa.ChunkedArray) -> int:
    return int(column.to_numpy().sum())
