"""The files that a plan's request names, besides by its filter."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.models import PlanRequest
from windrow_service.usecases.ports import Checkpoint
from windrow_service.usecases.snapshots.added_files import AddedFilesReader
from windrow_service.usecases.snapshots.partitions import PartitionReader
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.snapshots.scans import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChooser:
    """Finds the partitions and the added files that requests name."""

    partitions: PartitionReader
    additions: AddedFilesReader

    async def __call__(
        self, snapshot: Snapshot, request: PlanRequest, check: Checkpoint = lambda: None
    ) -> Choice | None:
        """Return which files of a snapshot a request names; None if it names all.

        Raises:
            InvalidPartitionsError: The snapshot has no such partition.
            SnapshotNotFoundError: A snapshot was dropped.
            BusyError: Too much is being planned already.
        """
        choice: Choice | None = None
        if request.partitions is not None:
            choice = await self.partitions.choose(
                request.table, snapshot, request.partitions, check
            )
        if request.additions is not None:
            choice = await self.additions.choose(
                request.table, snapshot, request.additions, choice, check
            )
        return choice
