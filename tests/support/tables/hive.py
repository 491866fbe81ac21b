"""Small real Hive-style Parquet tables for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")


def write_file(path: Path, ids: Sequence[int], *, row_group_size: int | None = None) -> Path:
    """Write one Parquet file with the columns `id` (bigint) and `name` (string)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {"id": pa.array(ids, pa.int64()), "name": pa.array([f"name-{n}" for n in ids])}
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def write_events(
    location: Path, *, days: Sequence[str] = DAYS, files_per_day: int = 2, rows_per_file: int = 10
) -> Path:
    """Write a table partitioned by `ds`, with ids that are unique across files."""
    first = 0
    for day in days:
        for number in range(files_per_day):
            ids = range(first, first + rows_per_file)
            write_file(location / f"ds={day}" / f"part-{number:05d}.parquet", ids)
            first += rows_per_file
    return location


def data_files(location: Path) -> list[str]:
    """Return the paths of a table's files relative to its location, sorted."""
    return sorted(path.relative_to(location).as_posix() for path in location.rglob("*.parquet"))
