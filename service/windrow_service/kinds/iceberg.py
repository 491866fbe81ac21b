"""Inventories of Iceberg tables, from their metadata."""

from __future__ import annotations

from dataclasses import replace

from windrow_core.files.parent_folders import refuse_part_of_table
from windrow_service.iceberg.inventory import take_iceberg as take_snapshot
from windrow_service.inventory.manifests.encoding import decode_manifest
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.kinds.logged import must_read_all
from windrow_service.kinds.surroundings import Surroundings
from windrow_service.usecases.snapshots.next_snapshot import (
    next_after_inventory,
    previous_inventory,
)
from windrow_service.usecases.snapshots.ports import InventoryRequest, NextSnapshot


def take_iceberg(request: InventoryRequest, around: Surroundings) -> NextSnapshot:
    """Read the manifests of a snapshot that the previous one does not have."""
    refuse_part_of_table(around.location, around.topmost)
    tables = [decode_manifest(body) for body in request.previous_bodies]
    before = None
    if request.previous is not None:
        before = replace(
            previous_inventory(request.previous, tables),
            folders=request.listing,
            full=must_read_all(request),
        )
    inventory = take_snapshot(
        around.location,
        options=request.definition.format_options,
        roots=around.roots,
        max_fields=around.limits.fields,
        version=request.version,
        previous=before,
        on_progress=request.on_progress,
        cancelled=request.cancelled,
    )
    check = ProgressMeter(None, request.cancelled).check_cancelled
    return next_after_inventory(inventory, request.previous, tables, check)
