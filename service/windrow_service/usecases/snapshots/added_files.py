"""Files that a snapshot has and an older one lacks, in an order that never changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow_core.models import AddedFiles, AddedFilesInfo
from windrow_service.planner.pruning.bounds import Bools
from windrow_service.planner.pruning.partitions import IN_PARTITIONS
from windrow_service.usecases.ports import Checkpoint, Runner
from windrow_service.usecases.snapshots.differences import Difference, DifferenceReader
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import Choice


@dataclass(frozen=True, slots=True)
class AddedChoice:
    """Some added files: a `Choice` of scans.

    Attributes:
        rows: The rows of these files in each manifest that has some, by its position.
        manifest_count: Number of the snapshot's manifests.
        further: What files must satisfy besides; None is nothing.
    """

    rows: dict[int, npt.NDArray[np.int64]]
    manifest_count: int
    further: Choice | None

    def manifests(self) -> Bools:
        """See `Choice.manifests`."""
        flags = np.zeros(self.manifest_count, np.bool_)
        flags[list(self.rows)] = True
        return flags if self.further is None else flags & self.further.manifests()

    def marked(self, at: int, files: pa.Table) -> pa.Table:
        """See `Choice.marked`."""
        flags = np.zeros(len(files), np.bool_)
        flags[self.rows[at]] = True
        if self.further is not None:
            files = self.further.marked(at, files)
            flags &= files[IN_PARTITIONS].to_numpy()
            files = files.drop_columns([IN_PARTITIONS])
        return files.append_column(IN_PARTITIONS, pa.array(flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFilesReader:
    """Counts and chooses files that snapshots add."""

    snapshots: SnapshotStore
    differences: DifferenceReader
    runner: Runner

    async def choose(
        self,
        name: str,
        snapshot: Snapshot,
        files: AddedFiles,
        further: Choice | None,
        check: Checkpoint = lambda: None,
    ) -> AddedChoice:
        """Return the files that a plan asks for.

        Args:
            name: The table.
            snapshot: One of its snapshots.
            files: The files, as a request names them.
            further: What files must satisfy besides; None is nothing.
            check: Called between manifests.

        Raises:
            SnapshotNotFoundError: The older snapshot no longer exists.
            BusyError: Too much is waiting already.
        """
        difference = await self._difference(name, snapshot, files.since, check)
        rows = await self.runner.run(lambda: difference.rows(files.first, files.end))
        return AddedChoice(rows, len(snapshot.manifests), further)

    async def __call__(
        self,
        name: str,
        snapshot_id: int,
        since: int,
        first: int,
        max_files: int | None,
        max_bytes: int | None,
    ) -> AddedFilesInfo:
        """Return how many files were added, and how many of them fit within limits.

        Args:
            name: The table.
            snapshot_id: The newer snapshot.
            since: The older one; 0 for the empty table before the first one.
            first: Position of the first file to count.
            max_files: Most files; None is no limit.
            max_bytes: Most bytes; a single file may have more.

        Raises:
            TableNotFoundError: No table has this name.
            SnapshotNotFoundError: One of the snapshots does not exist.
            BusyError: Too much is waiting already.
        """
        _, snapshot = await self.snapshots.get(name, snapshot_id)
        difference = await self._difference(name, snapshot, since)
        end = difference.end_within(first, max_files, max_bytes)
        return AddedFilesInfo(
            snapshot_id=snapshot_id,
            since=since,
            file_count=len(difference),
            removed_file_count=difference.removal_count,
            end=max(end, first),
            size_bytes=difference.bytes_until(end) - difference.bytes_until(first),
        )

    async def _difference(
        self, name: str, snapshot: Snapshot, since: int, check: Checkpoint = lambda: None
    ) -> Difference:
        older = (await self.snapshots.get(name, since))[1] if since else None
        return await self.differences(name, snapshot, older, check)
