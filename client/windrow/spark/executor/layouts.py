"""Layouts: where a table's columns are in a file, and how they become the table's types.

Files of one writer share a layout, so it is worked out once and recognised afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from windrow.files.schema import fields_in, leaf_count
from windrow.spark.executor.conversions import child_index, convert, stored_type, widens
from windrow.spark.executor.errors import AmbiguousColumnError, ColumnTypeError, OldTimeError
from windrow.spark.executor.files import PARQUET_ERRORS, unreadable
from windrow.spark.executor.rebasing import (
    FileCalendar,
    OldValueError,
    Rule,
    corrected,
    rule_of,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """How files of one schema give the wanted columns.

    Attributes:
        wanted: The columns wanted, with the table's types.
        leaf_paths: The leaf columns of the files, which tell one layout from another.
        leaf_indices: The leaf columns to decode.
        parquet_schema: Compared as well where the leaf paths and Arrow types do not tell all:
            an INT96 column looks like a timestamp without a zone. None where they do.
        decoded: What decoding the leaves gives.
        positions: For each wanted column its place in `decoded`, or -1 where the file lacks it.
        calendar: How the files' dates and times were written; None where it does not matter.
        rules: For each column of `decoded`, what becomes of the values of its leaves.
    """

    wanted: pa.Schema
    leaf_paths: list[str]
    leaf_indices: list[int]
    parquet_schema: Any
    decoded: pa.Schema
    positions: tuple[int, ...]
    calendar: FileCalendar | None
    rules: Sequence[Sequence[Rule | None]]

    def describes(self, reader: Any, calendar: FileCalendar | None) -> bool:
        """Tell whether an open file may have this layout; `fits` tells the rest."""
        same_leaves = bool(reader.column_paths == self.leaf_paths) and calendar == self.calendar
        return same_leaves and (
            self.parquet_schema is None or bool(reader.metadata.schema.equals(self.parquet_schema))
        )

    def fits(self, schema: pa.Schema) -> bool:
        """Tell whether columns decoded by `leaf_indices` have the types of this layout."""
        return bool(schema.equals(self.decoded))

    def apply(self, tables: Sequence[pa.Table], row_count: int) -> pa.Table:
        """Concatenate decoded tables and give them the wanted names and types.

        Args:
            tables: Tables of this layout's decoded columns.
            row_count: Their rows in total; a table without columns does not know it.

        Raises:
            OldTimeError: A column holds dates or times of an uncertain calendar; the path is empty.
            pyarrow.ArrowInvalid: Values do not fit the wanted type.
        """
        if not self.leaf_indices:
            columns = [pa.nulls(row_count, field.type) for field in self.wanted]
            return pa.table(columns, schema=self.wanted)
        # One chunk a column: what comes after costs per chunk.
        joined = pa.concat_tables(tables).combine_chunks()
        columns = []
        for position, field in zip(self.positions, self.wanted, strict=True):
            if position < 0:
                columns.append(pa.nulls(row_count, field.type))
                continue
            column = joined.column(position)
            if any(self.rules[position]):
                try:
                    chunks = [corrected(part, iter(self.rules[position])) for part in column.chunks]
                except OldValueError as error:
                    raise OldTimeError("", field.name, str(error)) from error
                column = pa.chunked_array(chunks, None if chunks else column.type)
            if column.type != field.type:
                chunks = [convert(chunk, field.type) for chunk in column.chunks]
                column = pa.chunked_array(chunks, field.type)
            columns.append(column)
        return pa.table(columns, schema=self.wanted)


def find_layout(
    path: str,
    reader: Any,
    wanted: pa.Schema,
    calendar: FileCalendar | None,
) -> Layout:
    """Work out the layout of an open file.

    Args:
        path: The file, for messages.
        reader: The file.
        wanted: The columns wanted, with the table's types.
        calendar: How the file's dates and times were written; None where none are wanted.

    Raises:
        AmbiguousColumnError: Several columns of the file could be the one wanted.
        ColumnTypeError: The file's type does not widen to the table's.
        UnreadableFileError: The file's schema cannot be read.
    """
    try:
        schema = reader.schema_arrow
        parquet_schema = reader.metadata.schema
    except PARQUET_ERRORS as error:
        raise unreadable(path, error) from error
    first_leaf = _first_leaves(schema)
    found = [child_index(pa.struct(list(schema)), field.name) for field in wanted]
    for field, at in zip(wanted, found, strict=True):
        if at == -2:
            candidates = [n for n in schema.names if n.lower() == field.name.lower()]
            raise AmbiguousColumnError(path, field.name, tuple(candidates))
        if at >= 0:
            leaves = (parquet_schema.column(i) for i in range(*first_leaf[at : at + 2]))
            file_type = _meant_type(schema.field(at).type, leaves)
            if not widens(file_type, field.type):
                raise ColumnTypeError(path, field.name, str(file_type), str(field.type))
    present = sorted({at for at in found if at >= 0})
    decoded = pa.schema([schema.field(at) for at in present])
    rules = [
        [
            rule_of(type_, parquet_schema.column(leaf).physical_type, calendar)
            for type_, leaf in zip(_leaf_types(schema.field(at).type), count(first_leaf[at]))
        ]
        if calendar is not None
        else ()
        for at in present
    ]
    return Layout(
        wanted=wanted,
        leaf_paths=reader.column_paths,
        leaf_indices=[leaf for at in present for leaf in range(first_leaf[at], first_leaf[at + 1])],
        parquet_schema=parquet_schema if any(map(_has_local_time, decoded.types)) else None,
        decoded=decoded,
        calendar=calendar,
        rules=rules,
        positions=tuple(present.index(at) if at >= 0 else -1 for at in found),
    )


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


def _meant_type(type_: pa.DataType, leaves: Iterator[Any]) -> pa.DataType:
    """Return a column's type with its INT96 leaves as what they are: instants, thus in UTC."""
    type_ = stored_type(type_)
    children = [child.with_type(_meant_type(child.type, leaves)) for child in _children(type_)]
    if pt.is_struct(type_):
        return pa.struct(children)
    if pt.is_map(type_):
        return pa.map_(*children)
    if children:
        return pa.list_(children[0])
    return pa.timestamp("us", "UTC") if next(leaves).physical_type == "INT96" else type_


def _has_local_time(type_: pa.DataType) -> bool:
    if children := _children(type_):
        return any(_has_local_time(child.type) for child in children)
    return bool(pt.is_timestamp(type_)) and type_.tz is None
