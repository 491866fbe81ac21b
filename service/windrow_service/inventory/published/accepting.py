"""An inventory, or a change to one, that a caller publishes after listing files elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.rows import (
    NAME_LISTS,
    ROW_COLUMNS,
    bloom_columns,
    inventory_schema,
    rows_of,
)
from windrow_service.inventory.build import partitions_of, unchanged
from windrow_service.inventory.errors import (
    BucketNumberError,
    InvalidInventoryError,
    PartitionLayoutError,
    PartitionValueError,
)
from windrow_service.inventory.footers.blooms import carried_filters, chosen_columns, filter_struct
from windrow_service.inventory.listing.partitions import Partitions, bucket_numbers
from windrow_service.inventory.look import Inventory, PreviousInventory
from windrow_service.inventory.manifests.changes import FileChange
from windrow_service.inventory.manifests.totals import check_files
from windrow_service.inventory.published.columns import (
    REQUIRED,
    PublishedRows,
    cast_column,
    check_names,
)
from windrow_service.inventory.published.size import refuse_beyond, stats_bytes
from windrow_service.planner.pruning.bounds import Bools, mask

_CHANGES = ("added", "removed")


def accept_inventory(
    upload: pa.Table,
    *,
    columns: pa.Schema,
    partition_types: pa.Schema | None,
    bucket_count: int | None,
    previous: PreviousInventory | None,
    bloom: Sequence[str] = (),
    max_bytes: int,
    unknown_rows: bool = False,
) -> Inventory:
    """Check a published inventory, and convert it to the form of one taken here.

    Statistics and Bloom filters that are not published are carried over for files that are
    unchanged since the previous inventory, and unknown for others. A file of 0 bytes is ignored,
    but the partition values of its folders count when their types are inferred.

    Args:
        upload: `path`, `size_bytes`, `mtime_ns`, `row_count` and, if known, the other columns
            of `windrow_core.files.rows`, except `partition`; in any order.
        columns: The table's columns; partition columns among them are left out.
        partition_types: The table's declared partition columns; read from the paths if None.
        bucket_count: From the table's bucket spec; None if it has none.
        previous: The previous inventory of the same table, under the same definition.
        bloom: Columns to keep Bloom filters for.
        max_bytes: Most bytes that the statistics of these files may take, known or not.
        unknown_rows: Whether row counts may be unknown.

    Raises:
        InvalidInventoryError: A column is missing or has the wrong type, a row is invalid, or
            there are too many files for so many columns.
        InventoryError: The paths do not form partitions, or contain invalid bucket numbers.
    """
    check_names(upload)
    refuse_beyond(stats_bytes(len(upload), columns), max_bytes)
    paths = PublishedRows(upload).paths()
    partitions = partitions_of(pa.table({"path": paths}), None, partition_types, previous)
    if not unknown_rows:
        PublishedRows(upload).refuse_unknown_rows()
    rows = PublishedRows(upload, _filled(PublishedRows(upload)))
    if len(rows.numbers) < len(upload):
        numbers = pa.array(rows.numbers)
        paths = paths.take(numbers)
        partitions = replace(partitions, values=partitions.values.take(numbers))
    folders = {name.lower() for name in partitions.schema.names}
    data_schema = pa.schema([field for field in columns if field.name.lower() not in folders])
    schema = inventory_schema(data_schema, partitions.schema, chosen_columns(bloom, data_schema))
    files = _files(rows, paths, partitions, schema, bucket_count)
    previous_rows = unchanged(files, previous)
    if previous is not None and len(previous.files):
        carried = _not_published(upload)
        if data_schema != previous.data_schema:
            # A column whose type changes may be read differently.
            carried = tuple(name for name in carried if name not in NAME_LISTS)
        files = _carry_over(files, previous.files, previous_rows, carried)
    kept_count = len(previous_rows) - previous_rows.null_count
    return Inventory(
        files=_by_path(files),
        data_schema=data_schema,
        partition_schema=partitions.schema,
        added_count=len(files) - kept_count,
        removed_count=(len(previous.files) if previous else 0) - kept_count,
        folder_count=0,
        footers_read=0,
    )


def accept_change(
    upload: pa.Table,
    *,
    schema: pa.Schema,
    bucket_count: int | None,
    max_bytes: int,
    unknown_rows: bool = False,
) -> FileChange:
    """Check a published change of a table's files.

    Args:
        upload: As for `accept_inventory`, and `change`: `added`, or `removed`, for which only
            the path is used. A file that is added again replaces the one before.
        schema: Schema of the table's current inventory.
        bucket_count: From the table's bucket spec; None if it has none.
        max_bytes: As for `accept_inventory`, for the added files.
        unknown_rows: As for `accept_inventory`.

    Raises:
        InvalidInventoryError: As for `accept_inventory`.
    """
    check_names(upload, "change")
    is_added = _is_added(upload)
    ends = [(field.name, field.type.field("min").type) for field in schema.field("stats").type]
    refuse_beyond(stats_bytes(int(is_added.sum()), pa.schema(ends)), max_bytes)
    paths = PublishedRows(upload).paths()
    removals = np.flatnonzero(~is_added)
    removals_table = pa.table({"path": paths.take(pa.array(removals)), "row": removals})
    rows = PublishedRows(upload, np.flatnonzero(is_added))
    carried = _not_published(upload)
    if not len(rows.numbers):
        return FileChange(added=schema.empty_table(), removed=removals_table, carried=carried)
    if not unknown_rows:
        rows.refuse_unknown_rows()
    paths = paths.take(pa.array(rows.numbers))
    partition_schema = pa.schema(list(schema.field("partition").type))
    folders = "".join(f"{name}=…/" for name in partition_schema.names)
    unlike = pc.not_equal(pc.count_substring(paths, "/"), len(partition_schema))
    rows.refuse("path", unlike, paths, f"is not where the table's files are: {folders}name")
    try:
        partitions = partitions_of(pa.table({"path": paths}), None, partition_schema, None)
        if partitions.schema != partition_schema:
            reason = f"the table's files are in {folders}"
            raise PartitionLayoutError(paths[0].as_py(), "", reason)
        additions = _files(rows, paths, partitions, schema, bucket_count)
    except (PartitionLayoutError, PartitionValueError, BucketNumberError) as error:
        where = error.folder if isinstance(error, PartitionValueError) else error.path
        row = rows.numbers[pc.index(pc.starts_with(paths, where), True).as_py()]
        raise InvalidInventoryError(f"column 'path', row {row}: {error}") from error
    # Before anything adds them up: the existing files are within the same limit.
    check_files(additions)
    return FileChange(added=_by_path(additions), removed=removals_table, carried=carried)


def _filled(rows: PublishedRows) -> npt.NDArray[np.int64]:
    """Return the rows of files that are not empty: Spark ignores empty ones."""
    sizes_bytes, row_counts = (rows.column(name) for name in ("size_bytes", "row_count"))
    return np.flatnonzero(sizes_bytes.to_numpy() | row_counts.fill_null(0).to_numpy())


def _is_added(upload: pa.Table) -> Bools:
    if "change" not in upload.column_names:
        raise InvalidInventoryError(f"column 'change' is missing; send {' or '.join(_CHANGES)}")
    change = cast_column("change", upload["change"], pa.string())
    unknown = pc.invert(pc.is_in(change, value_set=pa.array(_CHANGES)))
    PublishedRows(upload).refuse("change", unknown, change, f"is not {' or '.join(_CHANGES)}")
    return mask(pc.equal(change, "added"))


def _not_published(upload: pa.Table) -> tuple[str, ...]:
    """Return the columns that were not published; unchanged files keep their values."""
    kept_without = {column.name: column.kept_without for column in ROW_COLUMNS}
    kept_without |= {"stats": "stats", "bloom": "bloom"}
    return tuple(
        name for name, other in kept_without.items() if other and other not in upload.column_names
    )


def _files(
    rows: PublishedRows,
    paths: pa.ChunkedArray,
    partitions: Partitions,
    schema: pa.Schema,
    bucket_count: int | None,
) -> pa.Table:
    """Return the files in the form of an inventory, in the order in which they were sent."""
    names = rows.table.column_names
    columns = {
        column.name: rows.column(column.name)
        if column.name in names or column.name in REQUIRED
        else column.unknown(len(paths))
        for column in ROW_COLUMNS
    }
    deletes = columns["deletes"]
    reason = "is not null: deletes come only from the log of a table"
    rows.refuse("deletes", deletes.is_valid(), deletes, reason)
    for name in NAME_LISTS:
        columns[name] = _in_lower_case(flat(columns[name]))
    if "bucket" not in names:
        columns["bucket"] = bucket_numbers(paths, bucket_count)
    columns["partition"] = partitions.values
    columns["stats"] = rows.stats(columns["row_count"], schema.field("stats").type)
    columns["bloom"] = filter_struct(rows.bloom(bloom_columns(schema)))
    return rows_of(columns, schema, len(paths))


def _in_lower_case(lists: pa.Array) -> pa.Array:
    names = lists.flatten().dictionary_encode()
    lower = pa.array([name.lower() for name in names.dictionary.to_pylist()], pa.string())
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), lower.take(names.indices), mask=lists.is_null()
    )


def _carry_over(
    files: pa.Table, previous: pa.Table, previous_rows: pa.Array, names: Sequence[str]
) -> pa.Table:
    """Return files, taking the given columns of unchanged files from the previous inventory.

    Args:
        files: n files, for which these columns are unknown.
        previous: The files of the previous inventory.
        previous_rows: For each file its row in `previous`, or null.
        names: Names of the columns.
    """
    for name in names:
        at = files.schema.get_field_index(name)
        if at < 0:
            continue
        type_ = files.schema.field(at).type
        if name == "bloom":
            values = filter_struct(carried_filters(type_.names, previous_rows, previous))
        elif name == "stats":
            values = _carried_stats(previous["stats"], previous_rows, type_)
        elif name == "stats_see_nan":
            values = previous[name].take(previous_rows).fill_null(False)
        else:
            values = previous[name].take(previous_rows)
        files = files.set_column(at, files.schema.field(at), values)
    return files


def _carried_stats(
    stats: pa.ChunkedArray, previous_rows: pa.Array, type_: pa.StructType
) -> pa.Array:
    columns = []
    columns_before = stats.flatten()
    for field in type_:
        at = stats.type.get_field_index(field.name)
        if at >= 0 and columns_before[at].type == field.type:
            ends = [flat(end.take(previous_rows)) for end in columns_before[at].flatten()]
        else:
            # The caller declares another type for the column now.
            ends = [pa.nulls(len(previous_rows), end.type) for end in field.type]
        columns.append(pa.StructArray.from_arrays(ends, fields=list(field.type)))
    return make_struct(columns, list(type_), len(previous_rows))


def _by_path(files: pa.Table) -> pa.Table:
    order = pc.sort_indices(files["path"])
    if np.array_equal(order.to_numpy(), np.arange(len(files))):
        return files
    return files.combine_chunks().take(order)
