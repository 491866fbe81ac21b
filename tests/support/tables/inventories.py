"""Inventories for tests, with defaults for everything that does not matter to a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_core.files.rows import ROW_COLUMN, inventory_schema, rows_of
from windrow_service.planner.caching.cached import Cached

MIB = 2**20


def inventory(
    sizes: Sequence[int],
    *,
    hosts: Sequence[Sequence[str]] | None = None,
    buckets: Sequence[int | None] | None = None,
    row_group_offsets: Sequence[Sequence[int]] | None = None,
    paths: Sequence[str] | None = None,
    deletes: Sequence[tuple[int, int]] | None = None,
) -> pa.Table:
    """Return an inventory of files with these sizes, without partitions or statistics."""
    count = len(sizes)
    schema = inventory_schema(pa.schema([]), pa.schema([]))
    nothing = pa.array([{}] * count, pa.struct([]))
    columns = {
        "path": paths or [f"f{n:06d}" for n in range(count)],
        "size_bytes": sizes,
        "mtime_ns": [0] * count,
        "row_count": [1] * count,
        "bucket": buckets or [None] * count,
        "hosts": hosts or [[]] * count,
        "row_group_offsets": row_group_offsets or [[4]] * count,
        "delete_count": [files for files, _ in deletes or [(0, 0)] * count],
        "delete_bytes": [size_bytes for _, size_bytes in deletes or [(0, 0)] * count],
    }
    arrays = {name: pa.array(values, ROW_COLUMN[name].type) for name, values in columns.items()}
    return rows_of(arrays | {"partition": nothing, "stats": nothing}, schema, count)


def told(cached: Cached) -> Callable[[pa.Table, Any], Cached]:
    """Return a function that gives a plan these caches; files are numbered in order of paths."""

    def tell(files: pa.Table, rows: np.ndarray) -> Cached:
        return Cached(
            cacheable=cached.cacheable[rows],
            worker=cached.worker[rows],
            workers=cached.workers,
            choice=cached.choice[rows],
        )

    return tell


def marked(flags: np.ndarray) -> Callable[[pa.Table, Any], Cached]:
    """Return a function that marks these files as cacheable, with no workers running."""

    def tell(files: pa.Table, rows: np.ndarray) -> Cached:
        nothing = Cached.nothing(len(rows))
        nothing.cacheable[:] = flags[rows]
        return nothing

    return tell
