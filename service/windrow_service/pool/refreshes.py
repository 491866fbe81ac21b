"""Refreshes in the background: one at a time per table, watched while they run."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime

from windrow.models import RefreshProgress
from windrow_service.usecases.errors import RefreshNotFoundError
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.refresh import Refreshed, RefreshTable

# How many ended refreshes are remembered, so that their outcome can still be asked for.
_REMEMBERED = 1_000


@dataclass(slots=True, kw_only=True)
class RefreshRun:
    """One refresh, running or ended.

    Attributes:
        table: Name of the table.
        full: Whether every folder is listed, not only those that changed.
        started_at: When it began.
        progress: How far it is.
        seconds: How long it took; None while it runs.
        result: What it did; None while it runs, and when it failed.
        error: Why it failed.
    """

    table: str
    full: bool
    started_at: datetime
    progress: RefreshProgress = field(default_factory=lambda: RefreshProgress(phase="listing"))
    seconds: float | None = None
    result: Refreshed | None = None
    error: Exception | None = None
    _began: float = field(default_factory=time.monotonic)
    _task: asyncio.Task[None] | None = None
    _cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began, or that it took."""
        return time.monotonic() - self._began if self.seconds is None else self.seconds

    async def wait(self) -> Refreshed:
        """Wait for the end and return the result, or raise the error.

        A caller that gives up waiting does not stop the refresh.
        """
        assert self._task is not None
        await asyncio.shield(self._task)
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result

    def begin(self, refresh: RefreshTable) -> None:
        """Start the work as a task of the running event loop."""
        self._task = asyncio.create_task(self._run(refresh))

    def cancel(self) -> None:
        """Ask the work to stop; it ends soon, with an error."""
        self._cancelled.set()

    async def ended(self) -> None:
        """Wait until the work has ended, however it does."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, refresh: RefreshTable) -> None:
        try:
            self.result = await refresh(self.table, self.full, self._follow, self._cancelled)
        except Exception as error:  # kept for whoever asks how the refresh ended
            self.error = error
        else:
            self.progress = self.progress.model_copy(update={"phase": "done"})
        finally:
            self.seconds = time.monotonic() - self._began

    def _follow(self, progress: RefreshProgress) -> None:
        self.progress = progress


class Refreshes:
    """The refreshes of this coordinator, by table."""

    def __init__(self, refresh: RefreshTable, clock: Clock) -> None:
        self._refresh = refresh
        self._clock = clock
        self._runs: dict[str, RefreshRun] = {}

    async def start(self, table: str, *, full: bool = False) -> RefreshRun:
        """Start a refresh, or return the one that runs for this table.

        One that lists every folder waits for the end of one that does not.
        """
        while (run := self._runs.get(table)) is not None and run.seconds is None:
            if run.full or not full:
                return run
            await run.ended()
        run = RefreshRun(table=table, full=full, started_at=self._clock())
        self._runs.pop(table, None)
        self._runs[table] = run
        self._forget_oldest()
        run.begin(self._refresh)
        return run

    async def refresh_unless_checked(self, table: str, since: datetime) -> None:
        """See `Refresher.refresh_unless_checked`."""
        checked_at = (await self._refresh.tables.get(table)).checked_at
        if checked_at is None or checked_at < since:
            await (await self.start(table)).wait()

    def latest(self, table: str) -> RefreshRun:
        """Return the refresh of a table that runs, or the last that ended.

        Raises:
            RefreshNotFoundError: There was none since this coordinator started.
        """
        run = self._runs.get(table)
        if run is None:
            raise RefreshNotFoundError(table)
        return run

    def forget(self, table: str) -> None:
        """Forget how the last refresh of a table ended, unless it still runs."""
        run = self._runs.get(table)
        if run is not None and run.seconds is not None:
            del self._runs[table]

    async def aclose(self) -> None:
        """Stop what still runs; nothing of it is published."""
        runs = list(self._runs.values())
        for run in runs:
            run.cancel()
        for run in runs:
            await run.ended()

    def _forget_oldest(self) -> None:
        ended = [table for table, run in self._runs.items() if run.seconds is not None]
        for table in ended[: max(len(self._runs) - _REMEMBERED, 0)]:
            del self._runs[table]
