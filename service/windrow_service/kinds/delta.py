"""Inventories of Delta tables, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from windrow_service.delta.inventory import FIGURED, figures_of, take_change, take_version
from windrow_service.delta.reading import LoggedTable, LogState
from windrow_service.inventory.manifests.changes import FileChange, apply_change, plan_change
from windrow_service.inventory.manifests.encoding import Manifest, decode_manifest
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.kinds.logged import must_read_all
from windrow_service.kinds.surroundings import Surroundings
from windrow_service.usecases.snapshots.next_snapshot import (
    next_after_delta,
    next_after_inventory,
    previous_inventory,
)
from windrow_service.usecases.snapshots.ports import InventoryRequest, NextSnapshot, Snapshot


def take_delta(request: InventoryRequest, around: Surroundings) -> NextSnapshot:
    """Read a version of the log, or what has changed since the previous snapshot."""
    table = LoggedTable(
        location=around.location,
        roots=around.roots,
        time_zone=request.definition.format_options.get("timeZone"),
        max_fields=around.limits.fields,
    )
    meter = ProgressMeter(request.on_progress, request.cancelled)
    starts_anew = must_read_all(request) or request.version is not None
    state = None if starts_anew else request.listing
    return _next(table, request.previous, request.previous_bodies, state, request.version, meter)


def _next(
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
