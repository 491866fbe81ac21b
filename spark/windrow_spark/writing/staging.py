"""Writing the files of a write to a staging folder, from which they are moved into the table."""

from __future__ import annotations

import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation

from windrow_core.files.footers import footer_bytes_in
from windrow_core.files.listing import is_hidden
from windrow_core.models import TableInfo, WritePlan
from windrow_spark.writing.expressions import quoted
from windrow_spark.writing.placing import place_with_bucket

_TASK_FILE = re.compile(r"(?P<task>part-\d+-[0-9a-f-]{36})(?:\.|-)(?P<rest>c\d+\..+)")
# A Parquet file begins with four bytes, and ends with the length of its footer and these four.
_MAGIC_BYTES, _END_BYTES = 4, 8
# Codec names in footers, and the values of Spark's `compression` option for them.
_CODECS = {
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "ZSTD": "zstd",
    "UNCOMPRESSED": "none",
    "LZ4": "lz4_raw",
}
# Of Spark's writer, for files that are moved into tables, or kept beside them.
STAGING_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # A limit that is set in the session would split the planned files.
    "maxRecordsPerFile": "0",
    # Hadoop's usual local file system also writes a checksum for each file, and starts three more
    # processes per file to set permissions.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


def stage(
    df: DataFrame,
    plan: WritePlan,
    table: TableInfo,
    folder: str,
    arrival: Observation | None = None,
) -> None:
    """Place rows as planned, and write them as Parquet files below a folder.

    Args:
        df: Rows with the columns of the table.
        plan: A plan for the table.
        table: The table, for its partition columns, buckets, sort columns and codec.
        folder: Absolute path that the driver and all executors can reach.
        arrival: Observes `sums_of` the rows in the tasks that write them.
    """
    rows, bucket = place_with_bucket(df, plan, table, arrival)
    columns = [column.name for column in plan.partition_columns]
    # One folder per bucket, so that no scheme puts two buckets into one file.
    folders = [*columns, *([bucket] if bucket is not None else [])]
    rows = rows.select(*map(quoted, [*df.columns, *folders[len(columns) :]]))
    writer = rows.write.mode("append").options(**STAGING_OPTIONS)
    codec = newest_codec(table.definition.location)
    if codec is not None:
        writer = writer.option("compression", codec)
    if folders:
        writer = writer.partitionBy(*folders)
    # A bare path would refer to the session's default file system.
    writer.parquet(f"file://{folder}")
    _tidy(folder, bucket)


def newest_codec(location: str) -> str | None:
    """Return Spark's name for the codec of a table's newest file; None if there is no file.

    Only the folder whose name sorts last is searched, which takes one listing per level.
    """
    folder = re.sub(r"^file:(//)?", "", location)
    try:
        while True:
            with os.scandir(folder) as scan:
                entries = [entry for entry in scan if not is_hidden(entry.name)]
            files = [entry for entry in entries if entry.is_file()]
            if files:
                newest = max(files, key=lambda entry: entry.stat().st_mtime_ns)
                metadata = pq.read_metadata(newest.path)
                return _CODECS.get(metadata.row_group(0).column(0).compression)
            if not entries:
                return None
            folder = max(entries, key=lambda entry: entry.name).path
    except (OSError, pa.ArrowException, IndexError):
        return None


def _tidy(folder: str, bucket: str | None) -> None:
    """Keep only data files that have rows, in the folders of partitions.

    Args:
        folder: Folder that Spark wrote to.
        bucket: Column whose folders are dissolved; the names of their files get the bucket's
            number, as in Spark's own files.
    """
    for path, _, names in os.walk(folder, topdown=False):
        parent, _, last = path.rpartition("/")
        number = last.removeprefix(f"{bucket}=") if bucket is not None else last
        for name in names:
            file = f"{path}/{name}"
            if path == folder and _is_empty(name, file):
                # Spark's first task leaves one even if it has no rows.
                os.unlink(file)
            elif number != last:
                os.rename(file, f"{parent}/{_bucket_name(name, int(number))}")
        if number != last:
            os.rmdir(path)


def _is_empty(name: str, file: str) -> bool:
    """Tell whether a file of the first task has only a footer, and so no rows."""
    if not name.startswith("part-00000-"):
        return False
    with open(file, "rb") as content:
        content.seek(-_END_BYTES, os.SEEK_END)
        return content.tell() + _END_BYTES == _MAGIC_BYTES + footer_bytes_in(content.read())


def _bucket_name(name: str, bucket: int) -> str:
    parts = _TASK_FILE.fullmatch(name)
    if parts is None:
        raise ValueError(f"Spark named a file {name!r}, which is not part-<task>-<uuid>.c000…")
    return f"{parts['task']}_{bucket:05d}.{parts['rest']}"
