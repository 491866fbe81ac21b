"""Layouts: where a table's columns are in a file, and how they become the table's types.

Files of one writer share a layout, so it is worked out once and recognised afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow_core.files.file_fields import FIELD_ID, absent, position_in
from windrow_tables.executor.conversions import convert, is_same
from windrow_tables.executor.errors import (
    AmbiguousColumnError,
    OldTimeError,
    UnreadableFileError,
)
from windrow_tables.executor.rebasing import OldValueError, Rule, corrected


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """How to read the wanted columns from files of one schema.

    Attributes:
        target: The wanted columns, with the table's types.
        selection: The columns to decode, as the format's reader takes them; may be empty.
        decoded: The schema of the decoded columns.
        positions: For each wanted column its position in `decoded`, or -1 if the file lacks it.
        rules: For each column of `decoded`, the rules that correct the values of its leaves; empty
            if no values are ever corrected.
    """

    target: pa.Schema
    selection: Sequence[Any]
    decoded: pa.Schema
    positions: tuple[int, ...]
    rules: Sequence[Sequence[Rule | None]]

    def fits(self, schema: pa.Schema) -> bool:
        """Return whether decoded columns have the types of this layout."""
        return bool(schema.equals(self.decoded))

    def apply(self, tables: Sequence[pa.Table], row_count: int) -> pa.Table:
        """Concatenate decoded tables and give them the wanted names and types.

        Args:
            tables: Tables of this layout's decoded columns.
            row_count: Their rows in total, which a table without columns does not tell.
        """
        if not self.selection:
            columns = [absent(field, row_count) for field in self.target]
            return pa.table(columns, schema=self.target)
        # One chunk per column: the next steps cost time per chunk.
        table = pa.concat_tables(tables).combine_chunks()
        columns = []
        for position, field in zip(self.positions, self.target, strict=True):
            if position < 0:
                columns.append(absent(field, row_count))
                continue
            column = table.column(position)
            if self.rules and any(self.rules[position]):
                try:
                    chunks = [corrected(part, iter(self.rules[position])) for part in column.chunks]
                except OldValueError as error:
                    raise OldTimeError("", field.name, str(error)) from error
                column = pa.chunked_array(chunks, None if chunks else column.type)
            if not is_same(column.type, field.type):
                chunks = [convert(chunk, field.type) for chunk in column.chunks]
                column = pa.chunked_array(chunks, field.type)
            columns.append(column)
        return pa.table(columns, schema=self.target)


def nothing(target: pa.Schema) -> Layout:
    """Return the layout of files from which nothing is decoded."""
    return Layout(target=target, selection=(), decoded=target, positions=(), rules=())


def positions_of(path: str, file_schema: pa.Schema, target: pa.Schema) -> list[int]:
    """Return for each wanted column its position in a file; -1 if the file lacks it."""
    struct = pa.struct(list(file_schema))
    positions = [position_in(struct, field) for field in target]
    for column, at in zip(target, positions, strict=True):
        if at == -2 and FIELD_ID in (column.metadata or {}):
            reason = (
                f"it has no ids to find column {column.name!r} by, and the table's log does not say "
                "what the column is named in it"
            )
            raise UnreadableFileError(path, reason)
        if at == -2:
            candidates = [n for n in file_schema.names if n.lower() == column.name.lower()]
            raise AmbiguousColumnError(path, column.name, tuple(candidates))
    return positions
