"""Inventories for the benchmarks of the service."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def generated(files: int) -> pa.Table:
    """Return an inventory of small files on 300 days, with statistics of three columns."""
    number = np.arange(files)
    day = number * 300 // files
    paths = np.char.add("ds=", np.char.zfill(day.astype(str), 3))
    paths = np.char.add(paths, "/part-")
    paths = np.char.add(paths, np.char.zfill(number.astype(str), 8))
    nulls = pa.array(np.zeros(files, np.int64))
    bounds = {
        "id": (number * 1_000, number * 1_000 + 999),
        "amount": (number % 97 / 7, number % 97 / 7 + 50.0),
        "day": (pa.array(day, pa.int32()).cast(pa.date32()),) * 2,
    }
    stats = pa.StructArray.from_arrays(
        [
            pa.StructArray.from_arrays(
                [pa.array(low), pa.array(high), nulls], names=["min", "max", "null_count"]
            )
            for low, high in bounds.values()
        ],
        names=list(bounds),
    )
    return pa.table(
        {
            "path": pa.array(np.char.add(paths, ".parquet").tolist()),
            "size_bytes": 16_384 + number * 7_919 % 400_000,
            "mtime_ns": 1_700_000_000_000_000_000 + number,
            "row_count": np.full(files, 1_000),
            "stats": stats,
            "stats_see_nan": np.ones(files, np.bool_),
        }
    )
