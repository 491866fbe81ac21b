"""Find when files came into the partitions of a table, and which came late."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.planner.upkeep.arrivals import ArrivalLimits, Arrivals, find_arrivals
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.writes.ports import NEWEST, WriteStore

# Compactions whose files are not late.
_REWRITES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FindArrivals:
    """Count the files of each partition by the day on which they came."""

    snapshots: SnapshotStore
    manifests: ManifestReader
    history: WriteStore

    async def __call__(self, name: str, limits: ArrivalLimits) -> Arrivals:
        """Return the arrivals of the latest days, counted in the thread that reads the inventory.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        _, snapshot = await self.snapshots.get(name, None)
        writes = await self.history.page(name, NEWEST, _REWRITES, open_only=False)
        rewrites = [
            (int(one.started_at.timestamp() * 10**9), int(one.updated_at.timestamp() * 10**9))
            for one in (each.info for each in writes)
            if one.kind == "compaction"
        ]
        return await self.manifests.scan(
            name, snapshot, lambda: None, lambda _, files: find_arrivals(files, limits, rewrites)
        )
