"""Run blocking and CPU-heavy work in threads, off the event loop.

NumPy and Arrow release the interpreter lock in their long calls, so the event loop continues
while a plan is made: docs/decisions/0004-plan-in-threads.md has the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from windrow_service.telemetry.meters import UNMEASURED, Meters
from windrow_service.usecases.errors import BusyError

T = TypeVar("T")
_RETRY_AFTER_S = 1


class ThreadRunner:
    """`Runner` over a bounded number of threads.

    Args:
        max_running: Most pieces of work that run at the same time.
        max_waiting: Most pieces that may wait for a thread; more are refused.
        name: Kind of the work, for `meters`.
        meters: Record how much work is running and waiting.
    """

    def __init__(
        self, *, max_running: int, max_waiting: int, name: str = "", meters: Meters = UNMEASURED
    ) -> None:
        self._limiter = anyio.CapacityLimiter(max_running)
        self._max_pending = max_running + max_waiting
        self._pending = 0
        self._name = name
        self._meters = meters
        meters.gauge("queue_running", lambda: min(self._pending, max_running), name)
        meters.gauge("queue_waiting", lambda: max(self._pending - max_running, 0), name)

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work in a thread, and return its result."""
        if self._pending >= self._max_pending:
            self._meters.refused(self._name)
            raise BusyError(self._pending, _RETRY_AFTER_S)
        asked_s = time.perf_counter()

        def begun() -> T:
            self._meters.waited(self._name, time.perf_counter() - asked_s)
            return work()

        self._pending += 1
        try:
            return await anyio.to_thread.run_sync(begun, limiter=self._limiter)
        finally:
            self._pending -= 1
