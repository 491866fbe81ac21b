"""Takes the inventory of an Iceberg table from its metadata."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from datetime import datetime, timezone
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.formats import SMALL_FILE_BYTES
from windrow_core.files.limits import MAX_FIELDS
from windrow_core.models import LogFigures
from windrow_service.iceberg.errors import IcebergNotInstalledError
from windrow_service.iceberg.own_tables import OwnMetadata, PlannedManifest, PlannedSnapshot
from windrow_service.iceberg.paths import TableFolders
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.inventory.look import Inventory, PreviousInventory
from windrow_service.inventory.progress import OnProgress, ProgressMeter

if TYPE_CHECKING:
    from windrow_service.iceberg.reading import SnapshotFiles


def take_iceberg(
    location: str,
    *,
    options: Mapping[str, str],
    roots: tuple[str, ...] = (),
    max_fields: int = MAX_FIELDS,
    version: str | None = None,
    previous: PreviousInventory | None = None,
    on_progress: OnProgress | None = None,
    cancelled: threading.Event | None = None,
    executor: Executor | None = None,
) -> Inventory:
    """Return the files that an Iceberg table has at one snapshot; no folder is listed.

    Only manifests that were not read for the previous inventory are read, whichever of the two
    snapshots is older, and whatever came between them.

    Args:
        location: Canonical location of the table.
        options: Options of its definition; see `read_table`.
        roots: Other canonical folders and URIs that files may be in.
        max_fields: Most fields that the table may have.
        version: Id of a snapshot, a branch or a tag; by default `ref` of the options, or `main`.
        previous: The inventory to carry over from.
        on_progress: Called with the progress, at a bounded rate.
        cancelled: Set it to stop.
        executor: Where metadata is parsed; by default, in processes that are kept.

    Raises:
        IcebergNotInstalledError: PyIceberg is not installed.
        InventoryError: See `read_table`.
    """
    if find_spec("pyiceberg") is None:
        raise IcebergNotInstalledError
    # Importing them takes half a second, for which tables of other formats need not wait.
    from windrow_service.iceberg.reading import KnownFiles, read_table
    from windrow_service.iceberg.state import SnapshotState

    meter = ProgressMeter(on_progress, cancelled)
    earlier = None
    if previous is not None:
        state = None if previous.full else SnapshotState.of(previous.folders)
        if state is not None and (
            state.version != previous.table_version or len(state.files) != len(previous.files)
        ):
            state = None
        earlier = KnownFiles(files=previous.files, state=state)
    snapshot = read_table(
        TableFolders(location, roots, max_fields),
        options,
        version,
        earlier,
        executor or _executor(),
        meter.check_cancelled,
    )
    meter.enter(files_found=len(snapshot.files))
    added_count, removed_count = _changed(
        snapshot.files, previous.files if previous is not None else None
    )
    return Inventory(
        files=snapshot.files,
        data_schema=snapshot.data_schema,
        partition_schema=snapshot.partition_schema,
        added_count=added_count,
        removed_count=removed_count,
        folder_count=0,
        footers_read=0,
        folders=snapshot.state.encoded() if snapshot.state is not None else None,
        table_version=_version_of(snapshot),
        log=_figures(snapshot),
    )


def own_metadata(
    location: str,
    *,
    options: Mapping[str, str],
    roots: tuple[str, ...],
    max_fields: int,
    properties: Mapping[str, str],
    all_snapshots: bool,
) -> OwnMetadata:
    """Return what readers get of a table's current metadata file.

    Args:
        location: Canonical location of the table.
        options: Options of its definition.
        roots: Other canonical folders and URIs that files may be in.
        max_fields: Most fields that the table may have.
        properties: Properties that replace those for writers.
        all_snapshots: Whether to name all snapshots, not only those of branches and tags.

    Raises:
        IcebergNotInstalledError: PyIceberg is not installed.
        IcebergMetadataError: The metadata cannot be read, or names a file outside the folders.
    """
    if find_spec("pyiceberg") is None:
        raise IcebergNotInstalledError
    from windrow_service.iceberg.own_metadata import own_metadata as passed_on

    folders = TableFolders(location, roots, max_fields)
    return passed_on(folders, options, _executor(), properties, all_snapshots=all_snapshots)


def planned_snapshot(
    location: str,
    *,
    options: Mapping[str, str],
    roots: tuple[str, ...],
    max_fields: int,
    snapshot_id: int | None,
) -> PlannedSnapshot:
    """Return a snapshot that a table's current metadata file names.

    Args:
        location: Canonical location of the table.
        options: Options of its definition.
        roots: Other canonical folders and URIs that files may be in.
        max_fields: Most fields that the table may have.
        snapshot_id: The snapshot; None for the current one.

    Raises:
        IcebergNotInstalledError: PyIceberg is not installed.
        IcebergMetadataError: The metadata cannot be read.
        IcebergVersionError: It names no such snapshot.
    """
    if find_spec("pyiceberg") is None:
        raise IcebergNotInstalledError
    from windrow_service.iceberg import scans

    return scans.planned_snapshot(
        TableFolders(location, roots, max_fields), options, snapshot_id, _executor()
    )


def planned_files(
    location: str, *, roots: tuple[str, ...], manifests: Sequence[PlannedManifest]
) -> list[pa.Table]:
    """Return the files of some manifests of a snapshot, all of data or all of deletes.

    Args:
        location: Canonical location of the table.
        roots: Other canonical folders and URIs that files may be in.
        manifests: The manifests.

    Raises:
        IcebergMetadataError: A manifest cannot be read, or names a file outside the folders.
    """
    from windrow_service.iceberg import scans

    return scans.planned_files(TableFolders(location, roots), manifests, _executor())


@cache
def _executor() -> Executor:
    """Return an executor that is kept: each process takes half a second to import PyIceberg."""
    executor = IsolatedExecutor()
    atexit.register(executor.shutdown)
    return executor


# A forked process has none of the executor's threads.
os.register_at_fork(after_in_child=_executor.cache_clear)


def _version_of(snapshot: SnapshotFiles) -> str | None:
    id_ = snapshot.table.snapshot_id
    return str(id_) if id_ is not None else None


def _changed(files: pa.Table, before: pa.Table | None) -> tuple[int, int]:
    """Return how many files are new, and how many are gone."""
    if before is None:
        return len(files), 0
    same = int(pc.sum(pc.is_in(files["path"], before["path"])).as_py() or 0)
    return len(files) - same, len(before) - same


def _figures(snapshot: SnapshotFiles) -> LogFigures:
    committed_ms = snapshot.table.committed_ms
    sizes = np.asarray(snapshot.files["size_bytes"], np.int64)
    small = sizes < SMALL_FILE_BYTES
    return LogFigures(
        committed_at=datetime.fromtimestamp(committed_ms / 1_000, timezone.utc)
        if committed_ms is not None
        else None,
        versions=snapshot.table.snapshot_count,
        small_files=int(small.sum()),
        small_bytes=int(sizes[small].sum()),
        delete_files=len(snapshot.deletes),
        deleted_rows=_deleted_rows(snapshot.deletes),
    )


def _deleted_rows(deletes: pa.Table) -> int | None:
    # Two position delete files may name the same row; vectors cannot.
    if pc.any(pc.not_equal(deletes["kind"], "vector")).as_py():
        return None
    return int(pc.sum(deletes["row_count"]).as_py() or 0)
