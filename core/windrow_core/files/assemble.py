"""Assembles inventories from listed files and their footers, which were read now or before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat as in_one
from windrow_core.files.arrays import lists_of, make_struct
from windrow_core.files.bounds import fit_bounds
from windrow_core.files.chunks import FooterGroup
from windrow_core.files.rows import (
    EXCERPT_FIELDS,
    FOOTER_COLUMNS,
    NAME_LISTS,
    ROW_COLUMN,
    STATS,
    rows_of,
    stats_field,
)
from windrow_core.files.schema import ColumnNames
from windrow_core.files.types import has_order, spark_type

# The list of names for columns whose type in a file differs from the table's: only the grouped
# reader returns them in the table's type, or only Spark's own reader.
Evolved: TypeAlias = Literal["grouped_columns", "native_columns"]


class _Checked:
    """Columns to iterate over; each takes long, so the caller may stop the work between them."""

    def __init__(self, fields: list[pa.Field], check: Callable[[], None]) -> None:
        self._fields = fields
        self._check = check

    def __iter__(self) -> Iterator[pa.Field]:
        for field in self._fields:
            self._check()
            yield field


def footer_columns(
    groups: Iterable[FooterGroup],
    previous: pa.Table | None,
    kept_schema: pa.Schema,
    data_schema: pa.Schema,
    *,
    file_count: int,
    kept_has_all: bool,
    evolved: Evolved = "grouped_columns",
    check: Callable[[], None] = lambda: None,
) -> pa.Table:
    """Assemble the footers of the n files of a table.

    A column that a file is known to lack is all null there. An empty file has no footer, and so
    no rows.

    Args:
        groups: Footers that were read.
        previous: Rows of the previous inventory to carry over, with a column `row`.
        kept_schema: Data columns of the previous inventory.
        data_schema: Data columns of the table.
        file_count: n.
        kept_has_all: Whether files that are carried over are known to lack every column that
            `kept_schema` lacks; otherwise nothing is known about these columns.
        evolved: The list of names for columns whose type in a file differs from the table's.
        check: Called between columns; raises to stop.

    Returns:
        `FOOTER_COLUMNS` and `stats`, ordered by `row`.
    """
    fields = _Checked([field for field in data_schema if has_order(field.type)], check)
    parts = [
        with_named(_from_group(group, fields), evolved, unlike(group.files.schema, data_schema))
        for group in groups
    ]
    if previous is not None:
        rows = _from_previous(previous, kept_schema, fields, has_all=kept_has_all)
        parts.append(with_named(rows, evolved, unlike(kept_schema, data_schema)))
    table = pa.concat_tables(parts) if parts else _flat_schema(fields).empty_table()
    if len(table) < file_count:
        empty = np.setdiff1d(np.arange(file_count), table["row"].to_numpy())
        table = pa.concat_tables([table, _of_empty(empty, fields)])
    rows = table["row"].to_numpy()
    if not np.array_equal(rows, np.arange(len(rows))):
        table = table.take(pa.array(np.argsort(rows, kind="stable")))
    return _nested(table.combine_chunks(), fields)


def published_files(
    listing: pa.Table, groups: Iterable[FooterGroup], data_schema: pa.Schema
) -> pa.Table:
    """Return listed files in the form in which they are published; all footers must have been read.

    Args:
        listing: Path, size and time of change of each file.
        groups: Their footers.
        data_schema: Data columns of the table, which the result's metadata lists.
    """
    footers = footer_columns(
        groups, None, data_schema, data_schema, file_count=len(listing), kept_has_all=False
    ).drop_columns(list(EXCERPT_FIELDS))
    columns = dict(zip(listing.column_names, listing.columns, strict=True))
    columns |= dict(zip(footers.column_names, footers.columns, strict=True))
    names = [{"name": field.name, "type": spark_type(field.type)} for field in data_schema]
    return pa.table(columns).replace_schema_metadata({"windrow:columns": json.dumps(names)})


def unlike(source: pa.Schema, target: pa.Schema) -> list[str]:
    """Return the names, in lower case, of columns whose type differs from the wanted type."""
    types = {field.name.lower(): field.type for field in target}
    return [
        field.name.lower()
        for field in source
        if types.get(field.name.lower(), field.type) != field.type
    ]


def with_named(files: pa.Table, column: Evolved, names: Sequence[str]) -> pa.Table:
    """Return files with names added to the lists of columns that only one of the readers reads.

    Args:
        files: Files with lists of names; the lists come back sorted, and null lists stay null.
        column: The column of the lists.
        names: The names to add, in lower case.
    """
    lists = in_one(files[column])
    with_lists = np.flatnonzero(lists.is_valid())
    values = lists.flatten()
    if not len(with_lists) or not len(values) + len(names):
        return files
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    rows = np.append(np.repeat(np.arange(len(lists)), counts), np.repeat(with_lists, len(names)))
    more = pa.array(list(names) * len(with_lists), pa.string())
    encoded = pa.concat_arrays([values, more]).dictionary_encode()
    ranks = np.argsort(pc.sort_indices(encoded.dictionary))
    width = len(ranks)
    cells = np.unique(rows * width + ranks[np.asarray(encoded.indices)])
    offsets = np.searchsorted(cells, np.arange(len(lists) + 1) * width).astype(np.int32)
    in_order = encoded.dictionary.take(pc.sort_indices(encoded.dictionary))
    union = pa.ListArray.from_arrays(
        pa.array(offsets), in_order.take(pa.array(cells % width)), mask=lists.is_null()
    )
    at = files.schema.get_field_index(column)
    return files.set_column(at, files.schema.field(at), union)


def _flat_schema(fields: Iterable[pa.Field]) -> pa.Schema:
    stats = [
        pa.field(f"{index}.{part.name}", part.type)
        for index, field in enumerate(fields)
        for part in stats_field(field).type
    ]
    columns = [(name, ROW_COLUMN[name].type) for name in FOOTER_COLUMNS]
    return pa.schema([("row", pa.int64()), *columns, *stats])


def _of_empty(rows: npt.NDArray[np.int64], fields: Iterable[pa.Field]) -> pa.Table:
    count = len(rows)
    certain = {"row": pa.array(rows, pa.int64()), "row_count": pa.array(np.zeros(count, np.int64))}
    certain |= dict.fromkeys(NAME_LISTS, lists_of(pa.array([], pa.string()), count))
    schema = _flat_schema(fields)
    stats = {
        field.name: pa.nulls(count, field.type) for field in schema if field.name not in ROW_COLUMN
    }
    return rows_of(stats | certain, schema, count)


def _from_group(group: FooterGroup, fields: Iterable[pa.Field]) -> pa.Table:
    table = group.table
    columns = [table[name] for name in ("row", *FOOTER_COLUMNS)]
    columns_in_files = ColumnNames(group.files.schema)
    with_bounds = ColumnNames(group.bounded)
    for field in fields:
        index = with_bounds.find(field.name)
        if index is not None:
            columns += [fit_bounds(table[f"{index}.{end}"], field.type) for end in ("min", "max")]
            columns.append(table[f"{index}.nulls"])
        else:
            at = columns_in_files.find(field.name)
            all_null = at is None or pt.is_null(group.files.schema.field(at).type)
            columns += _without_bounds(table["row_count"], field.type, all_null=all_null)
    return pa.table(columns, schema=_flat_schema(fields))


def _from_previous(
    previous: pa.Table, schema: pa.Schema, fields: Iterable[pa.Field], *, has_all: bool
) -> pa.Table:
    columns = [previous[name] for name in ("row", *FOOTER_COLUMNS)]
    stats = previous["stats"].flatten()
    names = previous["stats"].type
    data_columns = ColumnNames(schema)
    for field in fields:
        at = data_columns.find(field.name)
        if at is None or not has_order(schema.field(at).type):
            all_null = has_all and (at is None or pt.is_null(schema.field(at).type))
            columns += _without_bounds(previous["row_count"], field.type, all_null=all_null)
            continue
        *ends, nulls = stats[names.get_field_index(schema.field(at).name)].flatten()
        columns += [fit_bounds(end, field.type) for end in ends]
        columns.append(nulls)
    return pa.table(columns, schema=_flat_schema(fields))


def _without_bounds(
    row_counts: pa.ChunkedArray, type_: pa.DataType, *, all_null: bool
) -> list[pa.Array | pa.ChunkedArray]:
    nothing = pa.nulls(len(row_counts), type_)
    return [
        nothing,
        nothing,
        row_counts if all_null else pa.nulls(len(row_counts), pa.int64()),
    ]


def _nested(flat: pa.Table, fields: Iterable[pa.Field]) -> pa.Table:
    columns, stats_fields = [], []
    for index, field in enumerate(fields):
        stats_fields.append(stats_field(field))
        parts = [in_one(flat[f"{index}.{name}"]) for name in STATS]
        columns.append(pa.StructArray.from_arrays(parts, fields=list(stats_fields[-1].type)))
    stats = make_struct(columns, stats_fields, flat.num_rows)
    return flat.select(FOOTER_COLUMNS).append_column("stats", stats)
