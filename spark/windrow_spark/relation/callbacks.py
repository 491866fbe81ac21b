"""Python functions that the JVM calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started

_starting = threading.Lock()


class Answering:
    """A function of two arguments as Java's `BiFunction`."""

    def __init__(self, answer: Callable[[Any, Any], Any]) -> None:
        self._answer = answer

    def apply(self, first: Any, second: Any) -> Any:
        """Return the answer; the JVM calls this in any of its threads."""
        return self._answer(first, second)

    class Java:
        """Tells py4j which Java interface this implements."""

        implements = ("java.util.function.BiFunction",)


def accept_calls(gateway: Any) -> None:
    """Let the JVM behind a gateway call Python; further calls change nothing."""
    with _starting:
        ensure_callback_server_started(gateway)
