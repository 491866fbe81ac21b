"""A scan that Spark's own reader reads in part, and its outcome when a file changes."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import windrow
from tests.support.tables import hive
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_spark.relation.recent_scans import recent_scans


def outcome(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    """Read a table with one file that only groups can read; read it again after another changed.

    Returns:
        `ids`: the ids of the requested days; `native_files`: how many of three files Spark's own
        reader reads; `read`: the counts of its tasks, and `bytes` the bytes that they should count;
        `failure`: the second read's error.
    """
    location = hive.write_events(folder / "hybrid", files_per_day=1)
    narrow = pa.table({"id": pa.array([100], pa.int32())})
    pq.write_table(narrow, location / "ds=2026-11-02" / "narrow.parquet")
    client.register_table("hybrid", str(location))
    client.refresh("hybrid")
    rows = client.read(spark, "hybrid", reader="native").where("ds > '2026-11-01'").select("id")
    ids = sorted(row.id for row in rows.collect())
    (scan,) = recent_scans("hybrid")
    read = asdict(scan.read)
    files = [path for day in ("02", "03") for path in (location / f"ds=2026-11-{day}").iterdir()]
    victim = location / "ds=2026-11-03" / "part-00000.parquet"
    os.utime(victim, ns=(0, victim.stat().st_mtime_ns + 10**9))
    try:
        with plain_errors():
            rows.collect()
        failure = None
    except TaskFailedError as error:
        failure = str(error)
    return {
        "ids": ids,
        "native_files": scan.native_files,
        "read": read,
        "bytes": sum(path.stat().st_size for path in files),
        "failure": failure,
    }
