"""Take the inventory of a table: list its files, and read the footers of new ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.files.errors import SchemaConflictError
from windrow_core.files.excerpts.chunk_ranges import WHOLE_FILE_BYTES
from windrow_core.files.listing import ScanFolder
from windrow_core.files.places import place_of
from windrow_core.files.remote import scan_of
from windrow_core.files.rows import EXTRA_FIELDS, columns_from, inventory_schema, rows_of
from windrow_core.files.schema import (
    ColumnNames,
)
from windrow_service.inventory.contents import FooterContents
from windrow_service.inventory.errors import PartitionLayoutError
from windrow_service.inventory.footers.blooms import (
    build_missing,
    carried_filters,
    chosen_columns,
    filter_struct,
)
from windrow_service.inventory.footers.excerpts import bounded
from windrow_service.inventory.listing.acid_files import with_first_row_ids
from windrow_service.inventory.listing.partition_lists import partitions_in
from windrow_service.inventory.listing.partitions import (
    Partitions,
    bucket_numbers,
    partition_columns,
)
from windrow_service.inventory.listing.relisting import (
    KnownListing,
    with_rewritten,
)
from windrow_service.inventory.listing.walking import without_links
from windrow_service.inventory.look import Inventory, Look, PreviousInventory
from windrow_service.inventory.manifests.row_changes import differing
from windrow_service.inventory.progress import OnProgress, ProgressMeter

_NO_COLUMNS = pa.schema([])
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def take_inventory(
    look: Look,
    previous: PreviousInventory | None = None,
    *,
    on_progress: OnProgress | None = None,
    cancelled: threading.Event | None = None,
    executor: Executor | None = None,
    scan: ScanFolder | None = None,
    clock_ns: Callable[[], int] = time.time_ns,
) -> Inventory:
    """List a table's files, and collect what planning needs to know about each.

    A file with the same path, size and time of change as in the previous inventory is not opened:
    the content of its footer is carried over. A schema that is read from the files therefore only
    grows while any file stays. Pass no previous inventory to read everything anew; this is needed
    once to find all columns after declared columns are removed from the definition.

    Args:
        look: What to look at.
        previous: The inventory to carry over from.
        on_progress: Called with the progress, at a bounded rate.
        cancelled: Set it to stop.
        executor: Where footers are parsed; see `read_with`.
        scan: Reads one folder; by default, as the location requires.
        clock_ns: Returns the current time, which folders' times are compared with.

    Returns:
        An inventory; for an empty folder it has no files, and the declared or previous schema.

    Raises:
        InventoryError: See its subclasses in `windrow_service.inventory.errors`. No file is ever
            left out instead.
    """
    meter = ProgressMeter(on_progress, cancelled)
    earlier = None
    if previous is not None:
        earlier = KnownListing(
            files=previous.files,
            state=previous.folders,
            full=previous.full,
            known_at_ns=previous.made_at_ns,
        )
    location, columns, partition_list = look.location, look.columns, look.partition_list
    folders = None
    if partition_list is not None:
        folders, scan = partition_list.folders.to_pylist(), without_links(scan or scan_of(location))
    listing = look.folders.list_again(
        location, meter, earlier, scan, clock_ns, folders, trusts_folders=look.trusts_folders
    )
    files, paths = listing.files, pa.table({"path": listing.partition_paths})
    if partition_list is None:
        partitions = _partitions_with(paths, files, columns, look.partition_types, previous)
    else:
        assert look.partition_types is not None
        own = paths["path"].slice(0, len(files))
        partitions = partitions_in(partition_list, own, look.partition_types, location)
    buckets = bucket_numbers(files["path"], look.bucket_count)
    same_rows = unchanged(files, previous)
    kept_rows = pc.if_else(pa.array(listing.replaced), pa.scalar(None, same_rows.type), same_rows)
    known_rows = _complete_rows(
        kept_rows,
        previous,
        excerpted=look.file_format.has_excerpts and place_of(location).has_excerpts,
    )
    kept_count = len(known_rows) - known_rows.null_count
    contents = FooterContents(
        look=look,
        files=files,
        partition_schema=partitions.schema,
        meter=meter,
        executor=executor,
    )
    try:
        data_schema, footers, read_count = contents.read(known_rows, previous)
    except SchemaConflictError:
        if kept_count == 0:
            raise
        # The conflicting type may come from a file that is gone. If not, the error must name a
        # file, and only reading all of them shows which one.
        nothing_kept = pa.nulls(files.num_rows, known_rows.type)
        data_schema, footers, read_count = contents.read(nothing_kept, None)
    footers = bounded(footers, files["size_bytes"])
    if look.folders.names_rows:
        footers = with_first_row_ids(files["path"], footers)
    bloom_names = chosen_columns(look.bloom, data_schema) if len(files) else []
    schema = inventory_schema(data_schema, partitions.schema, bloom_names)
    filters = carried_filters(bloom_names, kept_rows, previous.files if previous else None)
    filters = build_missing(filters, location, files, meter, executor, look.file_format.name)
    columns_of_files = {
        "bloom": filter_struct(filters),
        **{name: files[name] for name in files.column_names},
        **{name: footers[name] for name in footers.column_names},
        "bucket": buckets,
        **_published_columns(same_rows, previous),
        **listing.delete_totals,
        "partition": partitions.values,
    }
    inventory = rows_of(columns_of_files, schema, len(files))
    same_count = kept_count
    if previous is not None:
        again = pc.and_(known_rows.is_null(), same_rows.is_valid())
        same_count += _count_same(inventory.filter(again), previous, same_rows.filter(again))
    state = listing.state
    if look.trusts_folders and previous is not None:
        known_paths = pc.is_in(files["path"], flat(previous.files["path"]))
        if pc.sum(known_paths).as_py() not in (None, same_count):
            state = with_rewritten(state)
    return Inventory(
        files=inventory,
        data_schema=data_schema,
        partition_schema=partitions.schema,
        added_count=files.num_rows - same_count,
        removed_count=(previous.files.num_rows if previous else 0) - same_count,
        folder_count=listing.folder_count,
        footers_read=read_count,
        folders=state,
        delete_files=listing.delete_files,
    )


def _complete_rows(
    kept_rows: pa.Array, previous: PreviousInventory | None, *, excerpted: bool
) -> pa.Array:
    """Return the rows to carry over, except those whose footers must be read for newer columns.

    With `excerpted`, these include large files of inventories older than ETags and excerpts.
    """
    if previous is None:
        return kept_rows
    # Null where an older or a published inventory does not know it.
    is_complete = flat(previous.files["grouped_columns"]).is_valid()
    if excerpted:
        small = pc.less_equal(flat(previous.files["size_bytes"]), WHOLE_FILE_BYTES)
        is_complete = pc.and_(is_complete, pc.or_(small, flat(previous.files["etag"]).is_valid()))
    if pc.all(is_complete).as_py():
        return kept_rows
    return flat(pc.if_else(is_complete.take(kept_rows), kept_rows, pa.scalar(None, kept_rows.type)))


def _count_same(files: pa.Table, previous: PreviousInventory, rows: pa.Array) -> int:
    """Return how many files that were read again are the same as in the previous inventory."""
    if not len(files) or files.schema != previous.files.schema:
        return 0
    # Learning more about a file does not change it.
    ignored_names = ["grouped_columns", "etag", *EXTRA_FIELDS]
    one, other = (some.drop_columns(ignored_names) for some in (files, previous.files.take(rows)))
    return int((~differing(one, other)).sum())


def _partitions_with(
    paths: pa.Table,
    files: pa.Table,
    columns: pa.Schema | None,
    partition_types: pa.Schema | None,
    previous: PreviousInventory | None,
) -> Partitions:
    """Return the partition columns of `files`, whose paths are the first of `paths`."""
    partitions = partitions_of(paths, columns, partition_types, previous)
    return replace(partitions, values=partitions.values.slice(0, len(files)))


def partitions_of(
    files: pa.Table,
    columns: pa.Schema | None,
    partition_types: pa.Schema | None,
    previous: PreviousInventory | None,
) -> Partitions:
    """Return the partition columns of listed files; if there are none, the declared or known ones."""
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
        in_folders, in_definition = ColumnNames(partitions.schema), ColumnNames(partition_types)
        for name in partition_types.names:
            if in_folders.find(name) is None:
                reason = f"it is in no folder {name}=…, although that is declared as a partition"
                raise PartitionLayoutError(path, "", reason)
        for name in partitions.schema.names:
            if in_definition.find(name) is None:
                reason = f"it is in a folder {name}=…, which is not declared as a partition"
                raise PartitionLayoutError(path, "", reason)
    return partitions


def _published_columns(
    kept_rows: pa.Array, previous: PreviousInventory | None
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Return what no listing shows, as it was published for unchanged files; else unknown."""
    if previous is None or not len(previous.files):
        return {}
    return {
        column.name: previous.files[column.name].take(kept_rows).fill_null(column.unknown(1)[0])
        for column in columns_from("publisher")
    }


def unchanged(files: pa.Table, previous: PreviousInventory | None) -> pa.Array:
    """Return for each file its row in the previous inventory; null if it is new or changed."""
    if previous is None or previous.files.num_rows == 0:
        return pa.nulls(files.num_rows, pa.int32())
    rows = pc.index_in(files["path"], previous.files["path"])
    same = pc.is_valid(rows)
    for name in ("size_bytes", "mtime_ns"):
        same = pc.and_(
            same, pc.fill_null(pc.equal(previous.files[name].take(rows), files[name]), False)
        )
    # An ETag that is unknown on either side proves nothing.
    other = pc.not_equal(previous.files["etag"].take(rows), files["etag"])
    same = pc.and_not(same, pc.fill_null(other, False))
    return flat(pc.if_else(same, rows, pa.scalar(None, rows.type)))
