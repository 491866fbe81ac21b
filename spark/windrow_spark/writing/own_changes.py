"""Tables that this process has changed, and their snapshots since, which DataFrames of catalogs follow."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from windrow_calls.coordinator import Coordinator

# The property of a thread's jobs that has the number of the last change that its queries follow.
LAST_CHANGE = "spark.windrow.lastChange"

_KEPT = 8
_numbers = itertools.count(1)
_lock = threading.Lock()
# By the URL of the coordinator and the table: the number of each change, with the snapshot that was
# current when a query asked for the first time after it; 0 until one does.
_changes: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)


def note_change(client: Coordinator, table: str) -> None:
    """Remember that this process has changed a table."""
    with _lock:
        changes = _changes[client.url, table]
        changes[next(_numbers)] = 0
        while len(changes) > _KEPT:
            del changes[min(changes)]


def snapshot_since_change(client: Coordinator, table: str, last: int | None) -> int | None:
    """Return a snapshot that has the latest of these changes; None if there is none.

    Args:
        client: The client that plans.
        table: The table.
        last: The number of the last change that counts; None for all.
    """
    with _lock:
        changes = _changes.get((client.url, table), {})
        numbers = [number for number in changes if last is None or number <= last]
        if not numbers:
            return None
        if changes[max(numbers)]:
            return changes[max(numbers)]
    current = client.table(table).current_snapshot
    with _lock:
        if current is not None:
            changes[max(numbers)] = changes.get(max(numbers)) or current.snapshot_id
        return changes.get(max(numbers))


@contextmanager
def without_further_changes(context: SparkContext) -> Iterator[None]:
    """Let all queries of this thread read the same snapshots, whatever others change meanwhile."""
    before = context.getLocalProperty(LAST_CHANGE)
    if before is None:
        context.setLocalProperty(LAST_CHANGE, str(next(_numbers)))
    try:
        yield
    finally:
        context.setLocalProperty(LAST_CHANGE, before)
