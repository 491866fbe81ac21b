"""Work that several callers want at the same time, done once for all of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from windrow_service.runs.background import stop
from windrow_service.usecases.plans.errors import PlanCancelledError
from windrow_service.usecases.ports import Checkpoint

T = TypeVar("T")


@dataclass(slots=True)
class _Running:
    callers: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[Any] | None = None

    def check(self) -> None:
        if self.stopped.is_set():
            raise PlanCancelledError


class SharedTasks:
    """`SharedWork` of one process."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}
        # Including work that every caller has left.
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, key: str, work: Callable[[Checkpoint], Awaitable[T]]) -> T:
        """Return the result of `work`, or of the running work with the same key."""
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = _Running()
            running.task = asyncio.create_task(self._work(key, running, work))
            self._tasks.add(running.task)
            running.task.add_done_callback(self._tasks.discard)
        assert running.task is not None
        running.callers += 1
        try:
            result: T = await asyncio.shield(running.task)
            return result
        finally:
            running.callers -= 1
            if not running.callers and not running.task.done():
                running.stopped.set()
                # A caller that comes now must start the work again.
                self._forget(key, running)

    async def aclose(self) -> None:
        """Stop all work; no caller may be waiting for it."""
        await stop(*self._tasks)

    async def _work(
        self, key: str, running: _Running, work: Callable[[Checkpoint], Awaitable[T]]
    ) -> T | None:
        try:
            return await work(running.check)
        except PlanCancelledError:
            if running.stopped.is_set():
                # Every caller has left.
                return None
            raise
        finally:
            self._forget(key, running)

    def _forget(self, key: str, running: _Running) -> None:
        if self._running.get(key) is running:
            del self._running[key]
