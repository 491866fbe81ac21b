"""Find the writes that made a table's files, and advise on better ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.rows import most_rows
from windrow_core.models import Advice, AdviceKind, TableAdvice, WriteOrigin, WriteRecord
from windrow_core.models.packs import PackingRequest
from windrow_core.sizes import SMALL
from windrow_service.planner.folders import FolderBuckets
from windrow_service.planner.splits import Ints
from windrow_service.planner.upkeep.grain import find_grain
from windrow_service.planner.upkeep.origins import (
    NO_TASKS,
    TROUBLES,
    UNKNOWN_ROWS,
    Writes,
    find_writes,
    ideal_files,
)
from windrow_service.planner.upkeep.packs import Packing
from windrow_service.planner.upkeep.value_folders import Homes
from windrow_service.usecases.packs.errors import PacksDisabledError, UnpackableTableError
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.errors import unsupported
from windrow_service.usecases.tables.ports import StoredTable
from windrow_service.usecases.upkeep.advice_texts import (
    Case,
    explained,
    of_fine_partitions,
    of_packs,
    of_several_folders,
)
from windrow_service.usecases.writes.ports import WriteHistory

_MAX_WRITES = 100
_MAX_REPORTS = 1_000
# What a read saves on one core by packs, at least, that are worth a word.
_LEAST_SAVED_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseTable:
    """Look at the names and times of a table's files, and at the reports of its writes."""

    snapshots: SnapshotStore
    manifests: ManifestReader
    history: WriteHistory
    plan_packing: PlanPacking

    async def __call__(self, name: str, target_bytes: int) -> TableAdvice:
        """Return the writes that made the files of the current snapshot, and advice.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            TransactionalTableError: Hive writes and compacts the table.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        table, snapshot = await self.snapshots.get(name, None)
        kind = table.info.definition.kind
        if kind.advising is not None:
            raise unsupported(table.info, "advice", kind.advising)
        reports = await self.history.reported(name, _MAX_REPORTS)
        packing = await self._packing(table, snapshot)
        return await self.manifests.scan(
            name,
            snapshot,
            lambda: None,
            lambda _, files: _Table(
                name,
                snapshot,
                files,
                target_bytes,
                kind.compactor,
                is_listed=table.info.partition_count is not None,
            ).advice(reports, packing),
        )

    async def _packing(self, table: StoredTable, snapshot: Snapshot) -> Packing | None:
        """Return the files that are worth a pack; None if that saves nothing that anybody notices."""
        try:
            usable = await self.plan_packing.packs(table, snapshot)
            packing = await self.plan_packing.files_to_pack(
                table, snapshot, usable, PackingRequest()
            )
        except (PacksDisabledError, UnpackableTableError):
            return None
        return packing if packing.saved_seconds >= _LEAST_SAVED_S else None


class _Table:
    """The files of a table, and the writes that made them."""

    def __init__(
        self,
        name: str,
        snapshot: Snapshot,
        files: pa.Table,
        target_bytes: int,
        engine: str | None,
        *,
        is_listed: bool,
    ) -> None:
        self._name = name
        self._engine = engine
        self._is_listed = is_listed
        self._snapshot = snapshot
        self._files = files
        self._target_bytes = target_bytes
        self._partition = snapshot.partition_schema.names
        self._sizes: Ints = files["size_bytes"].to_numpy()
        self._rows: Ints = most_rows(files)
        self._folders = FolderBuckets.of(files)
        self._writes = find_writes(files, self._folders, target_bytes)

    def advice(self, reports: Sequence[WriteRecord], packing: Packing | None) -> TableAdvice:
        """Return the writes and the advice.

        Args:
            reports: They tell which of Windrow's writes these were.
            packing: Files that are worth a pack; None if none are.
        """
        writes = self._writes
        worst = np.argsort(writes.ideal - writes.files, kind="stable")[:_MAX_WRITES]
        entries = [*self._troubles(), *self._fine_partitions(), *self._several_folders()]
        entries += [] if packing is None else [self._outside_of_packs(packing)]
        return TableAdvice(
            table=self._name,
            snapshot_id=self._snapshot.info.snapshot_id,
            target_file_bytes=self._target_bytes,
            files=len(self._files),
            small_files=int(np.count_nonzero(self._sizes < SMALL * self._target_bytes)),
            size_bytes=int(self._sizes.sum()),
            would_be=self._ideal(np.arange(len(self._files))),
            write_count=len(writes),
            writes=[_origin(writes, at, reports) for at in worst.tolist()],
            advice=sorted(entries, key=lambda one: one.would_be - one.files),
        )

    def _troubles(self) -> list[Advice]:
        advice = []
        for number, trouble in enumerate(TROUBLES):
            of_trouble = np.flatnonzero(self._writes.trouble == number)
            if trouble != "nothing" and len(of_trouble):
                rows = np.flatnonzero(self._writes.trouble[self._writes.of_file] == number)
                case = self._case(of_trouble, rows)
                advice.append(_advice(trouble, case, explained(trouble, case)))
        return advice

    def _fine_partitions(self) -> list[Advice]:
        levels = len(self._partition)
        grain = find_grain(self._files, self._folders, levels, self._target_bytes)
        if grain is None:
            return []
        case = self._case(np.arange(len(self._writes)), grain.file_rows, grain.becomes)
        texts = of_fine_partitions(
            case, partitions=grain.partitions, small=grain.small, levels=grain.levels
        )
        return [_advice("fine_partitions", case, texts)]

    def _several_folders(self) -> list[Advice]:
        # Elsewhere folders are not what tells values.
        if self._engine is not None or self._is_listed or not self._partition:
            return []
        home = Homes.of(self._files, self._snapshot.partition_schema).of_folder
        is_shared = np.bincount(home, minlength=len(home)) > 1
        at = np.flatnonzero(is_shared[home])
        if not len(at):
            return []
        names = self._folders.names.take(pa.array(at[np.argsort(home[at], kind="stable")]))
        problem, remedy = of_several_folders(
            self._name, names.to_pylist(), values=int(np.count_nonzero(is_shared))
        )
        folder = self._folders.folder[self._folders.of_file]
        rows = np.flatnonzero(is_shared[home[folder]])
        sizes, counts = self._sizes[rows], self._rows[rows]
        return [
            Advice(
                kind="several_folders",
                writes=len(np.unique(self._writes.of_file[rows])),
                files=len(rows),
                would_be=ideal_files(sizes, counts, home[folder[rows]], self._target_bytes),
                problem=problem,
                remedy=remedy,
            )
        ]

    def _outside_of_packs(self, packing: Packing) -> Advice:
        """Return advice about files that are in no pack; those that are packed anew do not count."""
        new = packing.files["path"].filter(pa.array(packing.is_new))
        rows = np.flatnonzero(np.asarray(pc.is_in(self._files["path"], new.combine_chunks())))
        problem, remedy = of_packs(
            self._name,
            files=len(rows),
            partitions=len(np.unique(self._folders.of_file[rows])),
            saved_seconds=packing.saved_seconds,
            cost_seconds=packing.core_seconds,
        )
        return Advice(
            kind="packs",
            writes=len(np.unique(self._writes.of_file[rows])),
            files=len(rows),
            would_be=int(packing.piece.max()) + 1,
            problem=problem,
            remedy=remedy,
        )

    def _case(self, of: Ints, rows: Ints, would_be: int | None = None) -> Case:
        writes = self._writes
        worst = int(of[np.argmax((writes.files - writes.ideal)[of])])
        tasks = int(writes.tasks[worst])
        return Case(
            table=self._name,
            engine=self._engine,
            partition=self._partition,
            target_bytes=self._target_bytes,
            writes=len(of),
            files=len(rows),
            size_bytes=int(self._sizes[rows].sum()),
            would_be=self._ideal(rows) if would_be is None else would_be,
            partitions=len(np.unique(self._folders.of_file[rows])),
            worst_files=int(writes.files[worst]),
            worst_partitions=int(writes.partitions[worst]),
            worst_bytes=int(writes.size_bytes[worst]),
            worst_largest=int(writes.largest_bytes[worst]),
            worst_tasks=None if tasks == NO_TASKS else tasks,
            worst_ideal=int(writes.ideal[worst]),
        )

    def _ideal(self, rows: Ints) -> int:
        folder = self._folders.of_file[rows]
        return ideal_files(self._sizes[rows], self._rows[rows], folder, self._target_bytes)


def _advice(kind: AdviceKind, case: Case, texts: tuple[str, str]) -> Advice:
    problem, remedy = texts
    return Advice(
        kind=kind,
        writes=case.writes,
        files=case.files,
        would_be=case.would_be,
        problem=problem,
        remedy=remedy,
    )


def _origin(writes: Writes, at: int, reports: Sequence[WriteRecord]) -> WriteOrigin:
    first, last = _moment(writes.first_ns[at]), _moment(writes.last_ns[at])
    report = next(
        (one for one in reports if one.started_at <= first and last <= one.updated_at), None
    )
    tasks = int(writes.tasks[at])
    trouble = TROUBLES[writes.trouble[at]]
    return WriteOrigin(
        job=writes.job[at].as_py(),
        write_id=None if report is None else report.write_id,
        scheme=None if report is None or report.report is None else report.report.scheme,
        first_at=first,
        last_at=last,
        files=int(writes.files[at]),
        small_files=int(writes.small_files[at]),
        partitions=int(writes.partitions[at]),
        tasks=None if tasks == NO_TASKS else tasks,
        size_bytes=int(writes.size_bytes[at]),
        rows=int(writes.rows[at]) if writes.rows[at] != UNKNOWN_ROWS else None,
        largest_file_bytes=int(writes.largest_bytes[at]),
        would_be=int(writes.ideal[at]),
        trouble=None if trouble == "nothing" else trouble,
    )


def _moment(time_ns: int) -> datetime:
    return datetime.fromtimestamp(time_ns / 1e9, timezone.utc)
