"""Plan a write: how many files, and how Spark can make exactly those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow_core.models import KeyReport, WritePlan, WritePlanRequest, WriteReport
from windrow_service.planner.writes.errors import NoEstimateError
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.errors import TableNotRefreshedError
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.ports import StoredTable, TableStore
from windrow_service.usecases.writes.drafts import WriteDraft
from windrow_service.usecases.writes.ports import WriteHistory

# Over how many reports the size of a row is averaged.
_POOLED_REPORTS = 20
# How many of the newest reports to search for a write of new rows; compactions rewrite old ones.
_REPORTS_WITH_KEYS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWrite:
    """Plan a write from the request and from the table's files and history."""

    tables: TableStore
    snapshots: SnapshotStore
    manifests: ManifestReader
    history: WriteHistory
    runner: Runner

    async def __call__(self, request: WritePlanRequest) -> WritePlan:
        """Return the plan, which is not stored.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The keys should come from the table's files, and it has no
                snapshot.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            PlannerError: The request contradicts itself or the table, says too little, or asks
                for more files than allowed.
            UnknownTypeError: A column's type is not one of Spark SQL's.
            BusyError: Too much is waiting already.
        """
        table, snapshot = await self._table(request)
        draft = WriteDraft(
            request=request,
            table=table,
            snapshot=snapshot,
            files=await self._files(request, table, snapshot),
            reports=await self._reports(request),
            last_keys=await self._last_keys(request),
        )
        return await self.runner.run(draft.plan)

    async def _table(self, request: WritePlanRequest) -> tuple[StoredTable | None, Snapshot | None]:
        if request.table is None:
            if request.keys_from is not None:
                raise NoEstimateError(
                    f"keys_from {request.keys_from!r} takes the keys of a table: name the table"
                )
            return None, None
        try:
            return await self.snapshots.get(request.table, None)
        except TableNotRefreshedError:
            if request.keys_from == "files":
                raise
            return await self.tables.get(request.table), None

    async def _reports(self, request: WritePlanRequest) -> Sequence[WriteReport]:
        if request.table is None or _is_sized(request):
            return ()
        records = await self.history.reported(request.table, _POOLED_REPORTS)
        return [record.report for record in records if record.report is not None]

    async def _last_keys(self, request: WritePlanRequest) -> KeyReport | None:
        if request.table is None or request.keys_from != "history":
            return None
        records = await self.history.reported(request.table, _REPORTS_WITH_KEYS, keys=True)
        reports = (record.report for record in records if record.kind == "write")
        return next((one.keys for one in reports if one is not None and one.keys is not None), None)

    async def _files(
        self, request: WritePlanRequest, table: StoredTable | None, snapshot: Snapshot | None
    ) -> pa.Table | None:
        """Return the inventory if anything is needed from it."""
        if request.table is None or table is None or snapshot is None:
            return None
        is_divided = bool(len(snapshot.partition_schema)) or table.info.definition.bucket_spec
        needs_count = request.keys is None and request.keys_from is None and is_divided
        if _is_sized(request) and request.keys_from != "files" and not needs_count:
            return None
        return await self.manifests.scan(
            request.table, snapshot, lambda: None, lambda _, files: files
        )


def _is_sized(request: WritePlanRequest) -> bool:
    by_key = request.keys is not None and request.keys.bytes is not None
    return by_key or request.bytes_per_row is not None
