"""Real Parquet files for tests of the inventory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow_core.files.listing import ScanFolder
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Inventory, Look, PreviousInventory
from windrow_service.inventory.progress import OnProgress


def write(location: Path, path: str, columns: Any = None, **options: Any) -> Path:
    """Write a Parquet file of these columns (a dict or a table) and return its path."""
    target = location / path
    target.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns or {"x": [1, 2, 3]})
    pq.write_table(table, target, **options)
    return target


class InlineExecutor(Executor):
    """Runs tasks immediately, in this process, which is faster and safe for undamaged files."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def an_hour_later() -> int:
    """Return a time at which everything just made is old, so that no file is read once more."""
    return time.time_ns() + 3600 * 10**9


inline = InlineExecutor()


def take_inline(
    location: str,
    previous: PreviousInventory | None = None,
    *,
    on_progress: OnProgress | None = None,
    cancelled: threading.Event | None = None,
    executor: Executor = inline,
    scan: ScanFolder | None = None,
    clock_ns: Callable[[], int] = an_hour_later,
    **look: Any,
) -> Inventory:
    """Take an inventory in this process; `look` has what else is known of the table."""
    return take_inventory(
        Look(location=location, **look),
        previous,
        on_progress=on_progress,
        cancelled=cancelled,
        executor=executor,
        scan=scan,
        clock_ns=clock_ns,
    )


def touch(path: Path, mtime_ns: int) -> None:
    os.utime(path, ns=(mtime_ns, mtime_ns))


def paths_column(*paths: str) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(paths, pa.string())])


def as_previous(inventory: Inventory) -> PreviousInventory:
    return PreviousInventory(
        files=inventory.files,
        data_schema=inventory.data_schema,
        partition_schema=inventory.partition_schema,
        has_all_columns=True,
        folders=inventory.folders,
    )


def stats_of(inventory: Inventory, column: str) -> list[dict[str, Any]]:
    return [stats[column] for stats in inventory.files["stats"].to_pylist()]
