"""Spark job: take a table's inventory on the executors, and publish it.

For tables too large for one machine:

    spark-submit spark_jobs/windrow_jobs/inventory.py sales.events --coordinator URL
    python -m windrow_jobs.inventory sales.events --coordinator URL
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TypeVar

import pyarrow as pa
import typer
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import windrow_core
from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import TableChangedError
from windrow_calls.terminal.consoles import show, show_json
from windrow_calls.terminal.listings import FactTable
from windrow_calls.terminal.options import AsJson, TableName
from windrow_core.cards import count_text, seconds_text
from windrow_core.files.assemble import published_files
from windrow_core.files.beginnings import other_kind
from windrow_core.files.chunks import FooterGroup, joined
from windrow_core.files.errors import (
    FileChangedError,
    InventoryError,
    LocationError,
    OtherFormatError,
    UnreadableFootersError,
)
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits
from windrow_core.files.listing import in_folders, unescape, without_empty
from windrow_core.files.places import place_of
from windrow_core.files.rows import LISTING_SCHEMA
from windrow_core.files.schema import FileSchema, data_schema_of, declared_data
from windrow_core.files.sinks import keep_committed
from windrow_core.models import PublishedSnapshot, TableDefinition, TableInfo
from windrow_core.models.cards import snapshot_text
from windrow_jobs import tasks
from windrow_jobs.errors import TableMovedError, UnfitFilesError, UnfitTableError
from windrow_jobs.hosts import hosts_of
from windrow_jobs.running import (
    CoordinatorUrl,
    SparkWhenNeeded,
    Tell,
    coordinator_of_command,
    now_and_then,
    tell_tasks,
    telling,
)
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_spark.interpreter import collected
from windrow_spark.placement import require_classic

# Code that runs in tasks is sent along with them, so executors need only NumPy and pyarrow.
cloudpickle.register_pickle_by_value(windrow_core)
cloudpickle.register_pickle_by_value(tasks)

_FILES_PER_CHUNK = 256
_FOLDERS_PER_CHUNK = 64
# Several short tasks per slot keep all slots busy until the end, and show progress.
_TASKS_PER_SLOT = 8
_MAX_SHOWN_FILES = 10

Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedInventory:
    """The outcome of the job.

    Attributes:
        table: Name of the table.
        snapshot: The published snapshot.
        folder_count: Number of listed folders.
        empty_count: Number of files of 0 bytes, which were skipped.
        uncommitted_count: Number of files missing from the log of a streaming query.
        seconds: Duration of the job, including publishing.
    """

    table: str
    snapshot: PublishedSnapshot
    folder_count: int
    empty_count: int
    uncommitted_count: int
    seconds: float


def publish_inventory(
    spark: SparkSession, client: Coordinator, name: str, on_progress: Tell = lambda _: None
) -> PublishedInventory:
    """Take a table's inventory on the executors and make it the current snapshot.

    Args:
        spark: A classic session, whose executors must have access to the table's location.
        client: Client of the coordinator that knows the table.
        name: Name of the table.
        on_progress: Called with each step.

    Raises:
        UnfitTableError: The job cannot take the inventory of such a table.
        UnfitFilesError: The files are not a table, or one of them cannot be read.
        TableMovedError: The table has changed in the meantime.
        SparkConnectError: The session is one of Spark Connect.
        ProblemError: The coordinator refuses.
    """
    began_s = time.monotonic()
    # Read first, so that any later change is noticed.
    version = client.table_version(name)
    most = client.config().limits
    limits = ReadLimits(most.max_footer_bytes, most.max_fields)
    inventory = take_inventory(spark, client.table(name), on_progress, limits)
    on_progress(f"publishing {count_text(len(inventory.files), 'file')}")
    try:
        snapshot = client.publish(
            name, inventory.files, if_match=version, listed_at=inventory.listed_at
        )
    except TableChangedError as error:
        raise TableMovedError(name) from error
    return PublishedInventory(
        table=name,
        snapshot=snapshot,
        folder_count=inventory.folder_count,
        empty_count=inventory.empty_count,
        uncommitted_count=inventory.uncommitted_count,
        seconds=time.monotonic() - began_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """The files of a table at one moment, in the form to publish.

    Attributes:
        files: Files sorted by path. The schema's metadata lists the columns stored in the files.
        listed_at: When the listing began.
        folder_count: Number of listed folders.
        empty_count: Number of files of 0 bytes, which are skipped; those in partition folders are
            in `files`.
        uncommitted_count: Number of files missing from the log of a streaming query.
    """

    files: pa.Table
    listed_at: datetime
    folder_count: int
    empty_count: int
    uncommitted_count: int


def take_inventory(
    spark: SparkSession,
    table: TableInfo,
    on_progress: Tell = lambda _: None,
    limits: ReadLimits = USUAL_LIMITS,
) -> TableFiles:
    """List a table's folders and read all footers on the executors.

    Args:
        spark: A classic session, whose executors must have access to the table's location.
        table: The table as registered.
        on_progress: Called with each step.
        limits: What is read of one file.
    """
    require_classic(spark)
    definition = table.definition
    kind = definition.kind
    if not kind.files.is_written:
        raise UnfitTableError(
            table.name, f"is of format {kind.files.name}: only footers of Parquet are read"
        )
    if kind.listing_on_spark is not None:
        raise UnfitTableError(table.name, kind.listing_on_spark)
    if definition.listed_partitions or table.partition_count is not None:
        raise UnfitTableError(
            table.name,
            "has a list of partitions, and is refreshed by the coordinator: leave out --on-spark",
        )
    if definition.bloom_columns:
        raise UnfitTableError(
            table.name,
            "has Bloom filters, which this job does not build: refresh it on the coordinator, or "
            "remove its bloom_columns",
        )
    try:
        return _Taking(spark, definition, on_progress, limits).take()
    except InventoryError as error:
        raise UnfitFilesError(table.name, str(error)) from error


@dataclass(frozen=True, slots=True)
class _Taking:
    spark: SparkSession
    definition: TableDefinition
    on_progress: Tell
    limits: ReadLimits

    def take(self) -> TableFiles:
        listed_at = datetime.now(timezone.utc)
        location = self.definition.location
        (look,) = self._over_executors(partial(tasks.look_around, location), [None])
        log, refusals = look
        for folder, reason in refusals:
            raise LocationError(folder, reason)
        listing, folder_count = self._list()
        leftovers = listing.schema.empty_table()
        if log is not None:
            listing, leftovers = keep_committed(location, listing, tasks.decoded(log))
        full, empty = without_empty(listing)
        listing = pa.concat_tables([full, in_folders(empty)]).sort_by("path").combine_chunks()
        self.on_progress(f"reading {count_text(len(listing), 'footer')}")
        groups = self._read(listing)
        data = self._data_schema(listing, [group.files for group in groups])
        rows = published_files(listing, groups, data)
        # Only HDFS stores files on hosts that may run tasks.
        if location.startswith("hdfs:"):
            self.on_progress("asking which hosts hold the files")
            hosts = hosts_of(self.spark, location, listing["path"])
            rows = rows.append_column("hosts", hosts)
        return TableFiles(
            files=rows,
            listed_at=listed_at,
            folder_count=folder_count,
            empty_count=len(empty),
            uncommitted_count=len(leftovers),
        )

    def _list(self) -> tuple[pa.Table, int]:
        """Return all files sorted by path, and the number of folders."""
        location = self.definition.location
        per_chunk = 1 if place_of(location).request_s else _FOLDERS_PER_CHUNK
        listings: list[pa.Table] = [LISTING_SCHEMA.empty_table()]
        folders, folder_count = [""], 0
        while folders:
            self.on_progress(f"listing {count_text(len(folders), 'folder')}")
            folder_count += len(folders)
            chunks = _cut(folders, per_chunk)
            answers = self._over_executors(partial(tasks.list_folders, location), chunks)
            folders = []
            for content, below, failed in answers:
                for folder, reason in failed:
                    raise LocationError(folder, reason)
                listings.append(tasks.decoded(content))
                folders += below
        return pa.concat_tables(listings).sort_by("path").combine_chunks(), folder_count

    def _read(self, listing: pa.Table) -> list[FooterGroup]:
        """Return the footers of all files, grouped as on the coordinator."""
        location = self.definition.location
        chunks = [
            (start, tasks.encoded(listing.slice(start, _FILES_PER_CHUNK)))
            for start in range(0, len(listing), _FILES_PER_CHUNK)
        ]
        read = partial(tasks.read_footers, location, self.limits)
        answers = self._over_executors(read, chunks)
        if unreadable := sorted(file for _, files, _ in answers for file in files):
            if kind := other_kind(location, listing["path"], "parquet"):
                raise OtherFormatError(unreadable[0][0], "parquet", kind)
            raise UnreadableFootersError(tuple(unreadable))
        if changes := sorted(path for *_, paths in answers for path in paths):
            raise FileChangedError(tuple(changes[:_MAX_SHOWN_FILES]))
        return joined(_group(*plain) for groups, *_ in answers for plain in groups)

    def _data_schema(self, listing: pa.Table, sources: Sequence[FileSchema]) -> pa.Schema:
        partitions = self._partition_names(listing)
        data = None
        if self.definition.columns is not None:
            columns = arrow_schema(spark_schema(self.definition.columns))
            data = declared_data(columns, partitions)
        return data_schema_of(data, sources, partitions)

    def _partition_names(self, listing: pa.Table) -> list[str]:
        """Return the keys of the first file's folders; the coordinator checks the others."""
        if self.definition.partition_columns is not None:
            return [column.name for column in self.definition.partition_columns]
        if not len(listing):
            return []
        folders: list[str] = listing["path"][0].as_py().split("/")[:-1]
        return [unescape(folder.partition("=")[0]) for folder in folders]

    def _over_executors(
        self, work: Callable[[Piece], Result], chunks: Sequence[Piece]
    ) -> list[Result]:
        """Return the result of `work` for each chunk, in order."""
        context = self.spark.sparkContext
        slots = int(context.defaultParallelism)
        task_count = max(1, min(len(chunks), slots * _TASKS_PER_SLOT))
        return collected(context.parallelize(chunks, task_count).map(work))


def _cut(folders: Sequence[str], size: int) -> list[Sequence[str]]:
    return [folders[start : start + size] for start in range(0, len(folders), size)]


def _group(schema: bytes, path: str, bounds: bytes, table: bytes) -> FooterGroup:
    return FooterGroup(FileSchema(_schema(schema), path), _schema(bounds), tasks.decoded(table))


def _schema(content: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(content))


def run(
    name: str, client: Coordinator, *, master: str | None = None, as_json: bool = False
) -> None:
    """Start Spark, run the job and print the outcome.

    Args:
        name: Name of the table.
        client: Client of the coordinator that knows the table.
        master: Spark master; taken from Spark's configuration by default.
        as_json: Print only JSON on stdout.
    """
    # Fails early if the table is unknown: starting Spark takes seconds.
    client.table(name)
    with SparkWhenNeeded(f"windrow inventory {name}", master) as start_spark:
        spark = start_spark()
        tell = telling(name, quiet=as_json)
        with now_and_then(partial(tell_tasks, spark, tell)):
            publication = publish_inventory(spark, client, name, tell)
    snapshot = publication.snapshot
    if as_json:
        show_json(
            {
                "table": name,
                "snapshot": snapshot.model_dump(mode="json"),
                "folders_listed": publication.folder_count,
                "files_empty": publication.empty_count,
                "files_uncommitted": publication.uncommitted_count,
                "seconds": round(publication.seconds, 3),
            }
        )
        return
    rows = [
        ("table", name),
        ("snapshot", snapshot_text(snapshot)),
        ("added", f"{snapshot.files_added:,}"),
        ("removed", f"{snapshot.files_removed:,}"),
        ("folders listed", f"{publication.folder_count:,}"),
    ]
    if publication.empty_count:
        rows.append(("files of 0 bytes", f"{publication.empty_count:,}, skipped"))
    if publication.uncommitted_count:
        rows.append(("uncommitted files", f"{publication.uncommitted_count:,}, skipped"))
    show(FactTable([*rows, ("duration", seconds_text(publication.seconds))]))


def _main(
    name: TableName,
    coordinator: CoordinatorUrl,
    as_json: AsJson = False,
) -> None:
    """List a table's files, read their footers on Spark's executors, and publish them."""
    with coordinator_of_command(coordinator) as client:
        run(name, client, as_json=as_json)


if __name__ == "__main__":
    typer.run(_main)
