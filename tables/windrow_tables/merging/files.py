"""Writes merged files, and compares them with the files that they were made of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import ANYTHING
from windrow_tables.executor.spec import SortKey
from windrow_tables.merging.footers import tail_of
from windrow_tables.merging.likeness import merged_keys
from windrow_tables.merging.physical import physical_schema
from windrow_tables.merging.sources import Source, UnfitFileError, footer_of, tables_in
from windrow_tables.merging.writing import Sorting, Writing

# As Spark's writer does, which counts encoded bytes.
_ROW_GROUP_BYTES = 128 * 2**20
# Encoded bytes of files whose rows are held in memory.
_READ_ONCE_BYTES = 64 * 2**20
# Rows that are sorted are all in memory.
_MAX_SORTED_BYTES = 2**30
# Each new number of files changes their size once more, as large files compress better.
_ATTEMPTS = 3
_MANY_ROWS = 2**40


class ValuesDifferError(Exception):
    """A merged file does not have the values of the files that it was made of."""


@dataclass(frozen=True, slots=True)
class MergedFile:
    """A merged file: its path, its bytes, and its rows."""

    path: str
    size_bytes: int
    rows: int


def merge(
    sources: Sequence[Source], sort: Sequence[SortKey], target_bytes: int, scale: float, path: str
) -> list[MergedFile]:
    """Write the rows of files that are alike into about as many files as the target needs.

    The rows keep their order, the files' one after another, unless they are to be sorted. Each new
    file is read again, and compared with the rows it was made of.

    Args:
        sources: Files that are alike.
        sort: What each file is sorted by; columns that the files lack are ignored.
        target_bytes: Target size of a file.
        scale: Expected bytes of merged rows, as a multiple of their bytes now.
        path: Path of the new files, without a number and a suffix, in a folder that holds nothing
            else.
    """
    merger = _Merger(sources, sort)
    count = merger.files_for(sum(one.stored_bytes for one in sources) * scale, target_bytes)
    files = merger.write(count, path)
    for _ in range(_ATTEMPTS - 1):
        better = merger.files_for(sum(one.size_bytes for one in files), target_bytes)
        if better == count:
            break
        folder = Root(os.path.dirname(path))
        for one in files:
            folder.remove_file(os.path.basename(one.path), ANYTHING)
        count = better
        files = merger.write(count, path)
    merger.compare(files)
    return files


class _Merger:
    """Writes files with the rows of some sources, and compares them.

    Args:
        sources: Files that are alike.
        sort: What each file is sorted by.
    """

    def __init__(self, sources: Sequence[Source], sort: Sequence[SortKey]) -> None:
        self._sources = sources
        self._rows = sum(one.rows for one in sources)
        self._first = next((one for one in sources if one.rows), sources[0]).footer()
        self._schema = physical_schema(self._first.head)
        self._sort = Sorting.of(self._schema, sort)
        self._writing = Writing.of(self._first, self._schema)
        self._read: list[pa.Table] | None = None
        # For each file, the rows that it has in the order of the sources.
        self._orders: list[pa.Array | None] = []

    def files_for(self, size_bytes: float, target_bytes: int) -> int:
        """Return how many files of some bytes come nearest to the target, each with a row."""
        count = min(max(round(size_bytes / target_bytes), 1), max(self._rows, 1))
        if self._sort is None:
            return count
        # The rows of a file that is sorted must fit into memory.
        plain_bytes = sum(one.plain_bytes for one in self._sources)
        return max(count, -(-plain_bytes // _MAX_SORTED_BYTES))

    def write(self, count: int, path: str) -> list[MergedFile]:
        """Write files of equal numbers of rows."""
        rows = _Rows(self._tables())
        self._orders = []
        files = []
        for at in range(count):
            many = self._rows * (at + 1) // count - self._rows * at // count
            name = f"{path}-{at:03d}.parquet"
            # Nobody else is to read it before it has the permissions of the sources.
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with pq.ParquetWriter(name, self._writing.schema, **self._writing.options(many)) as new:
                if self._first.keys:
                    # So that the footer has a place for them.
                    new.add_key_value_metadata({"": ""})
                for table in self._row_groups(rows, many):
                    new.write_table(table, row_group_size=_MANY_ROWS)
            files.append(MergedFile(name, self._finish(name, many), many))
        if rows.more():
            raise UnfitFileError("its footer tells of fewer rows than it has")
        return files

    def _tables(self) -> Iterator[pa.Table]:
        """Return the rows of all sources, which are read only once if they fit into memory."""
        tables = (table for one in self._sources for table in one.tables(self._schema))
        if sum(one.plain_bytes for one in self._sources) > _READ_ONCE_BYTES:
            return tables
        if self._read is None:
            self._read = list(tables)
        return iter(self._read)

    def _row_groups(self, rows: _Rows, many: int) -> Iterator[pa.Table]:
        if self._sort is not None:
            table = pa.concat_tables([self._writing.schema.empty_table(), *rows.take(many)])
            order = self._sort.order(table)
            self._orders.append(order)
            yield table.take(order)
            return
        self._orders.append(None)
        waiting: list[pa.Table] = []
        waiting_bytes = 0
        for table in rows.take(many):
            if waiting and waiting_bytes + table.nbytes > _ROW_GROUP_BYTES:
                yield pa.concat_tables(waiting)
                waiting, waiting_bytes = [], 0
            waiting.append(table)
            waiting_bytes += table.nbytes
        if waiting:
            yield pa.concat_tables(waiting)

    def _finish(self, path: str, rows: int) -> int:
        """Put the sources' schema and metadata into a new file; return its size."""
        with open(path, "r+b") as file:
            new_footer = footer_of(file)
            footer = self._first.in_place_of(new_footer, merged_keys(self._first.keys, rows))
            file.seek(-len(tail_of(new_footer.data)), os.SEEK_END)
            file.truncate()
            file.write(tail_of(footer))
            return file.tell()

    def compare(self, files: Sequence[MergedFile]) -> None:
        """Read the files, and make sure that each value has the same bits as in the sources."""
        rows = _Rows(self._tables())
        for one, order in zip(files, self._orders, strict=True):
            source_rows = rows
            if order is not None:
                if not np.array_equal(np.sort(order), np.arange(one.rows)):
                    raise ValuesDifferError
                tables = list(rows.take(one.rows))
                source_rows = _Rows(iter([pa.concat_tables(tables).take(order)] if tables else []))
            with open(one.path, "rb") as file:
                if list(footer_of(file).head.raw) != list(self._first.head.raw):
                    raise ValuesDifferError
                for table in tables_in(file, self._schema, self._row_bytes):
                    same = pa.concat_tables(source_rows.take(len(table)))
                    if not as_bits(same).equals(as_bits(table)):
                        raise ValuesDifferError

    @property
    def _row_bytes(self) -> int:
        return sum(one.plain_bytes for one in self._sources) // max(self._rows, 1)


def as_bits(table: pa.Table) -> pa.Table:
    """Return floating-point numbers as integers: NaN is equal to itself, 0.0 not to -0.0."""
    fields = [field.with_type(_bits_of(field.type)) for field in table.schema]
    columns = [
        column
        if field.type == column.type
        else pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, fields, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _bits_of(type_: pa.DataType) -> pa.DataType:
    if pt.is_floating(type_):
        return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type_.bit_width]
    if pt.is_struct(type_):
        # A struct that is null has nulls in fields that may not be null otherwise.
        return pa.struct([(field.name, _bits_of(field.type)) for field in type_])
    if pt.is_list(type_):
        return pa.list_(type_.value_field.with_type(_bits_of(type_.value_type)))
    return type_


class _Rows:
    """A stream of rows, of which any number can be taken next."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._rest: pa.Table | None = None

    def take(self, count: int) -> Iterator[pa.Table]:
        """Yield the next rows."""
        while count:
            table = self._rest if self._rest is not None else next(self._tables, None)
            if table is None:
                raise UnfitFileError("its footer tells of more rows than it has")
            self._rest = table.slice(count) if len(table) > count else None
            part = table.slice(0, count)
            count -= len(part)
            if len(part):
                yield part

    def more(self) -> bool:
        """Return whether there are further rows."""
        rest = [self._rest] if self._rest is not None else []
        return any(len(table) for table in (*rest, *self._tables))
