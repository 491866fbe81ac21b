"""Calls to the database and the cache map, measured and traced from outside."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from windrow_service.telemetry.meters import UNMEASURED, Meters, Store
from windrow_service.telemetry.spans import UNTRACED, Spans

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Watch:
    """Measures and traces the calls of adapters."""

    meters: Meters
    spans: Spans

    def over(self, adapter: T, store: Store, room: str, outages: tuple[type[Exception], ...]) -> T:
        """Watch each call of an adapter from now on, and return the adapter.

        Args:
            adapter: The adapter; each of its public coroutines is a call.
            store: The store that it calls.
            room: First part of the names of its operations.
            outages: Errors which mean that the store did not answer.
        """
        if self.meters is UNMEASURED and self.spans is UNTRACED:
            return adapter
        for name, method in inspect.getmembers(adapter, inspect.iscoroutinefunction):
            if not name.startswith("_"):
                setattr(adapter, name, self._watched(method, store, f"{room}.{name}", outages))
        return adapter

    def _watched(
        self,
        method: Callable[..., Awaitable[Any]],
        store: Store,
        operation: str,
        outages: tuple[type[Exception], ...],
    ) -> Callable[..., Awaitable[Any]]:
        record = self.meters.caller(store, operation)

        @wraps(method)
        async def watched(*args: Any, **kwargs: Any) -> Any:
            began, failed = time.perf_counter(), False
            try:
                with self.spans.call(store, operation):
                    return await method(*args, **kwargs)
            except outages:
                failed = True
                raise
            finally:
                record(time.perf_counter() - began, failed)

        return watched
