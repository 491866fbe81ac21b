"""Spark's streaming queries, found by the sinks that they write to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_ONCE = ("AvailableNowTrigger", "OneTimeTrigger")


@dataclass(frozen=True, slots=True)
class Query:
    """A streaming query.

    Attributes:
        query_id: Its id, which is in its checkpoint and outlives restarts.
        name: Its name, if it has one.
        checkpoint: Location of its checkpoint.
        ends: Whether it ends by itself, once it has read what there is.
    """

    query_id: str
    name: str | None = None
    checkpoint: str | None = None
    ends: bool = False


def query_of(jsession: Any, sink: Any) -> Query | None:
    """Return the active query of a sink; None if it has not started, or has ended.

    Args:
        jsession: The JVM's session that started the query.
        sink: The JVM's `Sink`.
    """
    for query in jsession.streams().active():
        execution = query.streamingQuery() if hasattr(query, "streamingQuery") else query
        if not execution.sink().equals(sink):
            continue
        return Query(
            str(execution.id().toString()),
            execution.name(),
            str(execution.resolvedCheckpointRoot()),
            str(execution.trigger().toString()).startswith(_ONCE),
        )
    return None
