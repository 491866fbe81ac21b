"""Queries of a packed table, and of packs that are damaged, or are others, when a task reads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.tables.packs import (
    forged,
    fresh_pack,
    hostile_footer,
    publish_new_packs,
    with_footer,
)
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_spark.relation.recent_scans import recent_scans

TABLE, FILES = "pack_reads", 60
# Thrift: structs within structs, deeper than a stack.
DEEP = b"\x1c" * 100_000
_LONG_AGO_S = 1_700_000_000
_QUERIES = (
    "SELECT * FROM {0}",
    "SELECT money, k FROM {0} WHERE id % 3 = 1",
    "SELECT day, count(*), sum(id), max(x) FROM {0} GROUP BY day",
    "SELECT a.id, b.k FROM {0} a JOIN {0} b ON a.id = b.id + 200",
    "SELECT count(*) FROM {0}",
)


def outcomes(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    """Read a table from its packs.

    Returns:
        `different`: queries whose rows are not those of Spark's own reader of the files; `files`: of
        how many files each had the rows from packs; `damaged`, `other`, `deep`: the error of a query
        whose task finds a damaged page, or another pack of the same size and time, or of one whose
        driver finds a hostile footer, if there is one, and whether the next query returned the rows.
    """
    location = folder / TABLE
    for at in range(FILES):
        _write(location, at)
    client.register_table(TABLE, str(location), partition_columns={"k": "int", "day": "date"})
    publish_new_packs(client, TABLE)
    client.create_view(spark, TABLE, "by_packs")
    own = spark.read.schema(client.read(spark, TABLE).schema).parquet(str(location))
    own.cache().createOrReplaceTempView("by_spark")
    rows_of_files = _rows(own)
    different, files = [], []
    for query in _QUERIES:
        rows = _rows(spark.sql(query.format("by_packs")))
        files.append(recent_scans(TABLE)[0].packed_files)
        if not rows or rows != _rows(spark.sql(query.format("by_spark"))):
            different.append(query)

    def meddled(change: Callable[[bytes], bytes]) -> tuple[str, bool]:
        pack = fresh_pack(client, TABLE)
        state = pack.stat()
        rows = client.read(spark, TABLE)
        # The driver opens the pack; a driver that finds a change has none yet.
        if change is not _with_deep_footer:
            rows._jdf.queryExecution().toRdd()
        pack.chmod(0o600)
        pack.write_bytes(change(pack.read_bytes()))
        os.utime(pack, ns=(state.st_atime_ns, state.st_mtime_ns))
        error = ""
        try:
            _rows(rows)
        except TaskFailedError as failure:
            error = str(failure)
        return error, _rows(client.read(spark, TABLE)) == rows_of_files

    return {
        "different": different,
        "files": files,
        "damaged": meddled(_damaged),
        "other": meddled(_other),
        "deep": meddled(_with_deep_footer),
    }


def _write(location: Path, at: int) -> None:
    path = location / f"k={at % 3}" / f"day=2026-01-0{at % 2 + 1}" / f"{at}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = list(range(200 * at, 200 * at + 200))
    columns = {
        "id": ids,
        "x": [f"{number * number * 7919}" for number in ids],
        "at": [
            datetime(1990, 1, 1, tzinfo=timezone.utc) + timedelta(hours=number) for number in ids
        ],
        "money": pa.array(
            [Decimal(number) / 8 if number % 3 else None for number in ids], pa.decimal128(12, 3)
        ),
    }
    pq.write_table(pa.table(columns), path)
    os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))


def _rows(rows: DataFrame) -> list[str]:
    with plain_errors():
        return sorted(str(row) for row in rows.collect())


def _damaged(content: bytes) -> bytes:
    return content[:3_000] + bytes(3_000) + content[6_000:]


def _other(content: bytes) -> bytes:
    rows = pq.read_table(pa.BufferReader(content))
    at = rows.column_names.index("id")
    others = rows.set_column(at, "id", pa.array([7] * len(rows), pa.int64()))
    return forged(others, len(content), group_rows=len(rows), compression="zstd")


def _with_deep_footer(content: bytes) -> bytes:
    return with_footer(b"PAR1", hostile_footer(DEEP), len(content))
