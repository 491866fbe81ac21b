"""Tables that sessions have cached with `CACHE TABLE`, which follow `REFRESH TABLE`."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from windrow_calls.coordinator import Coordinator

# Snapshots that were current when queries used a table by its name.
_uses: WeakKeyDictionary[Coordinator, defaultdict[str, set[int]]] = WeakKeyDictionary()
_lock = threading.Lock()


def note_use(client: Coordinator, table: str, snapshot_id: int) -> None:
    """Remember the current snapshot of a table that a query uses, and may cache."""
    with _lock:
        _uses.setdefault(client, defaultdict(set))[table].add(snapshot_id)


def move_cached(
    client: Coordinator, table: str, snapshot_id: int, open_snapshot: Callable[[int], DataFrame]
) -> None:
    """Drop cached rows of a table's older snapshots, and cache those of the current one instead.

    As with Spark's own tables, nothing is read before a query needs it.

    Args:
        client: The client that plans.
        table: The table.
        snapshot_id: Its current snapshot.
        open_snapshot: Returns a snapshot as queries of the catalog have it.
    """
    with _lock:
        ids = _uses.setdefault(client, defaultdict(set))[table]
        older = ids - {snapshot_id}
        ids -= older
    for old in older:
        try:
            rows = open_snapshot(old)
        except PySparkException:
            # The coordinator has dropped this snapshot.
            continue
        level = rows.storageLevel
        if level.useMemory or level.useDisk:
            rows.unpersist()
            open_snapshot(snapshot_id).persist(level)
