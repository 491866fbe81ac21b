"""The files of tables that the coordinator describes, for scans that it plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_service.engines.clients import misreads_plans
from windrow_service.engines.filters import EngineFilter, read_engine_filter
from windrow_service.engines.metadata import SnapshotRecord, table_uuid
from windrow_service.engines.tasks import TaskFiles, described_files
from windrow_service.engines.vectors import located
from windrow_service.filters.limits import FilterLimits
from windrow_service.planner.pruning.prune import NOTHING, prune
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.engines.errors import UnfitScanError
from windrow_service.usecases.engines.scan_requests import NeededFiles, Run, ScanRequest
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.snapshots.scans import ManifestReader, SnapshotScan, types_of
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable

# Path and length of the file with the deletion vectors of a manifest's files.
_Puffin: TypeAlias = tuple[str, int]
_COLUMNS = ("path", "partition", "row_count", "size_bytes", "delete_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTables:
    """Finds the files of described tables.

    Attributes:
        describe: Describes the snapshots for engines.
        manifests: Reads the snapshots' manifests.
        runner: Prunes files in threads.
        filter_limits: Limits of filters.
    """

    describe: DescribeTable
    manifests: ManifestReader
    runner: Runner
    filter_limits: FilterLimits

    async def open(self, name: str, request: ScanRequest, engine: str) -> DescribedFiles:
        """Return the files of the snapshot that an engine asks for.

        Args:
            name: The table.
            request: What to read.
            engine: How the engine calls itself.

        Raises:
            TableNotFoundError: Another table than asked for has the name.
            UnfitScanError: The engine would fail on the plan.
            InvalidFilterError: The filter is too large, or not one of Iceberg's.

        And what `DescribeTable.snapshot` raises.
        """
        table, snapshot = await self.describe.snapshot(name, request.snapshot_id)
        record = await self.describe.record_of(table, snapshot)
        if request.table_id not in (None, table.table_id):
            raise TableNotFoundError(name)
        if snapshot.info.row_count is None:
            raise UnfitScanError(name, "its log does not say how many rows its files have")
        if misreads_plans(engine, snapshot.partition_schema):
            raise UnfitScanError(
                name, f"{engine} misreads partition values that are no texts or whole numbers"
            )
        predicate = EngineFilter(outcome=True, is_exact=True)
        if request.filter is not None:
            tree: Any = json.loads(request.filter)
            # The engine may know another schema than an older snapshot's: columns are renamed.
            current = table.info.current_snapshot
            is_current = current is not None and current.snapshot_id == snapshot.info.snapshot_id
            types = types_of(snapshot) if is_current or not record.names else {}
            predicate = await self.runner.run(
                lambda: read_engine_filter(tree, types, self.filter_limits)
            )
        puffins = await self._puffins(table, record)
        return DescribedFiles(table, predicate, snapshot, puffins, self.manifests, self.runner)

    async def _puffins(self, table: StoredTable, record: SnapshotRecord) -> dict[int, _Puffin]:
        if not record.vectors:
            return {}
        folder, store = table_uuid(table.info, table.table_id), self.describe.files
        with_vectors = set(record.vectors)

        def find() -> dict[int, _Puffin]:
            puffins = {}
            for position, manifest in enumerate(record.manifests):
                if manifest in with_vectors:
                    name = f"{manifest}.puffin"
                    size = store.size(folder, name)
                    if size is None:
                        raise UnfitScanError(
                            table.info.name, "somebody has removed a file of its deletion vectors"
                        )
                    puffins[position] = store.path(folder, name), size
            return puffins

        return await self.runner.run(find)


@dataclass(frozen=True, slots=True)
class DescribedFiles:
    """`SnapshotFiles` of a table that the coordinator describes.

    Attributes:
        table: The table.
        predicate: The filter.
        snapshot: The snapshot.
        puffins: The files with deletion vectors, by the positions of the manifests.
        manifests: Reads its manifests.
        runner: Prunes files in threads.
    """

    table: StoredTable
    predicate: EngineFilter
    snapshot: Snapshot
    puffins: Mapping[int, _Puffin]
    manifests: ManifestReader
    runner: Runner

    @property
    def snapshot_id(self) -> int:
        """See `SnapshotFiles`."""
        return self.snapshot.info.snapshot_id

    @property
    def file_count(self) -> int:
        """See `SnapshotFiles`."""
        return self.snapshot.info.file_count

    @property
    def size_bytes(self) -> int:
        """See `SnapshotFiles`."""
        return self.snapshot.info.size_bytes

    async def needed(
        self, limit: int | None, runs: Sequence[Run] | None = None
    ) -> Sequence[NeededFiles]:
        """See `SnapshotFiles`; as few manifests as a limit needs."""
        expression = self.predicate.expression
        if runs is not None:
            positions = sorted({run.manifest for run in runs})
            scan = SnapshotScan(self.snapshot, expression, positions, NOTHING)
        elif self.predicate.outcome is False:
            return []
        else:
            scan = await self.runner.run(lambda: SnapshotScan.of(self.snapshot, expression))
        tables = await self.manifests.read(
            self.table.info.name, self.snapshot, scan.manifests, bloom=scan.asks_for_values
        )
        return await self.runner.run(lambda: list(self._parts(scan, tables, limit, runs)))

    def _parts(
        self,
        scan: SnapshotScan,
        tables: Sequence[pa.Table],
        limit: int | None,
        runs: Sequence[Run] | None,
    ) -> Iterator[NeededFiles]:
        row_count = 0
        for position, rows in zip(scan.positions, tables, strict=True):
            one = SnapshotScan(scan.snapshot, scan.expression, [position], NOTHING)
            live, columns = one.files([rows]), list(_COLUMNS)
            if position in self.puffins:
                live = located(live)
                columns.append("vector")
            mine = [run for run in runs or () if run.manifest == position]
            for begin, end in [(run.begin, run.end) for run in mine] if runs else [(0, len(live))]:
                files = live.slice(begin, end - begin)
                pruning = prune(files, scan.expression, limit=limit)
                of_rows = np.arange(begin, end)
                part = NeededFiles.of(
                    files, np.full_like(of_rows, position), of_rows, pruning, columns
                )
                row_count += _sure_rows(part)
                yield part
            if limit is not None and row_count >= limit:
                break

    def task_files(self, part: NeededFiles) -> TaskFiles:
        """See `SnapshotFiles`."""
        location = self.table.info.definition.location
        # A part is of one manifest.
        puffin = self.puffins.get(int(part.manifests[0])) if len(part) else None
        return described_files(part.files, location, puffin)

    def has_null(self, part: NeededFiles) -> bool:
        """See `SnapshotFiles`."""
        return any(values.null_count for values in flat(part.files["partition"]).flatten())


def _sure_rows(part: NeededFiles) -> int:
    """Return how many rows are wanted at least; how many are deleted is not always known."""
    is_whole = np.asarray(part.files["delete_count"]) == 0
    return int(np.asarray(part.files["row_count"])[part.certain & is_whole].sum())
