"""Take the inventory of a table: list its files, read the footers of those that are new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.files.arrays import flat
from windrow.files.assemble import footer_columns
from windrow.files.entries import ScanFolder, in_folders
from windrow.files.limits import MAX_FOOTER_BYTES
from windrow.files.schema import (
    ColumnNames,
    FileSchema,
    data_schema_of,
    declared_data,
)
from windrow_service.inventory.errors import PartitionLayoutError, SchemaConflictError
from windrow_service.inventory.footers.blooms import (
    build_missing,
    carried_filters,
    chosen_columns,
    filter_struct,
)
from windrow_service.inventory.footers.reading import read_with
from windrow_service.inventory.listing.partitions import (
    Partitions,
    bucket_numbers,
    partition_columns,
)
from windrow_service.inventory.listing.relisting import KnownListing, list_again
from windrow_service.inventory.manifests.row_changes import differing
from windrow_service.inventory.progress import OnProgress, ProgressMeter
from windrow_service.planner.columns import inventory_schema

_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The files of a table at one moment.

    Attributes:
        files: `inventory_schema(data_schema, partition_schema)`, sorted by the bytes of the
            path; `hosts` are empty.
        data_schema: Columns that the files hold, or that were declared.
        partition_schema: Partition columns, in the order of the folders.
        added_count: Files that were not in the previous inventory, or have changed since.
        removed_count: Files of the previous inventory that are gone, or have changed since.
        folder_count: Folders that were listed.
        footers_read: Files whose footer was read; the others were carried over.
        folders: What folders and files were, for the next inventory; None where that tells
            nothing.
    """

    files: pa.Table
    data_schema: pa.Schema
    partition_schema: pa.Schema
    added_count: int
    removed_count: int
    folder_count: int
    footers_read: int
    folders: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousInventory:
    """What an earlier inventory of the same table, under the same definition, found.

    Attributes:
        files: Sorted by path, as `Inventory.files` is.
        has_all_columns: Whether `data_schema` was read off every one of the files, so that a
            column which it lacks is in none of them. Not so where columns were declared or
            files were published: there, nothing is known of other columns.
        folders: What folders and files were, as `Inventory.folders` said of this inventory or
            an earlier one of the table; None where nothing is known.
        full: Whether to list all folders, also those that did not change. They must be if
            `folders` is of an earlier inventory.
    """

    files: pa.Table
    data_schema: pa.Schema
    partition_schema: pa.Schema
    has_all_columns: bool = False
    folders: bytes | None = None
    full: bool = False


def take_inventory(
    location: str,
    *,
    columns: pa.Schema | None = None,
    partition_types: pa.Schema | None = None,
    bucket_count: int | None = None,
    previous: PreviousInventory | None = None,
    on_progress: OnProgress | None = None,
    cancelled: threading.Event | None = None,
    executor: Executor | None = None,
    bloom: Sequence[str] = (),
    scan: ScanFolder | None = None,
    clock_ns: Callable[[], int] = time.time_ns,
    max_footer_bytes: int = MAX_FOOTER_BYTES,
) -> Inventory:
    """List a table's files and say of each what planning needs to know.

    Files whose path, size and time of change are those of the previous inventory are not
    opened: what their footers said is carried over. So a schema that is read off the files
    only grows while any file stays. Give no previous inventory to read everything anew; that
    is needed once to find all columns after declared ones are taken back.

    Args:
        location: Absolute path of the table's folder, or its URI.
        columns: The table's declared columns, which every file must be readable as; read off
            the files where None. They may include partition columns, to declare their types.
        partition_types: All of the table's partition columns; read off the folders where None.
        bucket_count: Of the table's bucket spec; None where it has none.
        previous: To carry over from.
        on_progress: Told about the progress, at a bounded rate.
        cancelled: Set it to stop.
        executor: Where footers are parsed; see `read_footers`.
        bloom: Columns to keep Bloom filters for; a file whose filters were not carried over
            is read for them.
        scan: How one folder is read; as the location asks for by default.
        clock_ns: Tells the time, which folders' times are compared with.
        max_footer_bytes: Of a file.

    Returns:
        An inventory; of no files for an empty folder, with the declared or previous schema.

    Raises:
        InventoryError: `windrow_service.inventory.errors` draws its kinds. It is raised rather
            than leaving out a file.
    """
    meter = ProgressMeter(on_progress, cancelled)
    known = None
    if previous is not None:
        known = KnownListing(files=previous.files, state=previous.folders, full=previous.full)
    listing = list_again(location, meter, known, scan, clock_ns)
    files = listing.files
    partitions = _partitions_with(listing.empty, files, columns, partition_types, previous)
    buckets = bucket_numbers(files["path"], bucket_count)
    same_rows = unchanged(files, previous)
    kept_rows = pc.if_else(pa.array(listing.replaced), pa.scalar(None, same_rows.type), same_rows)
    kept_count = len(kept_rows) - kept_rows.null_count
    reader = _FooterReader(
        location, files, columns, partitions.schema, meter, executor, max_footer_bytes
    )
    try:
        data_schema, footers, read_count = reader.read(kept_rows, previous)
    except SchemaConflictError:
        if kept_count == 0:
            raise
        # The type in the way may be that of a file which is gone; and if it is not, only the
        # files themselves tell which of them to name.
        nothing_kept = pa.nulls(files.num_rows, kept_rows.type)
        data_schema, footers, read_count = reader.read(nothing_kept, None)
    chosen = chosen_columns(bloom, data_schema) if len(files) else []
    schema = inventory_schema(data_schema, partitions.schema, chosen)
    filters = carried_filters(chosen, kept_rows, previous.files if previous else None)
    filters = build_missing(filters, location, files, meter, executor)
    found = {
        "bloom": filter_struct(filters),
        **{name: files[name] for name in files.column_names},
        **{name: footers[name] for name in footers.column_names},
        "bucket": buckets,
        "hosts": _hosts(same_rows, previous),
        **_deletes(same_rows, previous),
        "partition": partitions.values,
    }
    inventory = pa.table([found[name] for name in schema.names], schema=schema)
    same_count = kept_count
    if previous is not None:
        again = pc.and_(pa.array(listing.replaced), same_rows.is_valid())
        same_count += _count_same(inventory.filter(again), previous, same_rows.filter(again))
    return Inventory(
        files=inventory,
        data_schema=data_schema,
        partition_schema=partitions.schema,
        added_count=files.num_rows - same_count,
        removed_count=(previous.files.num_rows if previous else 0) - same_count,
        folder_count=listing.folder_count,
        footers_read=read_count,
        folders=listing.state,
    )


def _count_same(files: pa.Table, previous: PreviousInventory, rows: pa.Array) -> int:
    """Return how many files that were read again are what they were in the previous inventory."""
    if not len(files) or files.schema != previous.files.schema:
        return 0
    return int((~differing(files, previous.files.take(rows))).sum())


def _partitions_with(
    empty: pa.Table,
    files: pa.Table,
    columns: pa.Schema | None,
    partition_types: pa.Schema | None,
    previous: PreviousInventory | None,
) -> Partitions:
    """Return the partition columns of files, typed as if empty ones were among them."""
    everything = pa.concat_tables([files, in_folders(empty)])
    partitions = partitions_of(everything, columns, partition_types, previous)
    return replace(partitions, values=partitions.values.slice(0, len(files)))


@dataclass(frozen=True, slots=True)
class _FooterReader:
    """Gets at what the footers of listed files say, by reading as few as it may."""

    location: str
    files: pa.Table
    declared: pa.Schema | None
    partition_schema: pa.Schema
    meter: ProgressMeter
    executor: Executor | None
    max_footer_bytes: int

    def read(
        self, kept_rows: pa.Array, previous: PreviousInventory | None
    ) -> tuple[pa.Schema, pa.Table, int]:
        """Return the data columns, the footer columns and how many footers were read.

        Args:
            kept_rows: For each file its row in `previous`, null where it is to be read.
            previous: To carry over from.
        """
        declared = self.declared
        if declared is not None:
            declared = declared_data(declared, self.partition_schema.names)
        if previous is not None and declared is not None and declared != previous.data_schema:
            kept_rows = pa.nulls(len(kept_rows), kept_rows.type)
        fresh = pc.indices_nonzero(pc.is_null(kept_rows))
        groups = read_with(
            self.location,
            self.files.take(fresh),
            self.meter,
            self.executor,
            self.max_footer_bytes,
        )
        groups = [group.at_rows(fresh) for group in groups]
        sources = [group.files for group in groups]
        # Once none of its files is left, an old schema binds nobody.
        if previous is not None and (len(fresh) < len(kept_rows) or len(kept_rows) == 0):
            sources.insert(0, FileSchema(previous.data_schema, ""))
        data_schema = data_schema_of(declared, sources, self.partition_schema.names)
        kept = None
        if previous is not None and len(fresh) < len(kept_rows):
            kept = previous.files.take(pc.drop_null(kept_rows)).append_column(
                "row", pc.cast(pc.indices_nonzero(pc.is_valid(kept_rows)), pa.int64())
            )
        footers = footer_columns(
            groups,
            kept,
            previous.data_schema if previous is not None else _NO_COLUMNS,
            data_schema,
            file_count=len(kept_rows),
            kept_has_all=previous is not None and previous.has_all_columns,
            check=self.meter.check_cancelled,
        )
        return data_schema, footers, len(fresh)


def partitions_of(
    files: pa.Table,
    columns: pa.Schema | None,
    partition_types: pa.Schema | None,
    previous: PreviousInventory | None,
) -> Partitions:
    """Return the partition columns of listed files; those declared or known if there are none.

    Raises:
        InventoryError: See `partition_columns`; or the folders are not those declared.
    """
    if files.num_rows == 0:
        schema = partition_types
        if schema is None:
            schema = previous.partition_schema if previous is not None else _NO_COLUMNS
        return Partitions(schema=schema, values=pa.array([], pa.struct(list(schema))))
    partitions = partition_columns(
        files["path"], partition_types if partition_types is not None else columns
    )
    if partition_types is not None:
        path = files["path"][0].as_py()
        found, wanted = ColumnNames(partitions.schema), ColumnNames(partition_types)
        for name in partition_types.names:
            if found.find(name) is None:
                reason = f"it lies in no folder {name}=…, although that is declared as a partition"
                raise PartitionLayoutError(path, "", reason)
        for name in partitions.schema.names:
            if wanted.find(name) is None:
                reason = f"it lies in a folder {name}=…, which is not declared as a partition"
                raise PartitionLayoutError(path, "", reason)
    return partitions


def _hosts(kept_rows: pa.Array, previous: PreviousInventory | None) -> pa.Array:
    """Return the hosts that were published of unchanged files; a listing tells none."""
    if previous is None or not len(previous.files):
        lists = pa.array(np.zeros(len(kept_rows) + 1, np.int32))
        return pa.ListArray.from_arrays(lists, pa.array([], pa.string()))
    hosts = previous.files["hosts"].take(kept_rows)
    return hosts.fill_null(pa.scalar([], hosts.type)).combine_chunks()


def _deletes(kept_rows: pa.Array, previous: PreviousInventory | None) -> dict[str, pa.Array]:
    """Return what was published of unchanged files' delete files; a listing tells none."""
    known = previous.files if previous is not None else None
    return {
        name: known[name].take(kept_rows).fill_null(0)
        if known is not None
        else pa.array(np.zeros(len(kept_rows)), type_)
        for name, type_ in (("delete_count", pa.int32()), ("delete_bytes", pa.int64()))
    }


def unchanged(files: pa.Table, previous: PreviousInventory | None) -> pa.Array:
    """Return for each file its row in the previous inventory; null where new or changed."""
    if previous is None or previous.files.num_rows == 0:
        return pa.nulls(files.num_rows, pa.int32())
    rows = pc.index_in(files["path"], previous.files["path"])
    same = pc.is_valid(rows)
    for name in ("size_bytes", "mtime_ns"):
        same = pc.and_(
            same, pc.fill_null(pc.equal(previous.files[name].take(rows), files[name]), False)
        )
    return flat(pc.if_else(same, rows, pa.scalar(None, rows.type)))
