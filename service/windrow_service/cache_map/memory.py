"""The cache map in this process: the embedded default, for a single replica."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from windrow_core.models import Heartbeat, WorkerInfo
from windrow_service.cache_map.keys import NO_KEYS, changed
from windrow_service.planner.caching.file_keys import Holding
from windrow_service.planner.splits import Hashes
from windrow_service.usecases.caches.errors import (
    CacheFullError,
    TooManyWorkersError,
    WorkerNotFoundError,
)
from windrow_service.usecases.caches.ports import (
    GONE_FOR,
    MAX_CACHED_FILES,
    MAX_GONE,
    MAX_WORKERS,
    CacheReport,
)


@dataclass(slots=True)
class _Worker:
    info: WorkerInfo
    keys: dict[int, Hashes] = field(default_factory=dict)


class MemoryCacheMap:
    """`Heartbeats` and `CacheMap` in dictionaries.

    Args:
        max_files: Most files that one worker may hold.
        max_workers: Most live workers.
    """

    def __init__(
        self, *, max_files: int = MAX_CACHED_FILES, max_workers: int = MAX_WORKERS
    ) -> None:
        self._max_files = max_files
        self._max_workers = max_workers
        self._workers: dict[str, _Worker] = {}
        self._gone: dict[str, WorkerInfo] = {}

    async def beat(self, worker_id: str, heartbeat: Heartbeat, now: datetime) -> WorkerInfo:
        self._forget_silent(now)
        before = self._workers.get(worker_id)
        if before is None and len(self._workers) >= self._max_workers:
            raise TooManyWorkersError(self._max_workers)
        info = WorkerInfo(
            worker_id=worker_id,
            session=before.info.session if before else secrets.token_hex(8),
            expires_at=now + timedelta(seconds=heartbeat.ttl_seconds),
            **heartbeat.model_dump(),
        )
        self._workers[worker_id] = _Worker(info, before.keys if before else {})
        self._gone.pop(worker_id, None)
        return info

    async def live(self, now: datetime) -> Sequence[WorkerInfo]:
        self._forget_silent(now)
        return [self._workers[worker_id].info for worker_id in sorted(self._workers)]

    async def gone(self, now: datetime) -> Sequence[WorkerInfo]:
        self._forget_silent(now)
        return list(self._gone.values())

    async def forget(self, worker_id: str, now: datetime) -> None:
        self._forget_silent(now)
        if self._workers.pop(worker_id, None) is None:
            raise WorkerNotFoundError(worker_id)

    async def report(self, report: CacheReport, now: datetime) -> int:
        self._forget_silent(now)
        worker = self._workers.get(report.worker_id)
        if worker is None or worker.info.session != report.session:
            raise WorkerNotFoundError(report.worker_id)
        before = worker.keys.get(report.table_id, NO_KEYS)
        after = changed(NO_KEYS if report.replace else before, report.added, report.removed)
        total = sum(map(len, worker.keys.values())) - len(before) + len(after)
        if total > self._max_files:
            raise CacheFullError(report.worker_id, total, self._max_files)
        worker.keys[report.table_id] = after
        if not len(after):
            del worker.keys[report.table_id]
        return len(after)

    async def holdings(self, table_id: int, now: datetime) -> Sequence[Holding]:
        return [
            Holding(
                worker.host,
                worker.capacity_bytes,
                self._workers[worker.worker_id].keys.get(table_id, NO_KEYS),
            )
            for worker in await self.live(now)
        ]

    async def ping(self) -> None:
        """Do nothing: this process always answers."""

    def _forget_silent(self, now: datetime) -> None:
        silent = [k for k, w in self._workers.items() if w.info.expires_at <= now]
        self._gone |= {worker_id: self._workers.pop(worker_id).info for worker_id in silent}
        since = now - GONE_FOR
        lately = [one for one in self._gone.values() if one.expires_at > since]
        latest = sorted(lately, key=lambda one: (one.expires_at, one.worker_id), reverse=True)
        self._gone = {one.worker_id: one for one in latest[:MAX_GONE]}
