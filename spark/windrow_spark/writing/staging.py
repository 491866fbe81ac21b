"""Writing the files of a write to a staging folder, from which they are moved into the table."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation

from windrow_core.files.footers import footer_bytes_in
from windrow_core.files.listing import is_hidden
from windrow_core.files.places import open_file
from windrow_core.files.remote import contents_of, read_part
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import ANYTHING
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_object, is_remote
from windrow_core.models import TableInfo, WritePlan
from windrow_spark.hadoop import hadoop_location
from windrow_spark.writing.expressions import quoted
from windrow_spark.writing.file_options import FileOptions
from windrow_spark.writing.placing import place_with_bucket
from windrow_tables.commits.errors import UnfitLocationError
from windrow_tables.commits.inventories import list_files

_BEGUN = b"begun"
_FIRST_TASK = "part-00000-"
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
_NO_FILE_SYSTEM = (
    "this Spark cannot write there: start it with the package org.apache.hadoop:hadoop-aws in the "
    "version of its Hadoop (spark.jars.packages), or write with Spark, then refresh the table"
)
# Of Spark's writer, for files that are moved into tables, or kept beside them.
_REMOTE_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
STAGING_OPTIONS = {
    **_REMOTE_OPTIONS,
    # Hadoop's usual local file system also writes a checksum for each file, and starts three more
    # processes per file to set permissions. S3A insists on it for what it buffers on the disk.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
# The other way of Hadoop's committer makes folders, which on S3 are objects that nothing removes.
_NO_OPTIONS = FileOptions()
_OBJECT_OPTIONS = {"mapreduce.fileoutputcommitter.algorithm.version": "1"}


def stage(
    df: DataFrame,
    plan: WritePlan,
    table: TableInfo,
    folder: str,
    arrival: Observation | None = None,
    *,
    order: Sequence[Column] = (),
    file_options: FileOptions = _NO_OPTIONS,
) -> None:
    """Place rows as planned, and write them as Parquet files below a folder.

    Args:
        df: Rows with the columns of the table.
        plan: A plan for the table.
        table: The table, for its partition columns, buckets, sort columns and codec.
        folder: Absolute path, or URI, that the driver and all executors can reach.
        arrival: Observes `sums_of` the rows in the tasks that write them.
        order: What the rows of each file are sorted by, after the table's sort columns.
        file_options: How files are made.
    """
    uri = hadoop_location(df.sparkSession, folder)
    if uri is None:
        raise UnfitLocationError(table.name, table.definition.location, _NO_FILE_SYSTEM)
    rows, bucket = place_with_bucket(df, plan, table, arrival, order)
    columns = [column.name for column in plan.partition_columns]
    # One folder per bucket, so that no scheme puts two buckets into one file.
    folders = [*columns, *([bucket] if bucket is not None else [])]
    rows = rows.select(*map(quoted, [*df.columns, *folders[len(columns) :]]))
    options = _REMOTE_OPTIONS if is_remote(folder) else STAGING_OPTIONS
    writer = rows.write.mode("append").options(**file_options.options).options(**options)
    if is_object(folder):
        _begin(folder)
        writer = writer.options(**_OBJECT_OPTIONS)
    codec = None
    if file_options.follows_files(df.sparkSession):
        codec = newest_codec(table.definition.location)
    if codec is not None:
        writer = writer.option("compression", codec)
    if folders:
        writer = writer.partitionBy(*folders)
    writer.parquet(uri)
    if is_remote(folder):
        _tidy_remote(StoreRoot(folder), bucket)
    else:
        _tidy(Root(folder), bucket)


def _begin(folder: str) -> None:
    """Keep Hadoop from making an object that stands for a folder: it does not if there is a file."""
    StoreRoot(folder).write_file("_begun", _BEGUN)


def move_staged(folder: str, moves: Collection[tuple[str, str]]) -> None:
    """Move staged files to other paths, which are free.

    Args:
        folder: Absolute path, or URI, of the folder of a write's data, which holds nothing else.
        moves: The path of each file now and then, below the folder.
    """
    if is_remote(folder):
        _move_remote(StoreRoot(folder), moves)
        return
    root = Root(folder)
    for above in {os.path.dirname(target) for _, target in moves}:
        root.make_folder(above)
    for source, target in moves:
        root.move(source, target, ANYTHING)


def _move_remote(root: StoreRoot, moves: Collection[tuple[str, str]]) -> None:
    for _ in root.bring(moves, ANYTHING):
        pass
    root.remove_files((source for source, _ in moves), ANYTHING)


def remove_staged(folder: str, name: str) -> None:
    """Remove a folder of staged files with all that it holds, as far as that is possible now.

    Args:
        folder: Absolute path, or URI, of the folder of a write's data, which holds nothing else.
        name: The folder to remove, below it.
    """
    with suppress(OSError):
        if is_remote(folder):
            StoreRoot(folder).remove_tree(name, ANYTHING)
        else:
            Root(folder).remove_tree(name, ANYTHING)


def newest_codec(location: str) -> str | None:
    """Return Spark's name for the codec of a table's newest file; None if there is no file.

    Only the folder whose name sorts last is searched, which takes one listing per level.
    """
    folder = re.sub(r"^file:(//)?", "", location)
    try:
        while True:
            folders, states = contents_of(folder)
            files = [name for name in states if not is_hidden(name)]
            if files:
                newest = max(files, key=lambda name: states[name].mtime_ns or 0)
                with open_file("/", f"{folder}/{newest}") as source:
                    metadata = pq.read_metadata(source.file)
                return _CODECS.get(metadata.row_group(0).column(0).compression)
            folders = [name for name in folders if not is_hidden(name)]
            if not folders:
                return None
            folder = f"{folder}/{max(folders)}"
    except (OSError, pa.ArrowException, IndexError):
        return None


def _tidy_remote(root: StoreRoot, bucket: str | None) -> None:
    """Do as `_tidy` on a store."""
    moves, empty = [], []
    for path in list_files(root.uri)["path"].to_pylist():
        above, _, name = path.rpartition("/")
        parent, _, last = above.rpartition("/")
        number = last.removeprefix(f"{bucket}=") if bucket is not None else last
        if number != last:
            moves.append((path, f"{parent}/{_bucket_name(name, int(number))}".lstrip("/")))
        elif not above and name.startswith(_FIRST_TASK):
            end = read_part(root.uri_of(path), start=-_END_BYTES)
            if end.state.size_bytes == _MAGIC_BYTES + _END_BYTES + footer_bytes_in(
                bytes(end.content)
            ):
                empty.append(path)
    _move_remote(root, moves)
    root.remove_files(empty, ANYTHING)


def _tidy(root: Root, bucket: str | None) -> None:
    """Keep only data files that have rows, in the folders of partitions.

    Args:
        root: Folder that Spark wrote to, which holds nothing else.
        bucket: Column whose folders are dissolved; the names of their files get the bucket's
            number, as in Spark's own files.
    """
    for folder, _, names in os.walk(root.path, topdown=False):
        path = folder.removeprefix(root.path).lstrip("/")
        parent, _, last = path.rpartition("/")
        number = last.removeprefix(f"{bucket}=") if bucket is not None else last
        for name in names:
            file = f"{path}/{name}".lstrip("/")
            if not path and _is_empty(name, f"{folder}/{name}"):
                # Spark's first task leaves one even if it has no rows.
                root.remove_file(file, ANYTHING)
            elif number != last:
                new = f"{parent}/{_bucket_name(name, int(number))}".lstrip("/")
                root.move(file, new, ANYTHING)
        if number != last:
            root.remove_empty(path)


def _is_empty(name: str, file: str) -> bool:
    """Return whether a file of the first task has only a footer, and so no rows."""
    if not name.startswith(_FIRST_TASK):
        return False
    with open(file, "rb") as content:
        content.seek(-_END_BYTES, os.SEEK_END)
        return content.tell() + _END_BYTES == _MAGIC_BYTES + footer_bytes_in(content.read())


def _bucket_name(name: str, bucket: int) -> str:
    parts = _TASK_FILE.fullmatch(name)
    if parts is None:
        raise ValueError(f"Spark named a file {name!r}, which is not part-<task>-<uuid>.c000…")
    return f"{parts['task']}_{bucket:05d}.{parts['rest']}"
