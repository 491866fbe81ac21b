"""The interface of traces; these spans do nothing, those of `tracing.py` use OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeAlias

from windrow_service.telemetry.meters import Store

# Records an answer: the template of its path, and its status.
Answered: TypeAlias = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of some work, from `began_s` to `ended_s` of `time.perf_counter`."""

    name: str
    began_s: float
    ended_s: float


class Spans:
    """Spans of requests, and of the calls that they lead to."""

    def request(
        self, method: str, headers: Iterable[tuple[bytes, bytes]], request_id: str
    ) -> AbstractContextManager[Answered]:
        """Trace a request until the end of the block, as part of its caller's trace.

        Args:
            method: The HTTP method.
            headers: Headers of the request; `traceparent` names the caller's span.
            request_id: Id of the request.
        """
        return nullcontext(_ignore)

    def call(self, store: Store, operation: str) -> AbstractContextManager[None]:
        """Trace a call to the database or the cache map until the end of the block."""
        return nullcontext()

    def phases(self, work: str, phases: Sequence[Phase]) -> None:
        """Trace the phases of some work of a request, once they have ended."""

    def close(self) -> None:
        """Send the remaining spans, and stop."""


def _ignore(route: str, status: int) -> None: ...


UNTRACED = Spans()
