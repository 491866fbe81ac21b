"""Tables that sessions have cached with `CACHE TABLE`, which follow `REFRESH TABLE`."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
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
    for rows in _cached(older, open_snapshot).values():
        _move(rows, open_snapshot(snapshot_id))


@contextmanager
def caches_following(
    client: Coordinator, table: str, open_snapshot: Callable[[int], DataFrame]
) -> Iterator[None]:
    """Let what sessions have cached have the current rows of a table whose snapshots are dropped.

    Args:
        client: The client that plans.
        table: The table.
        open_snapshot: As for `move_cached`.
    """
    with _lock:
        ids = set(_uses.setdefault(client, defaultdict(set))[table])
    by_id = _cached(ids, open_snapshot)
    try:
        yield
    finally:
        info = client.table(table).current_snapshot if by_id else None
        for one, rows in by_id.items():
            if info is not None and one != info.snapshot_id:
                _move(rows, open_snapshot(info.snapshot_id))


def _cached(ids: Iterable[int], open_snapshot: Callable[[int], DataFrame]) -> dict[int, DataFrame]:
    """Return those of some snapshots that are cached; the coordinator may have dropped some."""
    by_id = {}
    for one in ids:
        with suppress(PySparkException):
            rows = open_snapshot(one)
            level = rows.storageLevel
            if level.useMemory or level.useDisk:
                by_id[one] = rows
    return by_id


def _move(rows: DataFrame, newer: DataFrame) -> None:
    level = rows.storageLevel
    rows.unpersist()
    newer.persist(level)
