"""Run blocking and CPU-heavy work in threads, off the event loop.

NumPy and Arrow release the interpreter lock in their long calls, so the event loop continues
while a plan is made: docs/decisions/0004-plan-in-threads.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from windrow_service.usecases.errors import BusyError

T = TypeVar("T")
_RETRY_AFTER_S = 1


class ThreadRunner:
    """`Runner` over a bounded number of threads.

    Args:
        max_running: Most pieces of work that run at the same time.
        max_waiting: Most pieces that may wait for a thread; more are refused.
    """

    def __init__(self, *, max_running: int, max_waiting: int) -> None:
        self._limiter = anyio.CapacityLimiter(max_running)
        self._max_pending = max_running + max_waiting
        self._pending = 0

    async def run(self, work: Callable[[], T]) -> T:
        """See `Runner.run`."""
        if self._pending >= self._max_pending:
            raise BusyError(self._pending, _RETRY_AFTER_S)
        self._pending += 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._pending -= 1
