"""Calls to the database and the cache map, measured and traced from outside."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from windrow_service.telemetry.meters import UNMEASURED, Meters, Store

T = TypeVar("T")


def measured(
    adapter: T, store: Store, room: str, meters: Meters, unanswered: tuple[type[Exception], ...]
) -> T:
    """Measure each call of an adapter from now on, and return the adapter.

    Args:
        adapter: Its public coroutines are calls.
        store: What it calls.
        room: First part of the names of its operations.
        meters: Is told; nothing is changed if it measures nothing.
        unanswered: Errors that mean that the store did not answer.
    """
    if meters is UNMEASURED:
        return adapter
    for name, method in inspect.getmembers(adapter, inspect.iscoroutinefunction):
        if not name.startswith("_"):
            setattr(adapter, name, _timed(method, store, f"{room}.{name}", meters, unanswered))
    return adapter


def _timed(
    method: Callable[..., Awaitable[Any]],
    store: Store,
    operation: str,
    meters: Meters,
    unanswered: tuple[type[Exception], ...],
) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        began, failed = time.perf_counter(), False
        try:
            return await method(*args, **kwargs)
        except unanswered:
            failed = True
            raise
        finally:
            meters.call(store, operation, time.perf_counter() - began, failed=failed)

    return timed
