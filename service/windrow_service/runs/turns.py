"""Turns: callers that want the same thing get it one after another, in the order they asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import anyio

from windrow_service.usecases.errors import BusyError

_RETRY_AFTER_S = 1


class LocalTurns:
    """`Turns` among the callers of this process.

    Args:
        max_waiting: Most callers that may wait for one thing; more are refused.
    """

    def __init__(self, *, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._pending: Counter[str] = Counter()
        # A lock is dropped once nobody holds it or waits for it.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn, and keep it until the end of the block."""
        if self._pending[name] > self._max_waiting:
            raise BusyError(self._pending[name], _RETRY_AFTER_S)
        lock = self._locks.setdefault(name, anyio.Lock())
        self._pending[name] += 1
        try:
            async with lock:
                yield
        finally:
            self._pending[name] -= 1
            if not self._pending[name]:
                del self._pending[name]
