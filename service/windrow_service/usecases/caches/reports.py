"""Accept workers' reports of the files that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow_core.models import CachedFile, CachedFilesCount, CachedFilesReport
from windrow_service.planner.caching.file_keys import file_keys
from windrow_service.planner.splits import Hashes
from windrow_service.usecases.caches.ports import CacheMap, CacheReport
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.tables.ports import TableStore

_SCHEMA = pa.schema([("path", pa.string()), ("size_bytes", pa.int64()), ("mtime_ns", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCachedFiles:
    """Record which files of a table a worker holds, or no longer holds."""

    tables: TableStore
    cache: CacheMap
    runner: Runner
    clock: Clock

    async def __call__(self, worker_id: str, report: CachedFilesReport) -> CachedFilesCount:
        """Return how many files of the table the worker holds now.

        Raises:
            TableNotFoundError: No table has this name.
            WorkerNotFoundError: No such worker is live, or it is in another session.
            CacheFullError: The worker would hold too many files.
            CacheUnavailableError: The cache map does not answer.
            BusyError: Too much is waiting already.
        """
        table = await self.tables.get(report.table)
        added, removed = await self.runner.run(
            lambda: (_keys_of(report.added), _keys_of(report.removed))
        )
        file_count = await self.cache.report(
            CacheReport(
                worker_id=worker_id,
                session=report.session,
                table_id=table.table_id,
                added=added,
                removed=removed,
                replace=report.replace,
            ),
            self.clock(),
        )
        return CachedFilesCount(worker_id=worker_id, table=report.table, file_count=file_count)


def _keys_of(files: Sequence[CachedFile]) -> Hashes:
    columns = [[getattr(file, name) for file in files] for name in _SCHEMA.names]
    return file_keys(pa.table(columns, schema=_SCHEMA))
