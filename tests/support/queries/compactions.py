"""Compacts tables of every kind of Parquet file, and compares old and new files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.support.files.parquet_kinds import differences, every_kind_of_file
from tests.support.tables import hive
from windrow.client import Client
from windrow_jobs.compact import compact


def differences_after_compaction(
    spark: SparkSession, client: Client, folder: Path
) -> dict[str, list[str]]:
    """Return, for each kind of file, in what the compacted file differs, or why there is none."""
    differing = {}
    for number, (kind, contents) in enumerate(every_kind_of_file().items()):
        location = folder / f"kind-{number}"
        location.mkdir(parents=True)
        for file, content in enumerate(contents):
            (location / f"{file}.parquet").write_bytes(content)
        table = f"kinds.kind{number}"
        client.register_table(table, str(location), columns={"id": "bigint"})
        client.refresh(table)
        done = compact(lambda: spark, client, table, worth_reads=10**9, min_files=2)
        if (done.files_before, done.files_after) != (len(contents), 1):
            differing[kind] = [str(done)]
            continue
        (path,) = hive.data_files(location)
        before = [pq.ParquetFile(pa.BufferReader(content)) for content in contents]
        if file_differences := differences(before, pq.ParquetFile(location / path)):
            differing[kind] = file_differences
    return differing
