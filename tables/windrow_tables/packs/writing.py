"""Writes packs: the stored values of many files, and for each row its partition and its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from windrow_core.files import seals
from windrow_core.files.arrays import array_of
from windrow_core.files.packs import SOURCE
from windrow_tables.merging.files import ValuesDifferError, as_bits
from windrow_tables.merging.footers import Element, Footer, Head, KeyValue, tail_of
from windrow_tables.merging.physical import physical_schema
from windrow_tables.merging.sources import UnfitFileError
from windrow_tables.merging.writing import CAN_WRITE_BLOOMS, ZSTD, Writing
from windrow_tables.packs.calendars import are_old, check_calendar
from windrow_tables.packs.contents import Content, columns_of, footer_of, reader_of
from windrow_tables.packs.figures import columns_with_figures, figures_of

# Few enough that a condition on partitions decodes little beside what it wants.
_GROUP_ROWS = 20_000
_GROUP_BYTES = 64 * 2**20
# The decoded rows of a pack are in memory until it has been compared with them.
_MOST_BYTES = 128 * 2**20
_MOST_SOURCES = 50_000
# What readers ask of Spark's metadata for values; its schema is not the pack's.
_KEPT, _SCHEMA = b"org.apache.spark.", b"org.apache.spark.sql."


@dataclass(frozen=True, slots=True)
class Extras:
    """The columns that packs have beside those of their sources: of partitions, and `SOURCE`.

    Attributes:
        head: The head of a file with these columns alone.
        writing: How they are written.
    """

    head: Head
    writing: Writing

    @classmethod
    def of(cls, partition: pa.Schema) -> Extras:
        """Return the extra columns of the packs of a table.

        Args:
            partition: Its partition columns.
        """
        schema = pa.schema([*partition, pa.field(SOURCE, pa.int32())])
        sink = pa.BufferOutputStream()
        pq.write_table(schema.empty_table(), sink, store_schema=False)
        footer = footer_of(sink.getvalue())
        return cls(footer.head, Writing.of(footer, physical_schema(footer.head)))

    def partition(self, values: pa.StructArray) -> Partition:
        """Return the partition values of some files for their packs."""
        types = self.writing.schema.types
        columns = [_stored(one, type_) for one, type_ in zip(values.flatten(), types, strict=False)]
        return Partition(columns, are_old(values))


@dataclass(frozen=True, slots=True)
class Partition:
    """The partition values of some files.

    Attributes:
        columns: Of each partition column, the values as they are stored.
        are_old: For each file, whether it has old dates or times among them.
    """

    columns: Sequence[pa.Array]
    are_old: np.ndarray[Any, np.dtype[np.bool_]]


def _stored(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if pt.is_decimal(type_):
        # The bytes of a longer decimal are those of the same number.
        return pa.Array.from_buffers(type_, len(values), values.buffers(), offset=values.offset)
    if pt.is_date(values.type) or pt.is_timestamp(values.type):
        return values.view(type_)
    return values.cast(type_)


class PackWriter:
    """Writes one pack in memory; its sources are numbered in the order in which they come.

    Args:
        first: The first of its sources, which are all alike.
        extras: The table's extra columns.
        partition: The partition values of some files; sources are among them.
    """

    def __init__(self, first: Content, extras: Extras, partition: Partition) -> None:
        self._partition = partition.columns
        self._has_old_partition = partition.are_old
        own_footer = footer_of(first.data)
        self._own = physical_schema(first.head)
        self._with_figures = columns_with_figures(columns_of(first.data))
        if not CAN_WRITE_BLOOMS:
            own_footer = _without_blooms(own_footer)
        own = Writing.of(own_footer, self._own)
        self._template = replace(
            own_footer, head=_joined(first.head, extras.head), keys=_keys(own_footer)
        )
        places = count(len(first.head.elements))
        more = [field.with_name(str(next(places))) for field in extras.writing.schema]
        self._writing = replace(
            own,
            schema=pa.schema([*own.schema, *more]),
            codecs=dict.fromkeys([*own.codecs, *(field.name for field in more)], ZSTD),
            leaves_with_bounds=[*own.leaves_with_bounds, *(field.name for field in more)],
            has_index=True,
        )
        self._sink = pa.BufferOutputStream()
        self._file = pq.ParquetWriter(
            self._sink, self._writing.schema, **self._writing.options(_GROUP_ROWS)
        )
        self._sources: list[int] = []
        self._tables: list[pa.Table] = []
        # Sources that were written together, by the first and the one after the last.
        self._blocks: list[tuple[int, int]] = []
        self._waiting_rows = self._waiting_bytes = self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it should get no more sources."""
        return self._bytes >= _MOST_BYTES or len(self._sources) >= _MOST_SOURCES

    @property
    def row_count(self) -> int:
        """Number of its rows."""
        return sum(map(len, self._tables))

    @property
    def sources(self) -> Sequence[int]:
        """Numbers of its sources among the files."""
        return self._sources

    def figures(self) -> pa.Table:
        """Return the figures of its sources: a row for each, in their order."""
        return figures_of(self._tables, self._with_figures)

    def add(self, source: int, content: Content) -> None:
        """Add the rows of a file.

        Args:
            source: Its number among the files.
            content: Its content.

        Raises:
            UnfitFileError: Its rows cannot be read; the pack is as it was.
        """
        table = content.rows_of(self._own)
        is_old = bool(self._has_old_partition[source])
        check_calendar(content.keys, content.head, table, has_old_partition=is_old)
        self._sources.append(source)
        self._tables.append(table)
        self._bytes += table.nbytes
        self._waiting_rows += len(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            self._write()

    def finish(self) -> pa.Buffer:
        """Return the pack, after comparing each of its values with its sources.

        Raises:
            ValuesDifferError: It does not have the values of its sources.
        """
        self._write()
        # So that the footer has a place for its keys.
        self._file.add_key_value_metadata({"": ""})
        self._file.close()
        content = self._sink.getvalue()
        new_footer = footer_of(content)
        footer = self._template.in_place_of(new_footer, self._template.keys)
        body = content.slice(0, len(content) - len(tail_of(new_footer.data)))
        pack = pa.py_buffer(b"".join((body, tail_of(seals.sealed(footer)))))
        self._compare(pack)
        return pack

    def _write(self) -> None:
        begin = self._blocks[-1][1] if self._blocks else 0
        if self._waiting_rows:
            block = begin, len(self._tables)
            rows = self._joined(*block)
            self._file.write_table(rows, row_group_size=_rows_per_group(len(rows)))
            self._blocks.append(block)
        self._waiting_rows = self._waiting_bytes = 0

    def _joined(self, begin: int, end: int) -> pa.Table:
        """Return the rows of some sources as the pack stores them."""
        tables = self._tables[begin:end]
        rows = pa.concat_tables(tables)
        counts = np.fromiter(map(len, tables), np.int64, len(tables))
        of_row = array_of(np.repeat(np.asarray(self._sources[begin:end], np.int64), counts))
        numbers = np.repeat(np.arange(begin, end, dtype=np.int32), counts)
        columns = [*rows.columns, *(one.take(of_row) for one in self._partition)]
        return pa.table([*columns, pa.array(numbers)], schema=self._writing.schema)

    def _compare(self, pack: pa.Buffer) -> None:
        head = footer_of(pack).head
        if list(head.raw) != list(self._template.head.raw):
            raise ValuesDifferError
        reader = reader_of(pack, physical_schema(head))
        first = 0
        for block in self._blocks:
            same = self._joined(*block)
            end = first + -(-len(same) // _rows_per_group(len(same)))
            table = reader.read_row_groups(list(range(first, end)), use_threads=False)
            if not as_bits(same).equals(as_bits(table)):
                raise ValuesDifferError
            first = end
        if first != reader.metadata.num_row_groups:
            raise ValuesDifferError


def _rows_per_group(rows: int) -> int:
    """Return how many rows of a block are in a row group, so that no group has just a few."""
    return -(-rows // max(rows // _GROUP_ROWS, 1))


def _joined(own: Head, extras: Head) -> Head:
    """Return the head of files with the columns of two others."""
    names = own.columns.keys() & extras.columns.keys()
    if names:
        raise UnfitFileError(f"it has a column {min(names)!r} itself")
    root, more = own.elements[0], extras.elements[1:]
    root = Element(root.name, repetition=root.repetition, children=(root.children or 0) + len(more))
    return Head(
        b"",
        0,
        own.version,
        [root, *own.elements[1:], *more],
        [root.thrift(), *own.raw[1:], *extras.raw[1:]],
        [*own.leaves, *extras.leaves],
    )


def _keys(footer: Footer) -> list[KeyValue]:
    own_keys = [
        one for one in footer.keys if one.key.startswith(_KEPT) and not one.key.startswith(_SCHEMA)
    ]
    return [*own_keys, KeyValue(seals.KEY, b"", b"").with_value(seals.unsealed())]


def _without_blooms(footer: Footer) -> Footer:
    chunks = [[one._replace(has_bloom=False) for one in some] for some in footer.chunks]
    return replace(footer, chunks=chunks)
