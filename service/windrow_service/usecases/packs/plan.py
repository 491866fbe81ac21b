"""Find the files of a table that are worth a pack."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.places import place_of
from windrow_core.models import TableInfo
from windrow_core.models.packs import PackingPlan, PackingRequest, UnpackedFiles
from windrow_service.planner.packs import IDENTITY, Packing, choose_files
from windrow_service.usecases.packs.coverage import TablePacks, definition_digest, why_unused
from windrow_service.usecases.packs.errors import PacksDisabledError, UnpackableTableError
from windrow_service.usecases.packs.ports import PackFolder
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPacking:
    """Choose the files of a table's current snapshot that are worth a pack.

    Attributes:
        snapshots: The store of snapshots.
        manifests: Reads the files.
        packs: Finds the packs that there are.
        folder: Where packs lie; None if there are to be none.
    """

    snapshots: SnapshotStore
    manifests: ManifestReader
    packs: TablePacks
    folder: PackFolder | None

    async def __call__(self, name: str, request: PackingRequest) -> tuple[PackingPlan, pa.Table]:
        """Return figures, and the files: `piece`, `IDENTITY` and `partition` of each.

        Raises:
            PacksDisabledError: No folder for packs is set.
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            UnpackableTableError: No packs are made of tables like this one.
            BusyError: Too much is waiting already.
        """
        if self.folder is None:
            raise PacksDisabledError
        table, snapshot = await self.snapshots.get(name, None)
        require_packable(table.info, snapshot.partition_schema, self.folder)
        usable = await self.packs(table, snapshot)
        packing = await self.manifests.scan(
            name,
            snapshot,
            lambda: None,
            lambda _, files: choose_files(
                files,
                None if usable is None else usable.coverage,
                request.max_file_size,
                request.min_files,
                request.pieces,
            ),
            # With layouts.
            excerpts=True,
        )
        plan = _plan(table, snapshot, packing, self.folder)
        files = packing.files.select([*IDENTITY, "partition"])
        return plan, files.add_column(0, "piece", pa.array(packing.piece))


def require_packable(table: TableInfo, partition: pa.Schema, folder: PackFolder) -> None:
    """Make sure that packs can be made of a table.

    Raises:
        UnpackableTableError: They cannot.
    """
    reason = _why_unpackable(table, partition, folder)
    if reason is not None:
        raise UnpackableTableError(table.name, reason)


def _why_unpackable(table: TableInfo, partition: pa.Schema, folder: PackFolder) -> str | None:
    definition = table.definition
    location = definition.location
    kind = definition.kind
    if kind.packing is not None:
        return kind.packing
    if not kind.files.is_written:
        return f"it is made of {definition.format} files, and packs are made of Parquet files alone"
    if (obstacle := place_of(location).packing) is not None:
        return obstacle
    reason = why_unused(table)
    if reason is not None:
        return reason
    for field in partition:
        if pt.is_floating(field.type) or pt.is_binary(field.type):
            return (
                f"partition column {field.name!r} is of type {field.type}, whose values engines "
                "write in different ways: register it as a string"
            )
    if f"{folder.path.rstrip('/')}/".startswith(f"{location.rstrip('/')}/"):
        return "the folder of packs is its own, or lies below it: set another one"
    return None


def _plan(
    table: StoredTable, snapshot: Snapshot, packing: Packing, folder: PackFolder
) -> PackingPlan:
    rows = packing.files["row_count"]
    return PackingPlan(
        table=table.info.name,
        registration=table.table_id,
        snapshot_id=snapshot.info.snapshot_id,
        definition=definition_digest(table, snapshot.partition_schema),
        location=table.info.definition.location,
        folder=folder.path,
        home=folder.home_of(table),
        files=len(packing.files),
        size_bytes=packing.size_bytes,
        row_count=int(rows.to_numpy().sum()),
        pieces=int(packing.piece.max(initial=-1)) + 1,
        core_seconds=round(packing.core_seconds, 3),
        saved_seconds=round(packing.saved_seconds, 3),
        left_alone=[
            UnpackedFiles(reason=reason, files=count)
            for reason, count in packing.left_alone.items()
        ],
    )
