"""Requests of the JVM that Python answers: dataclasses here, JSON there."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from windrow_spark.failures import remembered
from windrow_spark.relation.jvm_sessions import session_of

_starting = threading.Lock()


class Answering:
    """Answers to requests, as Java's `BiFunction`: of a request as JSON, and of the JVM's objects.

    Args:
        handlers: A function for each request, whose parameter `request` has its dataclass. Java names
            it by `use`, in lower case; the other keys are its fields.
        context: Returns the further arguments of handlers for the JVM's objects.
    """

    def __init__(
        self, *handlers: Callable[..., Any], context: Callable[..., Sequence[Any]]
    ) -> None:
        kinds = [(get_type_hints(handler)["request"], handler) for handler in handlers]
        self._handlers = {kind.__name__.lower(): (kind, handler) for kind, handler in kinds}
        self._context = context

    def apply(self, text: str, objects: Any) -> Any:
        """Return an answer, or the text of an error; the JVM calls this in any of its threads."""
        try:
            fields = json.loads(text)
            kind, handler = self._handlers[fields.pop("use")]
            return handler(kind(**fields), *self._context(*objects))
        # An exception would reach the user as the JVM's, with its trace and without its own message.
        except Exception as error:
            return remembered(error)

    class Java:
        """Tells py4j which Java interface this implements."""

        implements = ("java.util.function.BiFunction",)


def answers_in_session(spark: SparkSession, *handlers: Callable[..., Any]) -> Answering:
    """Return answers whose handlers get the session that asks, which is the JVM's first object."""
    return Answering(*handlers, context=lambda first, *others: (session_of(spark, first), *others))


def accept_calls(gateway: Any) -> None:
    """Let the JVM behind a gateway call Python; further calls change nothing."""
    with _starting:
        ensure_callback_server_started(gateway)
