"""Scans that engines ask for, the files that they need, and the pages of answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from windrow_service.engines.filters import EngineFilter
from windrow_service.engines.tasks import ScanTasks, TaskFiles
from windrow_service.planner.pruning.bounds import Bools, Ints
from windrow_service.planner.pruning.prune import Pruning
from windrow_service.usecases.tables.ports import StoredTable


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


@dataclass(frozen=True, slots=True)
class NeededFiles:
    """Files that a scan needs, those of each manifest one after the other.

    Attributes:
        files: m files, with the columns `row_count`, `size_bytes` and what their tasks need.
        manifests: For each, the position of its manifest in the snapshot.
        rows: For each, its row in the manifest.
        certain: For each, whether the filter wants every row of it.
        delete_counts: For each, how many delete files name rows of it, at most.
        counts: Figures of the scan.
    """

    files: pa.Table
    manifests: Ints
    rows: Ints
    certain: Bools
    delete_counts: Ints
    counts: Counter[str]

    @classmethod
    def of(
        cls,
        files: pa.Table,
        manifests: Ints,
        rows: Ints,
        pruning: Pruning,
        columns: Sequence[str],
    ) -> NeededFiles:
        """Return the files that are left.

        Args:
            files: n files.
            manifests: For each, the position of its manifest in the snapshot.
            rows: For each, its row in the manifest.
            pruning: Which of them are needed.
            columns: The columns that tasks need.
        """
        left = np.flatnonzero(pruning.survives)
        counts = Counter(
            {f"files_pruned_by_{step}": by.files for step, by in pruning.pruned.items()}
            | {f"bytes_pruned_by_{step}": by.size_bytes for step, by in pruning.pruned.items()}
        )
        counts["files_total"] = len(files)
        counts["bytes_total"] = int(np.asarray(files["size_bytes"]).sum())
        return cls(
            files.select(columns).take(left),
            manifests[left],
            rows[left],
            pruning.open[left] == 0,
            np.zeros(len(left), np.int64),
            counts,
        )

    def __len__(self) -> int:
        """Return how many files there are."""
        return len(self.rows)

    @property
    def weights(self) -> Ints:
        """How many plain files take as much room in an answer as each file with its deletes."""
        return 1 + (self.delete_counts + 2) // 3


class SnapshotFiles(Protocol):
    """The files of a snapshot that an engine asks for."""

    @property
    def table(self) -> StoredTable:
        """The table."""

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot; None if the table has none yet."""

    @property
    def predicate(self) -> EngineFilter:
        """The filter."""

    @property
    def file_count(self) -> int | None:
        """How many files the snapshot has; None if all of them are looked at."""

    @property
    def size_bytes(self) -> int | None:
        """Their bytes; None if all of them are looked at."""

    async def needed(
        self, limit: int | None, runs: Sequence[Run] | None = None
    ) -> Sequence[NeededFiles]:
        """Return the files that the filter wants of each manifest, or run.

        Args:
            limit: How many rows are enough; None for all.
            runs: Runs of the manifests' rows; None for all.
        """

    def task_files(self, part: NeededFiles) -> TaskFiles:
        """Return the files of a part as those of tasks."""

    def has_null(self, part: NeededFiles) -> bool:
        """Return whether a file of a part has null among its partition values."""


def pages_of(parts: Sequence[NeededFiles], most: int) -> Iterator[list[Run]]:
    """Yield runs with at most so many files; fewer if other files name their deleted rows.

    Args:
        parts: The files that a scan needs.
        most: Most files.
    """
    manifests, rows = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("manifests", "rows")
    )
    ends = np.cumsum(np.concatenate([part.weights for part in parts]))
    begin = 0
    while begin < len(rows):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + most, "right")))
        borders = begin + 1 + np.flatnonzero(np.diff(manifests[begin:end]))
        starts = [begin, *borders.tolist()]
        yield [
            Run(int(manifests[first]), int(rows[first]), int(rows[after - 1]) + 1)
            for first, after in zip(starts, [*starts[1:], end], strict=True)
        ]
        begin = end
