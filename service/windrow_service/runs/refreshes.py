"""Refreshes in the background: at most one per table on all replicas, visible from each."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from windrow_core.models import RefreshProgress, RefreshRequest, RefreshStatus
from windrow_service.logs import get_logger
from windrow_service.runs.leases import RENEW_S, NamedTasks, renewed
from windrow_service.telemetry.meters import UNMEASURED, Meters
from windrow_service.usecases.errors import (
    NotFoundError,
    OutcomeUnknownError,
    StoreUnavailableError,
)
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.snapshots.errors import (
    RefreshAbandonedError,
    RefreshCancelledError,
    RefreshFailedError,
)
from windrow_service.usecases.snapshots.ports import RefreshRecord, RefreshStore
from windrow_service.usecases.snapshots.refresh import Refreshed, RefreshTable

# A runner silent for LEASE is presumed dead.
LEASE = timedelta(seconds=5)
_POLL_S, _MAX_POLL_S = 0.2, 1.0
# How long callers wait for a database that is away, in order to learn how a refresh ended.
_PATIENCE_S = 30.0
_STOP_S = 10.0
_UNFORESEEN = 500
_ANYTHING = RefreshRequest()
_log = get_logger(__name__)

# How a refresh ended; None if that is unknown, and the refresh has to be done again.
Ended = RefreshStatus | None


@dataclass(slots=True, kw_only=True)
class _Run:
    """A refresh that runs here.

    Attributes:
        status: Status at its start.
        progress: Progress so far; written by the thread that reads the files.
        stop: Set to stop it early.
        reason: Why it was stopped; None if it was not.
    """

    table_id: int
    full: bool
    status: RefreshStatus
    progress: RefreshProgress
    stop: threading.Event = field(default_factory=threading.Event)
    reason: Literal["cancelled", "lost", "closing"] | None = None

    def follow(self, progress: RefreshProgress) -> None:
        self.progress = progress

    def end(self, reason: Literal["cancelled", "lost", "closing"]) -> None:
        self.reason = self.reason or reason
        self.stop.set()


class Refreshes:
    """The refreshes that run here, and those on other replicas that callers here wait for."""

    def __init__(
        self,
        refresh: RefreshTable,
        store: RefreshStore,
        describe: Callable[[Exception], dict[str, Any]],
        clock: Clock,
        meters: Meters = UNMEASURED,
    ) -> None:
        self._refresh = refresh
        self._store = store
        self._describe = describe
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._tasks = NamedTasks[Ended]()
        self._closing = False
        self._meters = meters
        meters.gauge("refreshes_running", lambda: len(self._runs))

    async def start(
        self, table: str, *, full: bool = False, request: RefreshRequest = _ANYTHING
    ) -> RefreshStatus:
        """Start a refresh, or return the table's running one, on whichever replica.

        A full refresh first waits for the end of a running one that is not full. A refresh for some
        write ids or version first waits for the end of a running one for others.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshAbandonedError: This coordinator is being stopped.
            StoreUnavailableError: The database is away, full or read-only.
            OutcomeUnknownError: The database went away meanwhile.
        """
        while True:
            if self._closing:
                raise RefreshAbandonedError(table)
            now = self._clock()
            status = RefreshStatus(
                refresh_id=secrets.token_hex(16),
                table=table,
                status="running",
                valid_write_ids=request.valid_write_ids,
                version=request.version,
                started_at=now,
                seconds=0.0,
                progress=RefreshProgress(phase="listing"),
            )
            try:
                record = await self._store.begin(
                    status, full=full, now=now, lease_until=now + LEASE
                )
            except (StoreUnavailableError, OutcomeUnknownError) as error:
                # It has no status that could say so.
                _log.warning(
                    "a refresh failed", table=table, error=type(error).__name__, reason=str(error)
                )
                raise
            if record.status.refresh_id == status.refresh_id:
                run = _Run(
                    table_id=record.table_id, full=full, status=status, progress=status.progress
                )
                self._runs[status.refresh_id] = run
                self._tasks.start(status.refresh_id, self._run(run))
                return status
            running = record.status
            sees = request.valid_write_ids in (None, running.valid_write_ids)
            if sees and request.version == running.version and (record.full or not full):
                return self._seen(record)
            await self._outcome(record.status)

    async def wait(
        self, started: RefreshStatus, *, full: bool = False, request: RefreshRequest = _ANYTHING
    ) -> RefreshStatus:
        """Wait until a refresh that `start` returned, or another that replaced it, is done.

        A caller that gives up waiting does not stop the refresh.

        Raises:
            RefreshFailedError: The refresh ended with a problem, which the error contains.
            TableNotFoundError: The table was deleted meanwhile.
            StoreUnavailableError: The database is away, so it is unknown how the refresh ended.
        """
        while (outcome := await self._outcome(started)) is None:
            started = await self.start(started.table, full=full, request=request)
        if outcome.problem is not None:
            raise RefreshFailedError(outcome.problem)
        return outcome

    async def refresh_unless_checked(self, table: str, since: datetime) -> None:
        """Refresh a table unless its snapshot agreed with its files at `since` or later."""
        # The first refresh may have begun earlier; the second begins after this call.
        for _ in range(2):
            now = await self._refresh.tables.get(table)
            if now.checked_at is not None and now.checked_at >= since:
                return
            full = now.info.definition.trust_folder_times
            await self.wait(await self.start(table, full=full), full=full)

    async def latest(self, table: str) -> RefreshStatus:
        """Return the table's running refresh, or its last one.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotFoundError: The table has never been refreshed.
        """
        return self._seen(await self._store.get(table))

    async def recent(self, limit: int, among: Names) -> Sequence[RefreshStatus]:
        """Return the last refresh of up to `limit` tables: running ones first, then the latest."""
        return [self._seen(record) for record in await self._store.recent(limit, among)]

    async def failed(self, limit: int, among: Names) -> Sequence[RefreshStatus]:
        """Return the last refresh of up to `limit` tables where it failed, the latest first."""
        records = await self._store.recent(limit, among, self._clock())
        return [self._seen(record) for record in records]

    async def cancel(self, table: str) -> RefreshStatus:
        """Ask the table's running refresh to stop, on whichever replica; it ends soon.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotRunningError: No refresh is running.
        """
        record = await self._store.cancel(table, self._clock())
        run = self._runs.get(record.status.refresh_id)
        if run is not None:
            run.end("cancelled")
        return self._seen(record)

    async def aclose(self) -> None:
        """Stop the refreshes here; they publish nothing, and others may begin at once."""
        self._closing = True
        for run in self._runs.values():
            run.end("closing")
        tasks = [self._tasks.get(refresh_id) for refresh_id in self._runs]
        running = [task for task in tasks if task is not None]
        if running:
            await asyncio.wait(running, timeout=_STOP_S)
        await self._tasks.aclose()

    async def _outcome(self, status: RefreshStatus) -> Ended:
        """Wait for the end of a refresh; all callers here wait for the same task."""
        task = self._tasks.get(status.refresh_id)
        if task is None:
            task = self._tasks.start(status.refresh_id, self._watch(status))
        return await asyncio.shield(task)

    async def _watch(self, status: RefreshStatus) -> Ended:
        """Return how a refresh on another replica ended; None if it was abandoned."""
        poll_s, patience_s = _POLL_S, _PATIENCE_S
        while True:
            try:
                record = await self._store.get(status.table)
            except NotFoundError:
                return None
            except StoreUnavailableError:
                # Long enough for its runner to renew the lease before it is presumed abandoned.
                patience_s -= 2 * RENEW_S
                if patience_s < 0:
                    raise
                await asyncio.sleep(2 * RENEW_S)
                continue
            if record.status.refresh_id != status.refresh_id:
                before = record.previous
                return before if before and before.refresh_id == status.refresh_id else None
            if record.lease_until is None:
                return record.status
            if record.lease_until < self._clock():
                return None
            await asyncio.sleep(poll_s)
            poll_s = min(1.5 * poll_s, _MAX_POLL_S)

    async def _run(self, run: _Run) -> Ended:
        request = RefreshRequest(
            valid_write_ids=run.status.valid_write_ids, version=run.status.version
        )
        work = self._refresh(run.status.table, run.full, run.follow, run.stop, request)
        try:
            done = await renewed("a refresh", work, lambda: self._renew(run))
        except Exception as error:  # reported to its callers
            return await self._end(run, self._failed(run, error))
        else:
            return await self._end(run, self._done(run, done))
        finally:
            del self._runs[run.status.refresh_id]

    async def _renew(self, run: _Run) -> None:
        until = self._clock() + LEASE
        standing = await self._store.renew(run.table_id, self._now(run), until)
        if standing != "wanted":
            run.end(standing)

    def _done(self, run: _Run, done: Refreshed) -> RefreshStatus:
        return self._now(run).model_copy(
            update={
                "status": "done",
                "progress": run.progress.model_copy(update={"phase": "done"}),
                "changed": done.changed,
                "files_added": done.files_added,
                "files_removed": done.files_removed,
                "manifests_reused": done.manifests_reused,
                "snapshot": done.snapshot,
            }
        )

    def _failed(self, run: _Run, error: Exception) -> Ended:
        if run.reason in ("lost", "closing"):
            return None
        if run.reason == "cancelled":
            error = RefreshCancelledError(run.status.table)
        status = "cancelled" if run.reason == "cancelled" else "failed"
        problem = self._describe(error)
        if status == "failed":
            # Only an unforeseen error needs the place where it was raised.
            _log.warning(
                "a refresh failed",
                table=run.status.table,
                refresh_id=run.status.refresh_id,
                error=type(error).__name__,
                reason=str(error),
                exc_info=error if problem["status"] == _UNFORESEEN else None,
            )
        return self._now(run).model_copy(update={"status": status, "problem": problem})

    async def _end(self, run: _Run, outcome: Ended) -> Ended:
        """Record how a refresh ended, and return it unless another runner took it over."""
        if outcome is not None:
            self._meters.refresh(outcome)
        try:
            if outcome is not None:
                return outcome if await self._store.finish(run.table_id, outcome) else None
            if run.reason == "closing":
                await self._store.renew(run.table_id, self._now(run), self._clock())
        except (StoreUnavailableError, OutcomeUnknownError) as error:
            _log.warning(
                "the end of a refresh cannot be recorded",
                table=run.status.table,
                error=type(error).__name__,
                reason=str(error),
            )
            if outcome is not None and not self._closing:
                self._tasks.start(run.status.refresh_id, self._end_later(run, outcome))
        return outcome

    async def _end_later(self, run: _Run, outcome: RefreshStatus) -> Ended:
        while True:
            await asyncio.sleep(RENEW_S)
            with suppress(StoreUnavailableError, OutcomeUnknownError):
                return outcome if await self._store.finish(run.table_id, outcome) else None

    def _now(self, run: _Run) -> RefreshStatus:
        update = {"progress": run.progress, "seconds": self._seconds(run.status)}
        return run.status.model_copy(update=update)

    def _seen(self, record: RefreshRecord) -> RefreshStatus:
        """Return the status that callers see of a refresh, on whichever replica it runs."""
        status = record.status
        if record.lease_until is None:
            return status
        run = self._runs.get(status.refresh_id)
        if run is not None:
            return self._now(run)
        if record.lease_until < self._clock():
            problem = self._describe(RefreshAbandonedError(status.table))
            return status.model_copy(update={"status": "failed", "problem": problem})
        return status.model_copy(update={"seconds": self._seconds(status)})

    def _seconds(self, status: RefreshStatus) -> float:
        return round(max((self._clock() - status.started_at).total_seconds(), 0.0), 3)
