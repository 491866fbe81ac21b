"""Inventories for tests, with defaults for everything that does not matter to a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_service.planner.caching.cached import Cached
from windrow_service.planner.columns import EXCERPT_FIELDS, inventory_schema

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
    return pa.Table.from_arrays(
        [
            pa.array(paths or [f"f{n:06d}" for n in range(count)], pa.string()),
            pa.array(sizes, pa.int64()),
            pa.array([0] * count, pa.int64()),
            pa.array([1] * count, pa.int64()),
            pa.array(buckets or [None] * count, pa.int32()),
            pa.array(hosts or [[]] * count, pa.list_(pa.string())),
            pa.array(row_group_offsets or [[4]] * count, pa.list_(pa.int64())),
            pa.array([files for files, _ in deletes or [(0, 0)] * count], pa.int32()),
            pa.array([size_bytes for _, size_bytes in deletes or [(0, 0)] * count], pa.int64()),
            pa.array([False] * count, pa.bool_()),
            pa.nulls(count, pa.list_(pa.string())),
            pa.nulls(count, pa.list_(pa.string())),
            pa.nulls(count, pa.int64()),
            *(
                pa.nulls(count, schema.field(name).type)
                for name in ("deletes", "etag", *EXCERPT_FIELDS)
            ),
            nothing,
            nothing,
        ],
        schema=schema,
    )


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
