"""Parquet files as the executor decodes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

# `ParquetFile` builds an index of nested columns for each file, which is a fifth of the cost of a
# small file. This is its `.reader`: the same class and calls since pyarrow 10.
from pyarrow._parquet import ParquetReader

from windrow_core.files.excerpts.alike import Alike, alike_files
from windrow_core.files.excerpts.chunk_ranges import chunk_ranges_in
from windrow_core.files.excerpts.gathered import Gathered
from windrow_core.files.excerpts.joined import JoinedFiles
from windrow_core.files.excerpts.outlines import outline_of
from windrow_core.files.file_fields import is_mapped, position_in
from windrow_core.files.footers import footer_in, row_group_start, rows_in
from windrow_core.files.schema import fields_in, leaf_count
from windrow_tables.executor.conversions import stored_type, widens
from windrow_tables.executor.errors import ColumnTypeError, UnreadableFileError
from windrow_tables.executor.formats import (
    FORMAT_ERRORS,
    FileFormat,
    Join,
    Lead,
    rows_only,
    unreadable,
)
from windrow_tables.executor.layouts import Layout, positions_of
from windrow_tables.executor.rebasing import FileCalendar, may_be_rebased, rule_of
from windrow_tables.executor.spec import KIB, ReadSpec, Split

# Rows that are decoded at first, to see how large rows are.
_PROBE_ROWS = 1 * KIB
# Users choose Arrow's memory pool with it.
_POOL_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"
_MIN_BATCH_ROWS = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParquetLayout(Layout):
    """How to read the wanted columns from Parquet files of one schema, by indices of leaves.

    Attributes:
        leaf_paths: The leaf columns of the files, which tell one layout from another.
        parquet_schema: Also compared if leaf paths and Arrow types are ambiguous: an INT96 column
            looks like a timestamp without a zone. Else None.
        file_schema: The file's columns with their ids, if columns are found by ids; else None.
        calendar: How the files' dates and times were written; None if it does not matter.
    """

    leaf_paths: list[str]
    parquet_schema: Any
    file_schema: pa.Schema | None
    calendar: FileCalendar | None


class ParquetFormat(FileFormat):
    """Parquet, for a read.

    Args:
        spec: What to read.
    """

    name = "Parquet"
    has_short_footers = True
    has_joins = True

    def __init__(self, spec: ReadSpec) -> None:
        self._spec = spec
        self._target = spec.decoded
        self._memory_pool = _pool_of_new_memory() if spec.keeps_rows else None
        self._may_be_rebased = any(map(may_be_rebased, self._target.types))

    def opened(self, path: str, file: Any, buffer_bytes: int) -> Any:
        """See `FileFormat.opened`."""
        return self._opened(path, file, buffer_bytes)

    def opened_pack(self, path: str, file: Any, buffer_bytes: int) -> Any:
        """See `FileFormat.opened_pack`."""
        return self._opened(path, file, buffer_bytes, is_checked=True)

    def _opened(
        self,
        path: str,
        file: Any,
        buffer_bytes: int = 0,
        metadata: Any = None,
        *,
        is_checked: bool = False,
    ) -> Any:
        """Open a file; its footer is read unless `metadata` is given."""
        reader = ParquetReader(memory_pool=self._memory_pool)
        try:
            reader.open(
                file,
                metadata=metadata,
                pre_buffer=False,
                buffer_size=buffer_bytes,
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=is_checked,
            )
        except FORMAT_ERRORS as error:
            raise unreadable(path, error, self.name) from error
        return reader

    def row_count(self, reader: Any) -> int:
        """See `FileFormat.row_count`."""
        return rows_in(reader.metadata)

    def describes(self, layout: Layout, reader: Any) -> bool:
        """See `FileFormat.describes`."""
        assert isinstance(layout, ParquetLayout)
        if reader.column_paths != layout.leaf_paths or self._calendar_of(reader) != layout.calendar:
            return False
        if layout.file_schema is not None:
            file_schema = reader.schema_arrow.remove_metadata()
            if not file_schema.equals(layout.file_schema, check_metadata=True):
                return False
        schema = layout.parquet_schema
        return schema is None or bool(reader.metadata.schema.equals(schema))

    def find_layout(self, path: str, reader: Any) -> Layout:
        """See `FileFormat.find_layout`."""
        return find_layout(path, reader, self._target, self._calendar_of(reader))

    def decoded(self, reader: Any, layout: Layout) -> pa.Table:
        """See `FileFormat.decoded`."""
        return reader.read_all(column_indices=layout.selection, use_threads=False)

    def joins(self, files: Gathered, lead: Lead) -> Iterator[Join]:
        """See `FileFormat.joins`."""
        for alike in alike_files(files, self._spec.limits.min_joined_files):
            layout, reader = lead(int(alike.files[0]))
            join = self._join(files, alike, layout, reader.metadata)
            if join is not None:
                yield join

    def _join(self, files: Gathered, alike: Alike, layout: Layout, metadata: Any) -> Join | None:
        """Return a join of files of one shape; None if they are better decoded one by one.

        Args:
            files: The files.
            alike: Those of the shape.
            layout: Their layout.
            metadata: The footer of the first of them.
        """
        first = files.content(int(alike.files[0]))
        ranges = chunk_ranges_in(metadata, len(first))
        outline = outline_of(footer_in(first), metadata, ranges.codecs) if ranges else None
        if outline is None:
            return None
        outline, leaves = outline.only(layout.decoded.names)
        columns = map(metadata.schema.column, leaves)
        # Lists do not tell where rows begin before they are decoded.
        if (
            not leaves
            or leaves != layout.selection
            or any(column.max_repetition_level for column in columns)
        ):
            return None
        alike = alike.only_leaves(leaves)
        join = JoinedFiles(files, alike, outline)
        if not join.are_separable().all():
            return None
        footer = self._opened("", pa.BufferReader(join.footer)).metadata
        reader = self._opened("", pa.BufferReader(files.data), metadata=footer)
        groups = alike.groups.shape[1]

        def decoded(begin: int, end: int) -> pa.Table:
            own = list(range(begin * groups, end * groups))
            return reader.read_row_groups(own, use_threads=False)

        return Join(
            files=alike.files.tolist(),
            row_counts=alike.row_counts.tolist(),
            decoded_bytes=alike.decoded_bytes.sum(axis=1).tolist(),
            layout=layout,
            decoded=decoded,
        )

    def tables(
        self, split: Split, reader: Any, layout: Layout, max_rows: int, max_bytes: int
    ) -> Iterator[pa.Table]:
        """See `FileFormat.tables`."""
        return _tables(split, reader, layout, max_rows, max_bytes)

    def _calendar_of(self, reader: Any) -> FileCalendar | None:
        if not self._may_be_rebased:
            return None
        metadata = reader.metadata
        return self._spec.calendars.of(metadata.metadata, metadata.created_by)


def _pool_of_new_memory() -> pa.MemoryPool:
    """Return where rows are decoded to that stay, so that their memory is new.

    Arrow's default takes new memory as huge pages. Virtual machines that give free memory back to
    their host get them anew from there, which takes five times as long as small pages.
    """
    has_choice = _POOL_VARIABLE not in os.environ and "jemalloc" in pa.supported_memory_backends()
    return pa.jemalloc_memory_pool() if has_choice else pa.default_memory_pool()


def find_layout(
    path: str,
    reader: Any,
    target: pa.Schema,
    calendar: FileCalendar | None,
) -> ParquetLayout:
    """Work out the layout of an open file.

    Args:
        path: The file, for messages.
        reader: The file.
        target: The wanted columns, with the table's types.
        calendar: How the file's dates and times were written; None if none are wanted.
    """
    try:
        schema = reader.schema_arrow
        parquet_schema = reader.metadata.schema
    except FORMAT_ERRORS as error:
        raise unreadable(path, error, ParquetFormat.name) from error
    first_leaf = _first_leaves(schema)
    positions = positions_of(path, schema, target)
    # The table's type of each leaf of the file; None if the table lacks it, or it is not wanted.
    leaf_targets: list[pa.DataType | None] = [None] * len(parquet_schema.names)
    for field, at in zip(target, positions, strict=True):
        if at >= 0:
            leaf_targets[first_leaf[at] : first_leaf[at + 1]] = _leaf_targets(
                schema.field(at).type, field.type
            )
            leaves = (
                (parquet_schema.column(i), leaf_targets[i]) for i in range(*first_leaf[at : at + 2])
            )
            file_type = _meant_type(schema.field(at).type, leaves)
            if not widens(file_type, field.type):
                raise ColumnTypeError(path, field.name, str(file_type), str(field.type))
            if _has_no_leaves(schema.field(at).type):
                # Nothing in a file tells in which rows it is null.
                reason = (
                    f"column {field.name!r} is, or holds, a struct without fields: leave it out "
                    "(columns=…), or rewrite the file"
                )
                raise UnreadableFileError(path, reason)
    present = sorted({at for at in positions if at >= 0})
    decoded = pa.schema([schema.field(at) for at in present])
    rules = [
        [
            rule_of(type_, parquet_schema.column(leaf).physical_type, calendar, leaf_targets[leaf])
            for type_, leaf in zip(_leaf_types(schema.field(at).type), count(first_leaf[at]))
        ]
        if calendar is not None
        else ()
        for at in present
    ]
    return ParquetLayout(
        target=target,
        leaf_paths=reader.column_paths,
        selection=[leaf for at in present for leaf in range(first_leaf[at], first_leaf[at + 1])],
        parquet_schema=parquet_schema if any(map(_has_local_time, decoded.types)) else None,
        file_schema=schema.remove_metadata() if any(map(is_mapped, target)) else None,
        decoded=decoded,
        calendar=calendar,
        rules=rules,
        positions=tuple(present.index(at) if at >= 0 else -1 for at in positions),
    )


def rows_before(reader: Any, split: Split) -> int:
    """Return how many rows of a file come before those of a split."""
    groups = (reader.metadata.row_group(at) for at in range(reader.metadata.num_row_groups))
    return sum(group.num_rows for group in groups if row_group_start(group) < split.start)


def _tables(
    split: Split, reader: Any, layout: Layout, max_rows: int, max_bytes: int
) -> Iterator[pa.Table]:
    """Decode the row groups that start in the split, as tables of bounded size."""
    metadata = reader.metadata
    batch_rows = min(_PROBE_ROWS, max_rows)
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        if not split.is_whole and not (
            split.start <= row_group_start(row_group) < split.start + split.length
        ):
            continue
        if not layout.selection:
            for start in range(0, row_group.num_rows, max_rows):
                yield rows_only(min(max_rows, row_group.num_rows - start))
            continue
        done = 0
        while done < row_group.num_rows:
            # A reader's batch size is fixed. If rows turn out larger or smaller than expected, the
            # row group is opened again with another size, and finished rows are skipped.
            skip, wish = done, batch_rows
            try:
                for batch in reader.iter_batches(
                    batch_rows, [group], column_indices=layout.selection, use_threads=False
                ):
                    drop = min(skip, batch.num_rows)
                    skip -= drop
                    if drop == batch.num_rows:
                        continue
                    batch = batch.slice(drop)
                    done += batch.num_rows
                    fitting = max_bytes * batch.num_rows // max(batch.nbytes, 1)
                    wish = max(_MIN_BATCH_ROWS, min(max_rows, fitting))
                    yield pa.Table.from_batches([batch])
                    # Larger only at the start: otherwise alternating sizes would cost a pass each.
                    if wish * 2 < batch_rows or (wish > batch_rows * 2 and done <= _PROBE_ROWS):
                        break
            except FORMAT_ERRORS as error:
                raise unreadable(split.path, error, ParquetFormat.name) from error
            batch_rows = wish


def _first_leaves(schema: pa.Schema) -> list[int]:
    """Return the index of each top-level column's first leaf, and the number of all leaves."""
    starts = [0]
    for field in schema:
        starts.append(starts[-1] + leaf_count(field.type))
    return starts


def _children(type_: pa.DataType) -> list[pa.Field]:
    return fields_in(stored_type(type_))


def _leaf_types(type_: pa.DataType) -> Iterator[pa.DataType]:
    children = _children(type_)
    if not children:
        yield stored_type(type_)
    for child in children:
        yield from _leaf_types(child.type)


def _leaf_targets(type_: pa.DataType, target: pa.DataType) -> Iterator[pa.DataType | None]:
    """Yield the table's type of each leaf in a type of the file; None if the table lacks it."""
    children, targets = _children(type_), fields_in(target)
    if not children:
        yield target
        return
    if pt.is_struct(stored_type(type_)) and pt.is_struct(target):
        places = [position_in(stored_type(type_), field) for field in targets]
    else:
        places = list(range(len(targets)))
    for at, child in enumerate(children):
        if at in places:
            yield from _leaf_targets(child.type, targets[places.index(at)].type)
        else:
            yield from (None for _ in _leaf_types(child.type))


def _has_no_leaves(type_: pa.DataType) -> bool:
    """Return whether a type is, or holds, a struct without fields."""
    children = _children(type_)
    if not children:
        return bool(pt.is_struct(stored_type(type_)))
    return any(_has_no_leaves(child.type) for child in children)


def _meant_type(
    type_: pa.DataType, leaves: Iterator[tuple[Any, pa.DataType | None]]
) -> pa.DataType:
    """Return a column's type, with times as the table means them.

    INT96 are instants in UTC. Other times are read as instants or local times as the table says,
    whatever the file says, as by Spark's own reader: some writers leave the flag for UTC out.

    Args:
        type_: The type in the file.
        leaves: For each leaf, its column in the file, and its type in the table.
    """
    type_ = stored_type(type_)
    children = [child.with_type(_meant_type(child.type, leaves)) for child in _children(type_)]
    if pt.is_struct(type_):
        return pa.struct(children)
    if pt.is_map(type_):
        return pa.map_(*children)
    if children:
        return pa.list_(children[0])
    column, target = next(leaves)
    if column.physical_type == "INT96":
        type_ = pa.timestamp("us", "UTC")
    if pt.is_timestamp(type_) and target is not None and pt.is_timestamp(target):
        return pa.timestamp(type_.unit, target.tz)
    return type_


def _has_local_time(type_: pa.DataType) -> bool:
    if children := _children(type_):
        return any(_has_local_time(child.type) for child in children)
    return bool(pt.is_timestamp(type_)) and type_.tz is None
