"""Real Parquet files for tests of the inventory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow_service.inventory import Inventory, PreviousInventory


def write(location: Path, path: str, columns: Any = None, **options: Any) -> Path:
    """Write a Parquet file of these columns (a dict or a table) and return where."""
    target = location / path
    target.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns or {"x": [1, 2, 3]})
    pq.write_table(table, target, **options)
    return target


def touch(path: Path, mtime_ns: int) -> None:
    os.utime(path, ns=(mtime_ns, mtime_ns))


def paths_column(*paths: str) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(paths, pa.string())])


def as_previous(inventory: Inventory) -> PreviousInventory:
    return PreviousInventory(
        files=inventory.files,
        data_schema=inventory.data_schema,
        partition_schema=inventory.partition_schema,
    )


def stats_of(inventory: Inventory, column: str) -> list[dict[str, Any]]:
    return [stats[column] for stats in inventory.files["stats"].to_pylist()]
