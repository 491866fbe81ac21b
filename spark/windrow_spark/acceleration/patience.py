"""Calls of the coordinator for which a query waits only so long."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from windrow_calls.errors import CoordinatorUnreachableError
from windrow_spark.acceleration.refused import NotTheSameError

T = TypeVar("T")

# How long queries do not ask again after the coordinator did not answer in time.
_PAUSE_S = 10.0


class Patience:
    """Waits for calls up to a limit; after a failure, fails at once for some seconds.

    Args:
        wait_s: How long a query may wait for one call.
    """

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._pauses: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def call(self, key: str, late: str, work: Callable[[], T]) -> T:
        """Return the result of a call, which is left to itself if it takes too long.

        Args:
            key: What else is not asked for a while after a failure.
            late: The reason if it takes too long.
            work: The call.

        Raises:
            NotTheSameError: It has not answered in time, or had not a moment ago.
        """
        with self._lock:
            end_s, reason = max(self._pauses.get(one, (0.0, "")) for one in ("", key))
            if time.monotonic() < end_s:
                raise NotTheSameError(f"{reason}; Windrow tries again within {_PAUSE_S:.0f} s")
        outcomes: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                outcomes.put((work(), None))
            except Exception as error:  # raised below
                outcomes.put((None, error))

        # Not one of a pool: Python waits for those when it ends.
        threading.Thread(target=run, name="windrow-accelerate", daemon=True).start()
        try:
            result, error = outcomes.get(timeout=self._wait_s)
        except queue.Empty:
            reason = f"{late}: no answer within {self._wait_s:g} s"
            self._pause(key, reason)
            raise NotTheSameError(reason) from None
        if isinstance(error, CoordinatorUnreachableError):
            self._pause("", str(error))
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    def _pause(self, key: str, reason: str) -> None:
        with self._lock:
            self._pauses[key] = (time.monotonic() + _PAUSE_S, reason)
