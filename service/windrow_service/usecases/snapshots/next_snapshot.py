"""Make the next snapshot, from a whole inventory or from a delta to the previous snapshot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_core.files.rows import bloom_columns, inventory_schema
from windrow_core.sizes import WELL_SIZED_BYTES
from windrow_service.inventory.look import Inventory, PreviousInventory
from windrow_service.inventory.manifests.changes import Applied, replace_files
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.inventory.manifests.fewest import fewest_files
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.inventory.manifests.totals import (
    check_files,
    check_totals,
    rows_in,
    size_counts,
)
from windrow_service.planner.pruning.ranges import join_ranges
from windrow_service.planner.splits import Ints
from windrow_service.usecases.snapshots.ports import NextSnapshot, Snapshot


def previous_inventory(snapshot: Snapshot, tables: Sequence[pa.Table]) -> PreviousInventory:
    """Return the files of a snapshot."""
    # A table that has become empty has no manifests but keeps its columns.
    schema = inventory_schema(snapshot.data_schema, snapshot.partition_schema)
    removals = [manifest.removed for manifest in snapshot.manifests]
    return PreviousInventory(
        files=merge_files(tables, removals) if tables else schema.empty_table(),
        data_schema=snapshot.data_schema,
        partition_schema=snapshot.partition_schema,
        made_at_ns=int(snapshot.info.created_at.timestamp() * 10**9),
        table_version=snapshot.info.table_version,
    )


def next_after_inventory(
    inventory: Inventory,
    previous: Snapshot | None,
    tables: Sequence[pa.Table],
    check: Callable[[], None] = lambda: None,
    write_ids: str | None = None,
) -> NextSnapshot:
    """Return the next snapshot of a table, given its whole inventory."""
    check_files(inventory.files)
    manifests = replace_files(
        () if previous is None else previous.manifests, tables, inventory.files, check=check
    )
    return NextSnapshot(
        **_contents(
            manifests,
            rows_in(inventory.files),
            size_counts(inventory.files["size_bytes"]),
            fewest_files(inventory.files),
        ),
        data_schema=inventory.data_schema,
        partition_schema=inventory.partition_schema,
        bloom_columns=tuple(bloom_columns(inventory.files.schema)),
        files_added=inventory.added_count,
        files_removed=inventory.removed_count,
        listing=inventory.folders,
        delete_files=inventory.delete_files,
        valid_write_ids=write_ids,
        table_version=inventory.table_version,
        log=inventory.log,
    )


def next_after_delta(previous: Snapshot, result: Applied, bloom: Sequence[str]) -> NextSnapshot:
    """Return the next snapshot of a table, given a delta."""
    row_count = _added(previous.info.row_count, result.rows_gained)
    sizes = _sizes_after(previous.info.file_sizes, result.sizes_gained)
    return NextSnapshot(
        **_contents(
            result.manifests,
            row_count,
            sizes,
            _added(previous.info.fewest_files, result.fewest_gained),
        ),
        data_schema=previous.data_schema,
        partition_schema=previous.partition_schema,
        bloom_columns=tuple(bloom),
        files_added=result.files_added,
        files_removed=result.files_removed,
    )


def _added(count: int | None, more: int | None) -> int | None:
    return None if count is None or more is None else count + more


def _sizes_after(before: Sequence[int] | None, more: Ints) -> Ints | None:
    # Snapshots made by earlier versions of Windrow do not record sizes.
    if before is None:
        return None
    after: Ints = more.copy()
    # Without a type, NumPy would make floats of an empty list.
    after[: len(before)] += np.asarray(before, np.int64)
    return after


def _contents(
    manifests: Sequence[Manifest],
    row_count: int | None,
    sizes: Ints | None,
    fewest: int | None,
) -> dict[str, Any]:
    """Return the fields of a snapshot that its manifests decide."""
    ranges = join_ranges([manifest.range for manifest in manifests])
    size_bytes = int(ranges["size_bytes"].to_numpy().sum())
    check_totals(size_bytes, row_count or 0)
    file_count = int(ranges["file_count"].to_numpy().sum())
    return {
        "manifests": tuple(manifests),
        "ranges": ranges,
        "file_count": file_count,
        "row_count": row_count,
        "size_bytes": size_bytes,
        "file_sizes": None if sizes is None else tuple(np.trim_zeros(sizes, "b").tolist()),
        # Folders may have lost their files, and others may have grown.
        "fewest_files": None
        if fewest is None
        else min(max(fewest, math.ceil(size_bytes / WELL_SIZED_BYTES)), file_count),
    }
