"""The files of registered Iceberg tables, from their own metadata, for scans that are planned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_core.files.errors import InventoryError
from windrow_service.engines.clients import misreads_plans
from windrow_service.engines.filters import EngineFilter, read_engine_filter
from windrow_service.engines.tasks import TaskFiles, has_null_value, own_files
from windrow_service.filters.limits import FilterLimits
from windrow_service.iceberg.buckets import matches
from windrow_service.iceberg.deletes import applying
from windrow_service.iceberg.errors import IcebergVersionError
from windrow_service.iceberg.own_tables import PlannedManifest, PlannedSnapshot
from windrow_service.planner.pruning.partitions import IN_PARTITIONS
from windrow_service.planner.pruning.prune import enough, prune
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.engines.errors import UnfitScanError
from windrow_service.usecases.engines.scan_requests import NeededFiles, Run, ScanRequest
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.errors import SnapshotNotFoundError, TableNotRefreshedError
from windrow_service.usecases.snapshots.scans import DecodedManifests
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable

if TYPE_CHECKING:
    from windrow_service.iceberg.manifests import ManifestTask

# Manifests that are looked at together.
_AT_A_TIME = 64
_COLUMNS = (
    "path",
    "partition_key",
    "row_count",
    "size_bytes",
    "sequence_number",
    "first_row_id",
    "row_group_offsets",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTables:
    """Finds the files of Iceberg tables, in manifests that are read once while they are kept.

    Attributes:
        describe: Knows the tables, and reads what they have themselves.
        decoded: Where the files of manifests are kept.
        runner: Prunes files in threads.
        filter_limits: Limits of filters.
    """

    describe: DescribeTable
    decoded: DecodedManifests
    runner: Runner
    filter_limits: FilterLimits

    async def open(self, table: StoredTable, request: ScanRequest, engine: str) -> OwnFiles:
        """Return the files of the snapshot that an engine asks for, of the newest metadata.

        Args:
            table: The table.
            request: What to read.
            engine: How the engine calls itself.

        Raises:
            TableNotFoundError: Another table than asked for has the name.
            TableNotRefreshedError: The table was never refreshed.
            SnapshotNotFoundError: The metadata does not name the snapshot any more, or never did.
            UnfitTableError: Other engines would read the table wrongly.
            UnfitScanError: The metadata cannot be read, or the engine would fail on the plan.
            InvalidFilterError: The filter is too large, or not one of Iceberg's.
        """
        name, snapshot_id = table.info.name, request.snapshot_id
        if request.table_id not in (None, table.table_id):
            raise TableNotFoundError(name)
        if table.info.current_snapshot is None:
            raise TableNotRefreshedError(name)
        self.describe.require_fit(table)
        find = self.describe.table_files.planned_snapshot

        def look() -> tuple[PlannedSnapshot, EngineFilter]:
            snapshot = find(table.info.definition, snapshot_id)
            predicate = EngineFilter(outcome=True, is_exact=True)
            if request.filter is not None:
                tree = json.loads(request.filter)
                predicate = read_engine_filter(tree, snapshot.types, self.filter_limits)
            return snapshot, predicate

        try:
            snapshot, predicate = await self.describe.runner.run(look)
        except IcebergVersionError as error:
            raise SnapshotNotFoundError(name, snapshot_id or 0) from error
        except InventoryError as error:
            raise UnfitScanError(name, str(error)) from error
        if misreads_plans(engine, snapshot.identities):
            raise UnfitScanError(
                name, f"{engine} misreads partition values that are no texts or whole numbers"
            )
        return OwnFiles(table, predicate, snapshot, self)

    async def files(
        self, table: StoredTable, manifests: Sequence[PlannedManifest]
    ) -> list[pa.Table]:
        """Return the files of some manifests, all of data or all of deletes.

        Raises:
            UnfitScanError: A manifest cannot be read, or names a file outside the allowed folders.
            BusyError: Too much is waiting already.
        """
        at_hand = [self.decoded.get(one.key) for one in manifests]
        if any(files is None for files in at_hand):
            # Callers that want the same manifests wait for those who read them.
            async with self.describe.turns.take(table.info.name):
                at_hand = [self.decoded.get(one.key) for one in manifests]
                missing = [at for at, files in enumerate(at_hand) if files is None]
                read = await self._read(table, [manifests[at] for at in missing])
                for at, files in zip(missing, read, strict=True):
                    at_hand[at] = files
                    self.decoded.keep(manifests[at].key, files)
        return [files for files in at_hand if files is not None]

    async def _read(
        self, table: StoredTable, manifests: Sequence[PlannedManifest]
    ) -> list[pa.Table]:
        if not manifests:
            return []
        read, definition = self.describe.table_files.planned_files, table.info.definition
        try:
            return await self.describe.runner.run(lambda: read(definition, manifests))
        except InventoryError as error:
            raise UnfitScanError(table.info.name, str(error)) from error


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """`SnapshotFiles` of an Iceberg table.

    Attributes:
        table: The table.
        predicate: The filter.
        snapshot: The snapshot.
        tables: Reads its manifests.
    """

    table: StoredTable
    predicate: EngineFilter
    snapshot: PlannedSnapshot
    tables: OwnTables

    @property
    def snapshot_id(self) -> int | None:
        """See `SnapshotFiles`."""
        return self.snapshot.snapshot_id

    @property
    def file_count(self) -> None:
        """See `SnapshotFiles`."""

    @property
    def size_bytes(self) -> None:
        """See `SnapshotFiles`."""

    async def needed(
        self, limit: int | None, runs: Sequence[Run] | None = None
    ) -> Sequence[NeededFiles]:
        """See `SnapshotFiles`."""
        manifests = [one for one in self.snapshot.manifests if not one.holds_deletes]
        positions = (
            range(len(manifests)) if runs is None else sorted({run.manifest for run in runs})
        )
        if any(at >= len(manifests) for at in positions):
            # Somebody has written other metadata for the snapshot.
            raise SnapshotNotFoundError(self.table.info.name, self.snapshot_id or 0)
        if runs is None and self.predicate.outcome is False:
            return []
        parts: list[NeededFiles] = []
        for begin in range(0, len(positions), _AT_A_TIME):
            some = positions[begin : begin + _AT_A_TIME]
            tables = await self.tables.files(self.table, [manifests[at] for at in some])

            def look(some: Sequence[int] = some, tables: Sequence[pa.Table] = tables) -> None:
                by_spec: dict[int, list[_Piece]] = {}
                for piece in _pieces(some, tables, runs):
                    by_spec.setdefault(manifests[piece.manifest].task.spec_id, []).append(piece)
                for pieces in by_spec.values():
                    parts.append(self._left(manifests[pieces[0].manifest].task, pieces))

            await self.tables.runner.run(look)
        deletes = [one for one in self.snapshot.manifests if one.holds_deletes]
        delete_tables = await self.tables.files(self.table, deletes) if parts else []

        def join() -> list[NeededFiles]:
            if not parts:
                return []
            left = _joined(parts)
            if delete_tables:
                left = self._with_deletes(left, pa.concat_tables(delete_tables))
            return [left if limit is None else _limited(left, limit)]

        return await self.tables.runner.run(join)

    def _left(self, task: ManifestTask, pieces: Sequence[_Piece]) -> NeededFiles:
        """Return the files that the filter leaves of manifests of one partition spec."""
        files = pa.concat_tables([piece.files for piece in pieces]).unify_dictionaries()
        manifests = np.repeat([piece.manifest for piece in pieces], list(map(len, pieces)))
        rows = np.concatenate([piece.begin + np.arange(len(piece)) for piece in pieces])
        expression = self.predicate.expression
        if expression is not None:
            keys = flat(files["partition_key"])
            may_match = matches(task, keys.dictionary.to_pylist(), expression)
            if may_match is not None:
                files = files.append_column(IN_PARTITIONS, pa.array(may_match).take(keys.indices))
        return NeededFiles.of(files, manifests, rows, prune(files, expression), _COLUMNS)

    def _with_deletes(self, left: NeededFiles, deletes: pa.Table) -> NeededFiles:
        """Return files with a column of the deletes that apply to each."""
        files = left.files.select(["path", "sequence_number", "partition_key"])
        try:
            file, delete = applying(files, deletes, self.snapshot.path)
        except InventoryError as error:
            raise UnfitScanError(self.table.info.name, str(error)) from error
        counts = np.bincount(file, minlength=len(files)).astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(counts)])
        codes = pa.DictionaryArray.from_arrays(
            pa.array(delete, pa.int32()), flat(deletes.to_struct_array())
        )
        column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), codes)
        return replace(
            left, files=left.files.append_column("deletes", column), delete_counts=counts
        )

    def task_files(self, part: NeededFiles) -> TaskFiles:
        """See `SnapshotFiles`."""
        return own_files(part.files)

    def has_null(self, part: NeededFiles) -> bool:
        """See `SnapshotFiles`."""
        return any(map(has_null_value, flat(part.files["partition_key"]).unique().to_pylist()))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows of a manifest, from one on."""

    manifest: int
    begin: int
    files: pa.Table

    def __len__(self) -> int:
        return len(self.files)


def _pieces(
    manifests: Sequence[int], tables: Sequence[pa.Table], runs: Sequence[Run] | None
) -> Iterator[_Piece]:
    for manifest, files in zip(manifests, tables, strict=True):
        places = [(0, len(files))]
        if runs is not None:
            places = [(run.begin, run.end) for run in runs if run.manifest == manifest]
        for begin, end in places:
            yield _Piece(manifest, begin, files.slice(begin, end - begin))


def _joined(parts: Sequence[NeededFiles]) -> NeededFiles:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    return NeededFiles(
        pa.concat_tables([part.files for part in parts]).unify_dictionaries().combine_chunks(),
        np.concatenate([part.manifests for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.certain for part in parts]),
        np.concatenate([part.delete_counts for part in parts]),
        counts,
    )


def _limited(left: NeededFiles, limit: int) -> NeededFiles:
    """Return as few files as a limit needs, if some are wanted whole and have no deletes."""
    files = left.files.select(["row_count"]).append_column(
        "delete_count", pa.array(left.delete_counts)
    )
    survives = enough(files, left.certain.copy(), limit, np.ones(len(left), np.bool_))
    others = np.asarray(left.files["size_bytes"])[~survives]
    counts = Counter(left.counts)
    counts.update(
        {"files_pruned_by_limit": len(others), "bytes_pruned_by_limit": int(others.sum())}
    )
    return NeededFiles(
        left.files.filter(pa.array(survives)),
        left.manifests[survives],
        left.rows[survives],
        left.certain[survives],
        left.delete_counts[survives],
        counts,
    )
