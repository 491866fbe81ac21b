"""Take a table's inventory over Spark's executors, as the coordinator would by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from windrow import files
from windrow.files.assemble import footer_columns
from windrow.files.chunks import FooterGroup, joined
from windrow.files.entries import LISTING_SCHEMA, in_folders, unescape, without_empty
from windrow.files.errors import FileChangedError, InventoryError, LocationError
from windrow.files.errors import UnreadableFileError as UnreadableError
from windrow.files.limits import MAX_FOOTER_BYTES
from windrow.files.remote import is_remote
from windrow.files.schema import ColumnNames, FileSchema, check_declared, merge_schemas
from windrow.files.sinks import keep_committed
from windrow.files.types import spark_type
from windrow.models import TableDefinition, TableInfo
from windrow.spark.placement import require_classic
from windrow.spark.types import arrow_schema, spark_schema
from windrow_jobs import tasks
from windrow_jobs.blocks import hosts_of
from windrow_jobs.errors import UnfitFilesError, UnfitTableError
from windrow_jobs.reporting import OnProgress

# What runs in tasks travels with them, so that executors need NumPy and pyarrow alone.
cloudpickle.register_pickle_by_value(files)
cloudpickle.register_pickle_by_value(tasks)

_FILES_PER_CHUNK = 256
_FOLDERS_PER_CHUNK = 64
# Short tasks at the end keep all slots busy, and tell of progress.
_TASKS_PER_SLOT = 8
_MAX_SHOWN_FILES = 10

Chunk = TypeVar("Chunk")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenInventory:
    """The files of a table at one moment, in the form in which they are published.

    Attributes:
        files: Sorted by path. Its schema's metadata lists the columns stored in the files.
        listed_at: When the listing began.
        folder_count: Folders that were listed.
        empty_count: Files of 0 bytes, which are passed over; those in folders are among `files`.
        uncommitted_count: Files that the log of a streaming query does not name.
    """

    files: pa.Table
    listed_at: datetime
    folder_count: int
    empty_count: int
    uncommitted_count: int


def take_inventory(
    spark: SparkSession,
    table: TableInfo,
    on_progress: OnProgress = lambda _: None,
    max_footer_bytes: int = MAX_FOOTER_BYTES,
) -> TakenInventory:
    """List a table's folders and read all footers, over the executors.

    Args:
        spark: A classic session; its executors must reach the table's location.
        table: As the coordinator knows it.
        on_progress: Told what begins now.
        max_footer_bytes: Of a file.

    Raises:
        UnfitTableError: Its files are not Parquet, or it has Bloom filters.
        UnfitFilesError: The files are not a table, or one of them cannot be read.
        SparkConnectError: The session is one of Spark Connect.
    """
    require_classic(spark)
    definition = table.definition
    if definition.format != "parquet":
        raise UnfitTableError(
            table.name, f"is of format {definition.format}: only footers of Parquet are read"
        )
    if definition.bloom_columns:
        raise UnfitTableError(
            table.name,
            "has Bloom filters, which this job does not build: refresh it on the coordinator, or "
            "take its bloom_columns out",
        )
    try:
        return _Taking(spark, definition, on_progress, max_footer_bytes).take()
    except InventoryError as error:
        raise UnfitFilesError(table.name, str(error)) from error


@dataclass(frozen=True, slots=True)
class _Taking:
    spark: SparkSession
    definition: TableDefinition
    on_progress: OnProgress
    max_footer_bytes: int

    def take(self) -> TakenInventory:
        listed_at = datetime.now(timezone.utc)
        location = self.definition.location
        (found,) = self._over_executors(partial(tasks.look_around, location), [None])
        committed, refused = found
        for folder, reason in refused:
            raise LocationError(folder, reason)
        listed, folder_count = self._list()
        uncommitted = listed.schema.empty_table()
        if committed is not None:
            listed, uncommitted = keep_committed(location, listed, tasks.decoded(committed))
        filled, empty = without_empty(listed)
        listed = pa.concat_tables([filled, in_folders(empty)]).sort_by("path").combine_chunks()
        self.on_progress(f"reading {len(listed):,} footers")
        groups = self._read(listed)
        data = self._data_schema(listed, [group.files for group in groups])
        footers = footer_columns(
            groups, None, data, data, file_count=len(listed), kept_has_all=False
        )
        columns = dict(zip(listed.column_names, listed.columns, strict=True))
        columns |= dict(zip(footers.column_names, footers.columns, strict=True))
        # Only there do files lie on hosts that may run tasks.
        if location.startswith("hdfs:"):
            self.on_progress("asking which hosts hold the files")
            columns["hosts"] = hosts_of(self.spark, location, listed["path"])
        named = [{"name": field.name, "type": spark_type(field.type)} for field in data]
        metadata = {"windrow:columns": json.dumps(named)}
        return TakenInventory(
            files=pa.table(columns).replace_schema_metadata(metadata),
            listed_at=listed_at,
            folder_count=folder_count,
            empty_count=len(empty),
            uncommitted_count=len(uncommitted),
        )

    def _list(self) -> tuple[pa.Table, int]:
        """Return all files by path, and the number of folders."""
        location = self.definition.location
        per_chunk = 1 if is_remote(location) else _FOLDERS_PER_CHUNK
        found: list[pa.Table] = [LISTING_SCHEMA.empty_table()]
        folders, folder_count = [""], 0
        while folders:
            self.on_progress(f"listing {len(folders):,} folders")
            folder_count += len(folders)
            chunks = _cut(folders, per_chunk)
            answers = self._over_executors(partial(tasks.list_folders, location), chunks)
            folders = []
            for content, below, failed in answers:
                for folder, reason in failed:
                    raise LocationError(folder, reason)
                found.append(tasks.decoded(content))
                folders += below
        return pa.concat_tables(found).sort_by("path").combine_chunks(), folder_count

    def _read(self, listed: pa.Table) -> list[FooterGroup]:
        """Return the footers of all files, grouped as the coordinator groups them."""
        location = self.definition.location
        chunks = [
            (start, tasks.encoded(listed.slice(start, _FILES_PER_CHUNK)))
            for start in range(0, len(listed), _FILES_PER_CHUNK)
        ]
        read = partial(tasks.read_footers, location, self.max_footer_bytes)
        answers = self._over_executors(read, chunks)
        if unreadable := sorted(file for _, files, _ in answers for file in files):
            raise UnreadableError(tuple(unreadable[:_MAX_SHOWN_FILES]))
        if changed := sorted(path for *_, paths in answers for path in paths):
            raise FileChangedError(tuple(changed[:_MAX_SHOWN_FILES]))
        return joined(_group(*plain) for groups, *_ in answers for plain in groups)

    def _data_schema(self, listed: pa.Table, sources: Sequence[FileSchema]) -> pa.Schema:
        partitions = self._partition_names(listed)
        if self.definition.columns is None:
            return merge_schemas(sources, partitions)
        names = ColumnNames(pa.schema([(name, pa.null()) for name in partitions]))
        declared = arrow_schema(spark_schema(self.definition.columns))
        declared = pa.schema([field for field in declared if names.find(field.name) is None])
        check_declared(declared, sources)
        return declared

    def _partition_names(self, listed: pa.Table) -> list[str]:
        """Return the keys of the folders; the coordinator checks that all agree."""
        if self.definition.partition_columns is not None:
            return [column.name for column in self.definition.partition_columns]
        if not len(listed):
            return []
        folders: list[str] = listed["path"][0].as_py().split("/")[:-1]
        return [unescape(folder.partition("=")[0]) for folder in folders]

    def _over_executors(
        self, work: Callable[[Chunk], Answer], chunks: Sequence[Chunk]
    ) -> list[Answer]:
        """Return what the work makes of each chunk, in their order."""
        context = self.spark.sparkContext
        slots = int(context.defaultParallelism)
        task_count = max(1, min(len(chunks), slots * _TASKS_PER_SLOT))
        answers: list[Answer] = context.parallelize(chunks, task_count).map(work).collect()
        return answers


def _cut(folders: Sequence[str], size: int) -> list[Sequence[str]]:
    return [folders[start : start + size] for start in range(0, len(folders), size)]


def _group(schema: bytes, path: str, bounded: bytes, table: bytes) -> FooterGroup:
    return FooterGroup(FileSchema(_schema(schema), path), _schema(bounded), tasks.decoded(table))


def _schema(content: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(content))
