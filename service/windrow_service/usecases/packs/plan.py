"""Find the files of a table that are worth a pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.packs import KIND_KEY
from windrow_core.files.places import place_of
from windrow_core.models import TableInfo
from windrow_core.models.packs import PackingPlan, PackingRequest, UnpackedFiles
from windrow_core.planning import UnpackedReason
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.reading import read_filter
from windrow_service.planner.caching.cacheable import MarkingRule
from windrow_service.planner.folders import numbered_folders
from windrow_service.planner.packs import IDENTITY
from windrow_service.planner.splits import Bools
from windrow_service.planner.upkeep.packs import PackedFiles, Packing, PackingRules, choose_files
from windrow_service.usecases.packs.coverage import (
    TablePacks,
    UsablePacks,
    definition_digest,
    why_unused,
)
from windrow_service.usecases.packs.errors import (
    InvalidPackingError,
    PacksDisabledError,
    UnpackableTableError,
)
from windrow_service.usecases.packs.ports import PackFolder
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import (
    ManifestReader,
    columns_beside_partitions,
    types_of,
)
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPacking:
    """Choose the files of a table's current snapshot that are worth a pack.

    Attributes:
        snapshots: The store of snapshots.
        manifests: Reads the files.
        packs: Finds the packs that there are.
        folder: Where packs lie; None if there are to be none.
        clock: The time.
        filter_limits: Limits of filters.
    """

    snapshots: SnapshotStore
    manifests: ManifestReader
    packs: TablePacks
    folder: PackFolder | None
    clock: Clock
    filter_limits: FilterLimits

    async def __call__(self, name: str, request: PackingRequest) -> tuple[PackingPlan, pa.Table]:
        """Return figures, and the files: `piece`, `IDENTITY` and `partition` of each.

        Raises:
            PacksDisabledError: No folder for packs is set.
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            UnpackableTableError: No packs are made of tables like this one.
            InvalidFilterError: The filter cannot be read, or names an unknown column.
            InvalidPackingError: The filter names a column that is not a partition column.
            BusyError: Too much is waiting already.
        """
        if self.folder is None:
            raise PacksDisabledError
        table, snapshot = await self.snapshots.get(name, None)
        usable = await self.packs(table, snapshot)
        packing = await self.files_to_pack(table, snapshot, usable, request)
        plan = _plan(table, snapshot, packing, self.folder)
        files = packing.files.select([*IDENTITY, "partition"])
        return plan, files.add_column(0, "piece", pa.array(packing.piece))

    async def files_to_pack(
        self,
        table: StoredTable,
        snapshot: Snapshot,
        usable: UsablePacks | None,
        request: PackingRequest,
    ) -> Packing:
        """Return the files of a table's current snapshot that are worth a pack.

        Args:
            table: The table.
            snapshot: The snapshot.
            usable: The packs that may stand for files of it.
            request: Which files to pack.

        Raises:
            PacksDisabledError: No folder for packs is set.
            UnpackableTableError: No packs are made of tables like this one.
            InvalidFilterError: The filter cannot be read, or names an unknown column.
            InvalidPackingError: The filter names a column that is not a partition column.
            BusyError: Too much is waiting already.
        """
        if self.folder is None:
            raise PacksDisabledError
        require_packable(table.info, snapshot.partition_schema, self.folder)
        packs = None if usable is None else packed_files(usable)
        newest_ns = int((self.clock().timestamp() - request.min_age_seconds) * 1e9)
        rules = PackingRules(
            max_bytes=request.max_file_size, min_files=request.min_files, pieces=request.pieces
        )
        return await self.manifests.scan(
            table.info.name,
            snapshot,
            lambda: None,
            lambda _, files: choose_files(
                files,
                packs,
                rules,
                self._apart(snapshot, files, request, newest_ns),
            ),
            # With layouts.
            excerpts=True,
        )

    def _apart(
        self, snapshot: Snapshot, files: pa.Table, request: PackingRequest, newest_ns: int
    ) -> Mapping[UnpackedReason, Bools]:
        """Return the files that a request leaves alone, by reason."""
        folders = numbered_folders(files)
        folder = np.asarray(folders.indices, np.int64)
        is_exempt = pc.is_in(folders.dictionary, pa.array(request.exempt_folders, pa.string()))
        is_left = np.asarray(is_exempt)[folder]
        if request.filter is not None:
            expression = read_filter(request.filter, types_of(snapshot), self.filter_limits)
            others = columns_beside_partitions(expression, snapshot)
            if others:
                raise InvalidPackingError(
                    f"{', '.join(map(repr, others))} cannot choose what to pack: use partition "
                    f"columns, which are {', '.join(snapshot.partition_schema.names) or 'missing'}"
                )
            is_left |= ~MarkingRule(expression).marks(files)
        last_ns = np.zeros(len(folders.dictionary), np.int64)
        np.maximum.at(last_ns, folder, np.asarray(files["mtime_ns"], np.int64))
        return {"excluded": is_left, "quiet": (last_ns > newest_ns)[folder]}


def packed_files(usable: UsablePacks) -> PackedFiles:
    """Return the packs of a table as planning takes them."""
    kinds = [(one.rows.schema.metadata or {}).get(KIND_KEY) for one in usable.coverage.packs]
    return PackedFiles(usable.coverage, [kind and kind.decode() for kind in kinds])


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
