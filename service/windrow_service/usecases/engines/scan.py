"""Plan scans for engines that leave planning to the server, as Iceberg's REST protocol has it.

Nothing is kept between requests: a plan, and each of its tasks, says itself what it is.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_core.models import PastPlan, PlanSummary
from windrow_service.engines.clients import misreads_nulls, misreads_plans
from windrow_service.engines.filters import EngineFilter, read_engine_filter
from windrow_service.engines.metadata import SnapshotRecord, table_uuid
from windrow_service.engines.tasks import ScanTasks, described_files
from windrow_service.engines.vectors import located
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.tree import to_tree
from windrow_service.planner.pruning.bounds import Bools, Ints
from windrow_service.planner.pruning.prune import NOTHING, prune
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.engines.errors import UnfitScanError
from windrow_service.usecases.engines.ports import PlanLog
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.snapshots.scans import ManifestReader, SnapshotScan, types_of
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable

# Each task repeats the filter.
_MAX_FILTER_CHARACTERS = 2**16
_MAX_ANSWER_CHARACTERS = 2**26
_MAX_SHOWN_FILTER = 2_000
_MAX_ENGINE = 200
_FIGURES = (
    "files_planned",
    "files_pruned_by_partition",
    "files_pruned_by_statistics",
    "row_count",
    "size_bytes",
)


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What an engine wants to read.

    Attributes:
        table_id: Number of the table; None for the one that has the name now.
        snapshot_id: The snapshot; None for the current one.
        filter: The rows, as Iceberg's predicate in JSON; None for all.
        limit: How many rows are enough; None for all.
    """

    table_id: int | None
    snapshot_id: int | None
    filter: str | None
    limit: int | None

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps([self.table_id, self.snapshot_id, self.filter, self.limit])

    @classmethod
    def of_text(cls, text: str) -> ScanRequest:
        """Return it from JSON."""
        return cls(*json.loads(text))


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a manifest's rows that the snapshot still has, in the manifest's order.

    Attributes:
        manifest: Position of the manifest in the snapshot.
        begin: The first row.
        end: The row after the last.
    """

    manifest: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class ScanPage:
    """A part of a scan that is planned by a request of its own."""

    request: ScanRequest
    runs: Sequence[Run]

    def to_text(self) -> str:
        """Return it as JSON."""
        runs = [[run.manifest, run.begin, run.end] for run in self.runs]
        return json.dumps([self.request.to_text(), runs])

    @classmethod
    def of_text(cls, text: str) -> ScanPage:
        """Return it from JSON."""
        request, runs = json.loads(text)
        return cls(ScanRequest.of_text(request), [Run(*run) for run in runs])


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A scan.

    Attributes:
        request: What was asked for, with the table's number and its snapshot.
        tasks: A task for each file.
        pages: What to ask for, if the tasks are too many for one answer; then there are none here.
    """

    request: ScanRequest
    tasks: ScanTasks
    pages: Sequence[ScanPage]


# Path and length of the file with the deletion vectors of a manifest's files.
_Puffin: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a scan reads.

    Attributes:
        table: The table.
        snapshot: Its snapshot.
        predicate: The filter.
        puffins: The files with deletion vectors, by the positions of the manifests.
    """

    table: StoredTable
    snapshot: Snapshot
    predicate: EngineFilter
    puffins: Mapping[int, _Puffin]


@dataclass(frozen=True, slots=True)
class _Part:
    """The files of one manifest, or of a run of its rows, that a scan needs."""

    manifest: int
    files: pa.Table
    rows: Ints
    certain: Bools
    counts: Counter[str]
    puffin: _Puffin | None

    @property
    def row_counts(self) -> Ints:
        return np.asarray(self.files["row_count"])[self.rows]

    @property
    def sure_rows(self) -> int:
        """How many rows are wanted at least; how many are deleted is not always known."""
        is_whole = np.asarray(self.files["delete_count"])[self.rows] == 0
        return int(self.row_counts[self.certain & is_whole].sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanScan:
    """Plans scans.

    Attributes:
        describe: Describes the snapshots for engines.
        manifests: Reads the snapshots' manifests.
        runner: Prunes files in threads.
        log: The history of plans.
        clock: The time.
        filter_limits: Limits of filters.
        max_files: Most files in an answer.
    """

    describe: DescribeTable
    manifests: ManifestReader
    runner: Runner
    log: PlanLog
    clock: Clock
    filter_limits: FilterLimits
    max_files: int

    async def __call__(
        self, name: str, request: ScanRequest, principal: str, engine: str
    ) -> PlannedScan:
        """Plan a scan, and record it in the history.

        Args:
            name: The table.
            request: What to read.
            principal: Name of the caller.
            engine: How the engine calls itself.

        Raises:
            TableNotFoundError: No table has this name, or another one than asked for has it.
            UnfitScanError: The engine would fail on the plan.
            InvalidFilterError: The filter is too large, or not one of Iceberg's.

        And what `DescribeTable.snapshot` raises.
        """
        created_at, since = self.clock(), time.perf_counter()
        inputs = await self._inputs(name, request, engine)
        table, snapshot, predicate = inputs.table, inputs.snapshot, inputs.predicate
        request = ScanRequest(
            table.table_id, snapshot.info.snapshot_id, request.filter, request.limit
        )
        scan = await self.runner.run(lambda: SnapshotScan.of(snapshot, predicate.expression))
        if predicate.outcome is False:
            scan = SnapshotScan(snapshot, None, [], NOTHING)
        tables = await self.manifests.read(
            name, snapshot, scan.manifests, bloom=scan.asks_for_values
        )

        def work() -> tuple[PlannedScan, Counter[str]]:
            limit = request.limit if predicate.is_exact else None
            parts = list(_needed(scan, tables, inputs.puffins, limit))
            _require_readable(name, engine, parts)
            figures = Counter(dict.fromkeys(_FIGURES, 0))
            for part in parts:
                figures.update(part.counts)
            most = self._most(request)
            if sum(len(part.rows) for part in parts) > most:
                pages = [ScanPage(request, runs) for runs in _pages(parts, most)]
                return PlannedScan(request, ScanTasks(), pages), figures
            return PlannedScan(request, _tasks(table, request, predicate, parts), ()), figures

        plan, figures = await self.runner.run(work)
        seconds = time.perf_counter() - since
        await self.log.add(
            PastPlan(
                number=0,
                plan_id=secrets.token_hex(16),
                table=name,
                snapshot_id=request.snapshot_id,
                principal=principal,
                engine=engine[:_MAX_ENGINE],
                status="completed",
                created_at=created_at,
                # Nothing is kept of it.
                expires_at=created_at,
                seconds=seconds,
                filter=_shown(predicate),
                limit=request.limit,
                summary=_summary(snapshot, figures, seconds),
            )
        )
        return plan

    async def page(self, name: str, page: ScanPage, engine: str) -> ScanTasks:
        """Return the tasks of a page; those of the same page are always the same."""
        inputs = await self._inputs(name, page.request, engine)
        positions = sorted({run.manifest for run in page.runs})
        scan = SnapshotScan(inputs.snapshot, inputs.predicate.expression, positions, NOTHING)
        tables = await self.manifests.read(
            name, inputs.snapshot, scan.manifests, bloom=scan.asks_for_values
        )

        def work() -> ScanTasks:
            parts = list(_needed(scan, tables, inputs.puffins, None, page.runs))
            _require_readable(name, engine, parts)
            return _tasks(inputs.table, page.request, inputs.predicate, parts)

        return await self.runner.run(work)

    async def _inputs(self, name: str, request: ScanRequest, engine: str) -> _Inputs:
        if request.filter is not None and len(request.filter) > _MAX_FILTER_CHARACTERS:
            raise UnfitScanError(
                name, f"the filter has more than {_MAX_FILTER_CHARACTERS:,} characters"
            )
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
        return _Inputs(table, snapshot, predicate, puffins)

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

    def _most(self, request: ScanRequest) -> int:
        """Return how many files an answer may have."""
        return max(
            1, min(self.max_files, _MAX_ANSWER_CHARACTERS // (len(request.filter or "") + 2_000))
        )


def _needed(
    scan: SnapshotScan,
    tables: Sequence[pa.Table],
    puffins: Mapping[int, _Puffin],
    limit: int | None,
    runs: Sequence[Run] | None = None,
) -> Iterator[_Part]:
    """Yield the needed files of each manifest, or run; as few manifests as a limit needs."""
    row_count = 0
    parts = []
    for position, rows in zip(scan.positions, tables, strict=True):
        one = SnapshotScan(scan.snapshot, scan.expression, [position], NOTHING)
        live, puffin = one.files([rows]), puffins.get(position)
        if puffin is not None:
            live = located(live)
        mine = [run for run in runs or () if run.manifest == position]
        for begin, end in [(run.begin, run.end) for run in mine] if runs else [(0, len(live))]:
            files = live.slice(begin, end - begin)
            pruning = prune(files, scan.expression, limit=limit)
            survivors = np.flatnonzero(pruning.survives)
            counts = Counter(
                {f"files_pruned_by_{step}": by.files for step, by in pruning.pruned.items()}
                | {f"bytes_pruned_by_{step}": by.size_bytes for step, by in pruning.pruned.items()}
            )
            certain = pruning.open[survivors] == 0
            part = _Part(position, files, survivors, certain, counts, puffin)
            counts["files_total"] = len(files)
            counts["files_planned"] = len(survivors)
            counts["row_count"] = int(part.row_counts.sum())
            counts["size_bytes"] = int(np.asarray(files["size_bytes"])[survivors].sum())
            parts.append(part)
            row_count += part.sure_rows
        if limit is not None and row_count >= limit:
            break
    yield from parts


def _pages(parts: Sequence[_Part], most: int) -> Iterator[list[Run]]:
    """Yield runs with at most so many files that a scan needs."""
    runs: list[Run] = []
    room = most
    for part in parts:
        at = 0
        while at < len(part.rows):
            end = min(at + room, len(part.rows))
            runs.append(Run(part.manifest, int(part.rows[at]), int(part.rows[end - 1]) + 1))
            room -= end - at
            at = end
            if not room:
                yield runs
                runs, room = [], most
    if runs:
        yield runs


def _tasks(
    table: StoredTable, request: ScanRequest, predicate: EngineFilter, parts: Sequence[_Part]
) -> ScanTasks:
    tasks = ScanTasks()
    for part in parts:
        certain = part.certain if predicate.is_exact else np.zeros(len(part.rows), np.bool_)
        names = ["path", "partition", "row_count", "size_bytes"]
        files = part.files.select([*names, "vector"] if part.puffin else names)
        location = table.info.definition.location
        some = described_files(files.take(part.rows), location, part.puffin)
        tasks.add(some, certain, request.filter)
    return tasks


def _require_readable(name: str, engine: str, parts: Sequence[_Part]) -> None:
    if misreads_nulls(engine) and any(map(_has_null, parts)):
        raise UnfitScanError(name, f"{engine} fails on partition values that are null")


def _has_null(part: _Part) -> bool:
    partition = flat(part.files["partition"].take(part.rows))
    return any(values.null_count for values in partition.flatten())


def _shown(predicate: EngineFilter) -> str | None:
    """Return the files' filter, as Windrow's own plans have it in the history."""
    if predicate.expression is None:
        return None
    text = json.dumps(to_tree(predicate.expression))
    return text if len(text) <= _MAX_SHOWN_FILTER else f"{text[:_MAX_SHOWN_FILTER]}…"


def _summary(snapshot: Snapshot, figures: Counter[str], seconds: float) -> PlanSummary:
    total = snapshot.info.file_count
    fields: dict[str, Any] = {
        **figures,
        "files_total": total,
        "files_pruned_by_manifest": total - figures["files_total"],
        "bytes_pruned_by_manifest": snapshot.info.size_bytes
        - figures["size_bytes"]
        - sum(count for name, count in figures.items() if name.startswith("bytes_pruned")),
    }
    return PlanSummary(
        **fields,
        # Engines make their own groups.
        strategy="none",
        group_count=0,
        split_count=figures["files_planned"],
        largest_group_bytes=0,
        smallest_group_bytes=0,
        largest_group_splits=0,
        groups_with_hosts=0,
        planning_seconds=round(seconds, 6),
    )
