"""Plan scans for engines that leave planning to the server, as Iceberg's REST protocol has it.

Nothing is kept between requests: a plan, and each of its tasks, says itself what it is.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow_core.models import PastPlan, PlanSummary
from windrow_service.engines.clients import misreads_nulls
from windrow_service.engines.filters import EngineFilter
from windrow_service.engines.tasks import ScanTasks
from windrow_service.filters.tree import to_tree
from windrow_service.usecases.engines.described_files import DescribedTables
from windrow_service.usecases.engines.errors import UnfitScanError
from windrow_service.usecases.engines.own_files import OwnTables
from windrow_service.usecases.engines.ports import PlanLog
from windrow_service.usecases.engines.scan_requests import (
    NeededFiles,
    PlannedScan,
    ScanPage,
    ScanRequest,
    SnapshotFiles,
    pages_of,
)
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.tables.ports import TableStore

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanScan:
    """Plans scans.

    Attributes:
        tables: The store of tables.
        descriptions: Finds the files of tables that the coordinator describes.
        own: Finds those of Iceberg tables.
        runner: Makes tasks in threads.
        log: The history of plans.
        clock: The time.
        max_files: Most files in an answer.
    """

    tables: TableStore
    descriptions: DescribedTables
    own: OwnTables
    runner: Runner
    log: PlanLog
    clock: Clock
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
            UnfitScanError: The filter is too long, or the engine would fail on the plan.

        And what `DescribedTables.open` or `OwnTables.open` raises.
        """
        created_at, since = self.clock(), time.perf_counter()
        files = await self._files(name, request, engine)
        predicate = files.predicate
        request = ScanRequest(
            files.table.table_id, files.snapshot_id, request.filter, request.limit
        )
        parts = await files.needed(request.limit if predicate.is_exact else None)

        def work() -> tuple[PlannedScan, Counter[str]]:
            _require_readable(name, engine, files, parts)
            figures, most = _figures(files, parts), self._most(request)
            if sum(int(part.weights.sum()) for part in parts) > most:
                pages = [ScanPage(request, runs) for runs in pages_of(parts, most)]
                return PlannedScan(request, ScanTasks(), pages), figures
            return PlannedScan(request, _tasks(files, request, parts), ()), figures

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
                summary=_summary(figures, seconds),
            )
        )
        return plan

    async def page(self, name: str, page: ScanPage, engine: str) -> ScanTasks:
        """Return the tasks of a page; those of the same page are always the same."""
        files = await self._files(name, page.request, engine)
        parts = await files.needed(None, page.runs)

        def work() -> ScanTasks:
            _require_readable(name, engine, files, parts)
            return _tasks(files, page.request, parts)

        return await self.runner.run(work)

    async def _files(self, name: str, request: ScanRequest, engine: str) -> SnapshotFiles:
        if request.filter is not None and len(request.filter) > _MAX_FILTER_CHARACTERS:
            raise UnfitScanError(
                name, f"the filter has more than {_MAX_FILTER_CHARACTERS:,} characters"
            )
        table = await self.tables.get(name)
        if table.info.definition.kind.has_iceberg_metadata:
            return await self.own.open(table, request, engine)
        return await self.descriptions.open(name, request, engine)

    def _most(self, request: ScanRequest) -> int:
        """Return how many files an answer may have."""
        return max(
            1, min(self.max_files, _MAX_ANSWER_CHARACTERS // (len(request.filter or "") + 2_000))
        )


def _tasks(files: SnapshotFiles, request: ScanRequest, parts: Sequence[NeededFiles]) -> ScanTasks:
    tasks = ScanTasks()
    for part in parts:
        certain = part.certain if files.predicate.is_exact else np.zeros(len(part), np.bool_)
        tasks.add(files.task_files(part), certain, request.filter)
    return tasks


def _require_readable(
    name: str, engine: str, files: SnapshotFiles, parts: Sequence[NeededFiles]
) -> None:
    if misreads_nulls(engine) and any(map(files.has_null, parts)):
        raise UnfitScanError(name, f"{engine} fails on partition values that are null")


def _figures(files: SnapshotFiles, parts: Sequence[NeededFiles]) -> Counter[str]:
    figures = Counter(dict.fromkeys(_FIGURES, 0))
    for part in parts:
        figures.update(part.counts)
        figures["files_planned"] += len(part)
        for name in ("row_count", "size_bytes"):
            figures[name] += int(np.asarray(part.files[name]).sum())
    # Manifests that were not looked at have the others.
    for what, total in (("files", files.file_count), ("bytes", files.size_bytes)):
        looked_at = figures.pop(f"{what}_total", 0)
        figures[f"{what}_pruned_by_manifest"] = (looked_at if total is None else total) - looked_at
        if what == "files":
            figures["files_total"] = looked_at if total is None else total
    return figures


def _shown(predicate: EngineFilter) -> str | None:
    """Return the files' filter, as Windrow's own plans have it in the history."""
    if predicate.expression is None:
        return None
    text = json.dumps(to_tree(predicate.expression))
    return text if len(text) <= _MAX_SHOWN_FILTER else f"{text[:_MAX_SHOWN_FILTER]}…"


def _summary(figures: Counter[str], seconds: float) -> PlanSummary:
    fields: dict[str, Any] = dict(figures)
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
