"""Tables as folders of a file system: where they may be, and what they contain."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from windrow_core.files.acid.write_ids import WriteIds
from windrow_core.files.formats import LOGGED
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits
from windrow_core.files.parent_folders import refuse_part_of_table
from windrow_core.models import RefreshProgress, TableDefinition
from windrow_service.delta.inventory import FIGURED, figures_of, take_change, take_version
from windrow_service.delta.reading import LoggedTable, LogState
from windrow_service.delta.vector_files import framed_vectors
from windrow_service.iceberg.inventory import (
    own_metadata,
    planned_files,
    planned_snapshot,
    take_iceberg,
)
from windrow_service.iceberg.own_tables import OwnMetadata, PlannedManifest, PlannedSnapshot
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.footers.layouts import with_layouts
from windrow_service.inventory.listing.locations import canonical_location, lies_under
from windrow_service.inventory.listing.partition_lists import ListedPartitions, outside
from windrow_service.inventory.listing.transactional import Transactional
from windrow_service.inventory.manifests.changes import FileChange, apply_change, plan_change
from windrow_service.inventory.manifests.encoding import (
    Manifest,
    decode_manifest,
    follows_rules,
)
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.usecases.snapshots.next_snapshot import (
    next_after_delta,
    next_after_inventory,
    previous_inventory,
)
from windrow_service.usecases.snapshots.ports import NextSnapshot, Snapshot
from windrow_service.usecases.tables.columns import schema_of
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

    def take(
        self,
        definition: TableDefinition,
        previous: Snapshot | None,
        previous_bodies: Sequence[bytes],
        listing: bytes | None,
        full: bool,
        on_progress: Callable[[RefreshProgress], None],
        cancelled: threading.Event,
        write_ids: str | None = None,
        partitions: bytes | None = None,
        version: str | None = None,
    ) -> NextSnapshot:
        """See `Inventories.take`."""
        location, topmost = self._located(definition)
        if definition.format in LOGGED and not all(map(follows_rules, previous_bodies)):
            # What is carried over from a log was read under other rules. Of other formats, only
            # the files concerned are read again.
            full = True
        if definition.format == "delta":
            table = LoggedTable(
                location=location,
                roots=tuple(self._prefixes()),
                time_zone=definition.format_options.get("timeZone"),
                max_fields=self._limits.fields,
            )
            meter = ProgressMeter(on_progress, cancelled)
            state = None if full or version is not None else listing
            return _next_of_delta(table, previous, previous_bodies, state, version, meter)
        refuse_part_of_table(location, topmost)
        tables = [decode_manifest(body) for body in previous_bodies]
        if definition.format == "iceberg":
            before = previous_inventory(previous, tables) if previous is not None else None
            of_iceberg = take_iceberg(
                location,
                options=definition.format_options,
                roots=tuple(self._prefixes()),
                max_fields=self._limits.fields,
                version=version,
                previous=replace(before, folders=listing, full=full) if before else None,
                on_progress=on_progress,
                cancelled=cancelled,
            )
            meter = ProgressMeter(None, cancelled)
            return next_after_inventory(of_iceberg, previous, tables, meter.check_cancelled)
        inventory = take_inventory(
            location,
            columns=schema_of(definition.columns),
            partition_types=schema_of(definition.partition_columns),
            bucket_count=definition.bucket_spec.count if definition.bucket_spec else None,
            table_format=definition.format,
            format_options=definition.format_options,
            previous=replace(previous_inventory(previous, tables), folders=listing, full=full)
            if previous
            else None,
            on_progress=on_progress,
            cancelled=cancelled,
            bloom=definition.bloom_columns,
            transactional=_transactional(definition, write_ids),
            limits=self._limits,
            partition_list=self._partition_list(partitions),
            trusts_folders=definition.trust_folder_times,
        )
        return next_after_inventory(
            inventory, previous, tables, ProgressMeter(None, cancelled).check_cancelled, write_ids
        )

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


def _next_of_delta(
    table: LoggedTable,
    previous: Snapshot | None,
    bodies: Sequence[bytes],
    listing: bytes | None,
    version: str | None,
    meter: ProgressMeter,
) -> NextSnapshot:
    """Return the next snapshot of a Delta table: a delta to the previous one where possible."""
    state = LogState.of(listing) if previous is not None else None
    read = take_change(table, state, meter) if state is not None else None
    if previous is None or read is None:
        tables = [decode_manifest(body) for body in bodies]
        before = previous_inventory(previous, tables) if previous is not None else None
        inventory = take_version(table, version, before, meter)
        return next_after_inventory(inventory, previous, tables, meter.check_cancelled)
    by_id = {
        manifest.manifest_id: body
        for manifest, body in zip(previous.manifests, bodies, strict=True)
    }

    def decode(manifest: Manifest, columns: Sequence[str] | None) -> pa.Table:
        body = manifest.data or by_id[manifest.manifest_id]
        return decode_manifest(body, columns=columns)

    change = FileChange(
        added=read.files,
        removed=pa.table({"path": read.removed, "row": pa.array(range(len(read.removed)))}),
    )
    plan = plan_change(previous.manifests, change)
    # A commit may remove files that an earlier commit of the same change added.
    next_state = apply_change(previous.manifests, change, plan, decode, may_miss=True)
    parts = [read.files.select(FIGURED).slice(0, 0)]
    for manifest in next_state.manifests:
        rows = decode(manifest, FIGURED)
        stays = np.ones(len(rows), np.bool_)
        stays[manifest.removed] = False
        parts.append(rows.filter(pa.array(stays)))
    files = pa.concat_tables(parts)
    return replace(
        next_after_delta(previous, next_state, previous.bloom_columns),
        listing=read.state.encoded(),
        table_version=str(read.state.version),
        log=figures_of(files, read),
    )


def _transactional(definition: TableDefinition, write_ids: str | None) -> Transactional | None:
    if definition.transactional is None:
        return None
    ids = WriteIds.parse(write_ids) if write_ids is not None else None
    return Transactional(kind=definition.transactional, ids=ids)
