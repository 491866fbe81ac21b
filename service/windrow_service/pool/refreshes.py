"""Refreshes in the background: one at a time per table, watched while they run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
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
        started_at: When it began.
        progress: How far it is.
        seconds: How long it took; None while it runs.
        result: What it did; None while it runs, and when it failed.
        error: Why it failed.
    """

    table: str
    started_at: datetime
    progress: RefreshProgress = field(default_factory=lambda: RefreshProgress(phase="listing"))
    seconds: float | None = None
    result: Refreshed | None = None
    error: Exception | None = None
    _began: float = field(default_factory=time.monotonic)
    _task: asyncio.Task[None] | None = None

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

    def begin(self, work: Callable[[RefreshRun], Awaitable[Refreshed]]) -> None:
        """Start the work as a task of the running event loop."""
        self._task = asyncio.create_task(self._run(work))

    async def stop(self) -> None:
        """Cancel the work and wait until it has ended."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, work: Callable[[RefreshRun], Awaitable[Refreshed]]) -> None:
        try:
            self.result = await work(self)
        except Exception as error:  # kept for whoever asks how the refresh ended
            self.error = error
        else:
            self.progress = self.progress.model_copy(update={"phase": "done"})
        finally:
            self.seconds = time.monotonic() - self._began


class Refreshes:
    """The refreshes of this coordinator, by table."""

    def __init__(self, refresh: RefreshTable, clock: Clock) -> None:
        self._refresh = refresh
        self._clock = clock
        self._runs: dict[str, RefreshRun] = {}

    def start(self, table: str) -> RefreshRun:
        """Start a refresh, or return the one that runs for this table."""
        run = self._runs.get(table)
        if run is not None and run.seconds is None:
            return run
        run = RefreshRun(table=table, started_at=self._clock())
        self._runs.pop(table, None)
        self._runs[table] = run
        self._forget_oldest()
        run.begin(self._work)
        return run

    def latest(self, table: str) -> RefreshRun:
        """Return the refresh of a table that runs, or the last that ended.

        Raises:
            RefreshNotFoundError: There was none since this coordinator started.
        """
        run = self._runs.get(table)
        if run is None:
            raise RefreshNotFoundError(table)
        return run

    async def aclose(self) -> None:
        """Stop what still runs; nothing of it is published."""
        for run in list(self._runs.values()):
            await run.stop()

    async def _work(self, run: RefreshRun) -> Refreshed:
        def follow(progress: RefreshProgress) -> None:
            run.progress = progress

        return await self._refresh(run.table, follow)

    def _forget_oldest(self) -> None:
        ended = [table for table, run in self._runs.items() if run.seconds is not None]
        for table in ended[: max(len(self._runs) - _REMEMBERED, 0)]:
            del self._runs[table]
