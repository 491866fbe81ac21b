"""An inventory that a caller publishes: what a lister elsewhere knows of a table's files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.inventory.blooms import carried_filters, chosen_columns, filter_struct
from windrow_service.inventory.build import Inventory, PreviousInventory, partitions_of, unchanged
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.partitions import bucket_numbers
from windrow_service.planner.columns import FIXED_FIELDS, inventory_schema

_REQUIRED = ("path", "size_bytes", "mtime_ns", "row_count")
_OPTIONAL = ("bucket", "hosts", "row_group_offsets", "delete_count", "delete_bytes")
# What makes a path climb out of the table's folder, or stand for another path.
_NOT_CANONICAL = r"^/|/$|//|\x00|(^|/)\.{1,2}(/|$)"


def read_published(stream: pa.Buffer, max_bytes: int) -> pa.Table:
    """Decode the Arrow IPC stream of a published inventory.

    Args:
        stream: The bytes as they were sent.
        max_bytes: Most bytes that it may decode to.

    Raises:
        InvalidInventoryError: It is not a whole Arrow stream, or decodes to too much.
    """
    batches: list[pa.RecordBatch] = []
    size_bytes = 0
    try:
        with pa.ipc.open_stream(stream) as reader:
            for batch in reader:
                size_bytes += batch.nbytes
                if size_bytes > max_bytes:
                    raise InvalidInventoryError(f"it holds more than {max_bytes:,} bytes")
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        table.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidInventoryError(f"it is not an Arrow IPC stream: {error}") from error
    return table


def accept_inventory(
    published: pa.Table,
    *,
    columns: pa.Schema,
    partition_types: pa.Schema | None,
    bucket_count: int | None,
    previous: PreviousInventory | None,
    bloom: Sequence[str] = (),
) -> Inventory:
    """Check a published inventory and give it the form of one taken here.

    Statistics and Bloom filters are not published: of files that the previous inventory has,
    unchanged, they are carried over, of others they are unknown.

    Args:
        published: `path`, `size_bytes`, `mtime_ns`, `row_count`, and where known `bucket`,
            `hosts`, `row_group_offsets`, `delete_count` and `delete_bytes`; in any order.
        columns: The table's columns; those that are partition columns are left out.
        partition_types: The table's declared partition columns; read off the paths where None.
        bucket_count: Of the table's bucket spec; None where it has none.
        previous: Of the same table, under the same definition.
        bloom: Columns to keep Bloom filters for.

    Raises:
        InvalidInventoryError: A column is missing or of another type, or a row cannot be.
        InventoryError: The paths do not form partitions, or name buckets that cannot be.
    """
    files = _checked(published)
    files = files.take(pc.sort_indices(files["path"])).combine_chunks()
    _refuse_rows("path", pc.equal(files["path"][1:], files["path"][:-1]), files, "stands twice")
    partitions = partitions_of(files, None, partition_types, previous)
    folders = {name.lower() for name in partitions.schema.names}
    data_schema = pa.schema([field for field in columns if field.name.lower() not in folders])
    chosen = chosen_columns(bloom, data_schema)
    schema = inventory_schema(data_schema, partitions.schema, chosen)
    kept = unchanged(files, previous)
    carried = previous.files.take(kept) if previous else schema.empty_table().take(kept)
    filters = carried_filters(chosen, kept, previous.files if previous else None)
    empty_lists = pa.array(np.zeros(len(files) + 1, np.int32))
    found = {name: files[name] for name in files.column_names}
    if "bucket" not in found:
        found["bucket"] = bucket_numbers(files["path"], bucket_count)
    for name, values in (("hosts", pa.string()), ("row_group_offsets", pa.int64())):
        if name not in found:
            found[name] = pa.ListArray.from_arrays(empty_lists, pa.array([], values))
    for name, count_type in (("delete_count", pa.int32()), ("delete_bytes", pa.int64())):
        if name not in found:
            found[name] = pa.array(np.zeros(len(files)), count_type)
    found["stats_see_nan"] = carried["stats_see_nan"].fill_null(False)
    found["stats"] = _stats(carried, schema.field("stats").type)
    found["partition"] = partitions.values
    found["bloom"] = filter_struct(filters)
    kept_count = len(kept) - kept.null_count
    return Inventory(
        files=pa.table([found[name] for name in schema.names], schema=schema),
        data_schema=data_schema,
        partition_schema=partitions.schema,
        added_count=len(files) - kept_count,
        removed_count=(len(previous.files) if previous else 0) - kept_count,
        folder_count=0,
        footers_read=0,
    )


def _stats(carried: pa.Table, type_: pa.StructType) -> pa.Array:
    """Return statistics without nulls of their own: all unknown where nothing was carried."""
    stats = carried["stats"].combine_chunks()
    if isinstance(stats, pa.ChunkedArray):
        stats = pa.concat_arrays(stats.chunks) if stats.num_chunks else pa.array([], type_)
    if not type_.num_fields:
        return pa.Array.from_buffers(type_, len(carried), [None])
    columns = [pc.struct_field(stats, [index]) for index in range(type_.num_fields)]
    return pa.StructArray.from_arrays(columns, fields=list(type_))


def _checked(published: pa.Table) -> pa.Table:
    types = {field.name: field for field in FIXED_FIELDS}
    columns = {}
    for name in published.column_names:
        if name not in _REQUIRED + _OPTIONAL:
            known = ", ".join(_REQUIRED + _OPTIONAL)
            raise InvalidInventoryError(f"column {name!r} is not known; send {known}")
    for name in _REQUIRED:
        if name not in published.column_names:
            raise InvalidInventoryError(f"column {name!r} is missing")
    for name in published.column_names:
        column, field = published[name], types[name]
        try:
            column = column.cast(field.type)
        except pa.ArrowException as error:
            raise InvalidInventoryError(
                f"column {name!r} is {column.type}, and not all of it fits {field.type}: {error}"
            ) from error
        if not field.nullable:
            _refuse_rows(name, pc.is_null(column), published, "is null")
        columns[name] = column
    files = pa.table(columns)
    _refuse_rows(
        "path", pc.match_substring_regex(files["path"], _NOT_CANONICAL), files, "is not canonical"
    )
    _refuse_rows("path", pc.equal(files["path"], ""), files, "is empty")
    for name in ("hosts", "row_group_offsets"):
        if name in columns:
            nulls = pc.is_null(pc.list_flatten(files[name]))
            parents = pc.list_parent_indices(files[name]).filter(nulls)
            _refuse_rows(name, _flags(parents, len(files)), files, "holds null")
    for name in ("size_bytes", "row_count", "bucket", "delete_count", "delete_bytes"):
        if name in columns:
            _refuse_rows(name, pc.fill_null(pc.less(files[name], 0), False), files, "is negative")
    return files


def _flags(rows: pa.ChunkedArray, count: int) -> pa.Array:
    flags = np.zeros(count, np.bool_)
    flags[rows.to_numpy()] = True
    return pa.array(flags)


def _refuse_rows(name: str, wrong: pa.ChunkedArray, files: pa.Table, what: str) -> None:
    rows = pc.indices_nonzero(wrong)
    if len(rows):
        row = rows[0].as_py()
        value = files[name][row].as_py()
        raise InvalidInventoryError(f"column {name!r}, row {row}: {value!r} {what}")
