"""Inventories of tables that are what their folders hold, of Hive's transactional tables too."""

from __future__ import annotations

from dataclasses import replace

from windrow_core.files.acid.write_ids import WriteIds
from windrow_core.files.parent_folders import refuse_part_of_table
from windrow_core.models import TableDefinition
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.listing.acid_files import Transactional
from windrow_service.inventory.listing.relisting import PLAIN_FOLDERS, Folders
from windrow_service.inventory.look import Look
from windrow_service.inventory.manifests.encoding import decode_manifest
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.kinds.surroundings import Surroundings
from windrow_service.usecases.snapshots.next_snapshot import (
    next_after_inventory,
    previous_inventory,
)
from windrow_service.usecases.snapshots.ports import InventoryRequest, NextSnapshot
from windrow_service.usecases.tables.columns import schema_of


def take_folders(request: InventoryRequest, around: Surroundings) -> NextSnapshot:
    """List the table's folders, and read the footers of files that have changed."""
    definition, previous = request.definition, request.previous
    refuse_part_of_table(around.location, around.topmost)
    tables = [decode_manifest(body) for body in request.previous_bodies]
    before = None
    if previous is not None:
        before = replace(
            previous_inventory(previous, tables), folders=request.listing, full=request.full
        )
    inventory = take_inventory(
        Look(
            location=around.location,
            columns=schema_of(definition.columns),
            partition_types=schema_of(definition.partition_columns),
            bucket_count=definition.bucket_spec.count if definition.bucket_spec else None,
            file_format=definition.kind.files,
            format_options=definition.format_options,
            bloom=definition.bloom_columns,
            folders=_folders(definition, request.write_ids),
            limits=around.limits,
            partition_list=around.partition_list,
            trusts_folders=definition.trust_folder_times,
        ),
        before,
        on_progress=request.on_progress,
        cancelled=request.cancelled,
    )
    check = ProgressMeter(None, request.cancelled).check_cancelled
    return next_after_inventory(inventory, previous, tables, check, request.write_ids)


def _folders(definition: TableDefinition, write_ids: str | None) -> Folders:
    kind = definition.kind
    if not kind.takes_write_ids:
        return PLAIN_FOLDERS
    ids = WriteIds.parse(write_ids) if write_ids is not None else None
    return Transactional(names_rows=kind.reading.names_rows, ids=ids)
