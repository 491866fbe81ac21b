"""One side of `scan.py` in a process of its own, which prints seconds and a digest of its rows.

    python benchmarks/scan_sides.py SIDE LOCATION URL TABLE READS compare|time

The first read's clock starts when the process was started, which the environment says. Each side
imports its packages within it, and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

BEGAN = "SCAN_BEGAN"


def _read(
    side: str, location: str, url: str, table: str, reads: int, compares: bool
) -> dict[str, object]:
    """Read in this process, and return the seconds of each read and a digest of the rows, if asked."""
    seconds = []
    began = float(os.environ[BEGAN])
    rows = None
    for _ in range(reads):
        del rows
        rows = SIDES[side](location, url, table)
        ended = time.time()
        seconds.append(ended - began)
        began = time.time()
    assert rows is not None
    return {"seconds": seconds, "digest": _digest(rows) if compares else None}


def _digest(rows: pa.Table) -> str:
    """Return a digest of rows that does not depend on their order.

    Values are added up, each multiplied by a number of its row, modulo 2**64.
    """
    import numpy as np
    import pyarrow as pa

    weights = rows["id"].to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    parts = [str(rows.num_rows)]
    for name in sorted(rows.column_names):
        column = rows[name]
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            codes = column.combine_chunks().dictionary_encode()
            texts = [zlib.crc32(text.encode()) for text in codes.dictionary.to_pylist()]
            values = np.array(texts, np.uint64)[codes.indices.to_numpy()]
        elif pa.types.is_floating(column.type):
            values = column.to_numpy().astype(np.float32).view(np.uint32).astype(np.uint64)
        else:
            values = column.to_numpy().astype(np.uint64)
        parts.append(f"{name} {(values * weights).sum()}")
    return ", ".join(parts)


def _windrow(location: str, url: str, table: str) -> pa.Table:
    import windrow

    with windrow.connect(url) as client:
        return client.scan(table).to_table()


def _polars(location: str, url: str, table: str) -> pa.Table:
    import polars as pl

    options = None
    if location.startswith("s3:"):
        options = {
            "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
            "aws_region": os.environ["AWS_REGION"],
            "aws_endpoint_url": os.environ["AWS_ENDPOINT_URL"],
            "aws_allow_http": "true",
        }
    files = f"{location}/*/*.parquet"
    rows = pl.scan_parquet(files, hive_partitioning=True, storage_options=options).collect()
    # As text in Arrow's usual form, which costs little.
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest())


def _duckdb(location: str, url: str, table: str) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        if location.startswith("s3:"):
            from duckdb_extensions import use_s3

            use_s3(connection)
        # Rows come in no order from Windrow either.
        connection.execute("SET preserve_insertion_order = false")
        files = f"read_parquet('{location}/*/*.parquet', hive_partitioning = true)"
        return connection.sql(f"FROM {files}").to_arrow_table()


def _dataset(location: str, url: str, table: str) -> pa.Table:
    import pyarrow.dataset as ds
    from pyarrow import fs

    if not location.startswith("s3:"):
        return ds.dataset(location, partitioning="hive").to_table()
    store = fs.S3FileSystem(
        endpoint_override=os.environ["AWS_ENDPOINT_URL"].removeprefix("http://"), scheme="http"
    )
    path = location.removeprefix("s3://")
    return ds.dataset(path, filesystem=store, partitioning="hive").to_table()


SIDES: dict[str, Callable[[str, str, str], pa.Table]] = {
    "windrow": _windrow,
    "polars": _polars,
    "duckdb": _duckdb,
    "pyarrow": _dataset,
}


if __name__ == "__main__":
    side, location, url, table, reads, compares = sys.argv[1:]
    print(json.dumps(_read(side, location, url, table, int(reads), compares == "compare")))
