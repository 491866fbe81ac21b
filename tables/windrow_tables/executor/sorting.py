"""Sort rows in Spark's order, and merge sorted tables in bounded memory.

Nulls come first or last as declared, NaN is largest, and -0.0 equals 0.0. Sort columns are first
turned into *keys*: columns without nulls or NaN whose ascending order is the wanted order. Only
text, bytes and decimals keep a direction of their own.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.access import is_of_system, why_unwritable
from windrow_tables.executor.batches import bounded
from windrow_tables.executor.errors import ScratchError
from windrow_tables.executor.spec import SortKey

Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """The sort keys of n rows, the most important first.

    Attributes:
        columns: Arrays of n values without nulls or NaN.
        descending: Whether large values of a column come first.
    """

    columns: tuple[pa.Array, ...]
    descending: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def slice(self, start: int, length: int) -> Keys:
        """Return the keys of the rows from `start`."""
        columns = tuple(column.slice(start, length) for column in self.columns)
        return Keys(columns=columns, descending=self.descending)

    def at(self, row: int) -> KeyAt:
        """Return the key of one row, to be compared with keys of other tables."""
        return KeyAt(tuple(column[row].as_py() for column in self.columns), self.descending)

    def falls(self) -> Bools:
        """Return for each row but the first whether it belongs before the row above it.

        Returns:
            n - 1 booleans.
        """
        count = max(len(self) - 1, 0)
        falls, ties = np.zeros(count, bool), np.ones(count, bool)
        for column, descending in zip(self.columns, self.descending, strict=True):
            above, below = column.slice(0, count), column.slice(1)
            wrong = pc.less(above, below) if descending else pc.greater(above, below)
            falls |= ties & np.asarray(wrong)
            ties &= np.asarray(pc.equal(above, below))
        return falls

    def order(self) -> pa.Array:
        """Return the row numbers in sorted order; rows that tie keep their order."""
        columns: dict[str, pa.Array] = {}
        sort_keys = []
        for column, descending in zip(self.columns, self.descending, strict=True):
            # The columns that separate nulls usually hold the same value in every row.
            if not pt.is_boolean(column.type) or 0 < column.true_count < len(column):
                sort_keys.append((str(len(columns)), "descending" if descending else "ascending"))
                columns[str(len(columns))] = column
        if not columns:
            return pa.array(np.arange(len(self)))
        return pc.sort_indices(pa.table(columns), sort_keys=sort_keys)


@dataclass(frozen=True, slots=True, eq=False)
class KeyAt:
    """The key of one row.

    Attributes:
        values: One value for each key column.
        descending: Whether large values of a column come first.
    """

    values: tuple[Any, ...]
    descending: tuple[bool, ...]

    def __lt__(self, other: KeyAt) -> bool:
        for mine, theirs, descending in zip(
            self.values, other.values, self.descending, strict=True
        ):
            if mine != theirs:
                return bool(mine > theirs if descending else mine < theirs)
        return False


def joined(keys: Sequence[Keys]) -> Keys:
    """Return the keys of tables that are concatenated."""
    columns = tuple(
        pa.concat_arrays(parts) for parts in zip(*(k.columns for k in keys), strict=True)
    )
    return Keys(columns=columns, descending=keys[0].descending)


def is_sortable(type_: pa.DataType) -> bool:
    """Return whether columns of a type can be sort columns."""
    return not pt.is_nested(type_)


def keys_of(table: pa.Table, sort: Sequence[SortKey]) -> Keys:
    """Return the sort keys of a table's rows."""
    columns: list[pa.Array] = []
    descending: list[bool] = []
    for key in sort:
        column = table.column(key.name)
        values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        present = values.is_valid()
        columns.append(present if key.nulls_first else pc.invert(present))
        ordered, is_plain = _ordered(values)
        if is_plain and key.descending:
            # ~x falls as x rises, and unlike -x never overflows.
            ordered = pc.bit_wise_not(ordered)
        columns.append(ordered)
        descending += [False, key.descending and not is_plain]
    return Keys(columns=tuple(columns), descending=tuple(descending))


def _ordered(values: pa.Array) -> tuple[pa.Array, bool]:
    """Return values without nulls in Spark's order, and whether they are integers."""
    type_ = values.type
    if pt.is_floating(type_):
        return _float_order(values), True
    if pt.is_boolean(type_) or pt.is_integer(type_):
        return pc.fill_null(values.cast(pa.int64()), 0), True
    if pt.is_date32(type_):
        return pc.fill_null(values.cast(pa.int32()), 0), True
    if pt.is_timestamp(type_):
        return pc.fill_null(values.cast(pa.int64()), 0), True
    if pt.is_null(type_):
        return pa.array(np.zeros(len(values), np.int64)), True
    if values.null_count:
        values = values.fill_null(pa.scalar(0 if pt.is_decimal(type_) else b"", type_))
    return values, False


def _float_order(values: pa.Array) -> pa.Array:
    """Map doubles to integers of the same order, with NaN largest and a single zero."""
    doubles = np.asarray(pc.fill_null(values.cast(pa.float64()), 0.0)) + 0.0
    doubles = np.where(np.isnan(doubles), np.nan, doubles)
    bits = doubles.view(np.int64)
    return pa.array(np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits))


def merge(sources: Sequence[Iterable[pa.Table]], sort: Sequence[SortKey]) -> Iterator[pa.Table]:
    """Merge sorted sources; a step handles about a block of each, never a row at a time.

    Args:
        sources: Streams of tables of one schema, each stream sorted as a whole.
        sort: The keys that they are sorted by; at least one.

    Yields:
        Tables that are sorted if concatenated. Memory holds about two blocks of each source.
    """
    cursors = [cursor for source in sources if (cursor := _Cursor(source, sort)).advance()]
    while len(cursors) > 1:
        # All rows below the least of the last keys are here: no later row of a source is less.
        bound = min(cursor.last for cursor in cursors)
        parts = [part for cursor in cursors if len((part := cursor.take(bound))[1])]
        yield sorted_table([table for table, _ in parts], [keys for _, keys in parts])
        cursors = [cursor for cursor in cursors if cursor.advance()]
    for cursor in cursors:
        yield from cursor.rest()


def sorted_table(tables: Sequence[pa.Table], keys: Sequence[Keys]) -> pa.Table:
    """Return the rows of sorted tables as one sorted table; rows that tie keep their order."""
    table = pa.concat_tables(tables)
    all_keys = joined(keys)
    if not all_keys.falls().any():
        return table
    return table.combine_chunks().take(all_keys.order())


def scratch_file() -> BinaryIO:
    """Open a temporary file without a name: it vanishes once it is closed, or the process ends."""
    return tempfile.TemporaryFile(dir=_scratch_folder())


@contextmanager
def scratching() -> Iterator[None]:
    """Name the folder of temporary files, and a remedy, if they cannot be written in the block."""
    try:
        yield
    except OSError as error:
        if not is_of_system(error):
            raise
        folder = _scratch_folder() or tempfile.gettempdir()
        raise ScratchError(folder, why_unwritable(error)) from error


def _scratch_folder() -> str | None:
    # Spark names its scratch disks here.
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return folder if os.path.isdir(folder) else None


def spilled(table: pa.Table, file: BinaryIO, max_rows: int, max_bytes: int) -> Iterator[pa.Table]:
    """Write a table to a file, and return a stream that reads it back in blocks.

    Args:
        table: The table to write.
        file: An empty file, which must stay open until the stream has been read.
        max_rows: Most rows in a block.
        max_bytes: About the most bytes in a block.
    """
    compression = "lz4" if pa.Codec.is_available("lz4") else None
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        for batch in bounded([table], max_rows, max_bytes):
            writer.write_batch(batch)
    return _read_back(file)


def _read_back(file: BinaryIO) -> Iterator[pa.Table]:
    file.seek(0)
    with pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield pa.Table.from_batches([batch])


class _Cursor:
    """A source, and the position up to which it has been merged."""

    def __init__(self, source: Iterable[pa.Table], sort: Sequence[SortKey]) -> None:
        self._blocks = iter(source)
        self._sort = sort
        self._block = pa.table({})
        self._keys = Keys(columns=(), descending=())
        self._start = self._stop = 0
        self.last = KeyAt((), ())

    def advance(self) -> bool:
        """Go to the next row that is not yet merged; return False if there is none."""
        while self._start == self._stop:
            block = next(self._blocks, None)
            if block is None:
                return False
            self._start, self._stop = 0, block.num_rows
            if block.num_rows:
                self._block, self._keys = block, keys_of(block, self._sort)
                self.last = self._keys.at(block.num_rows - 1)
        return True

    def take(self, bound: KeyAt) -> tuple[pa.Table, Keys]:
        """Take the rows of the current block that are not greater than `bound`."""
        start = self._start
        self._start = bisect_right(range(self._stop), bound, lo=start, key=self._keys.at)
        count = self._start - start
        return self._block.slice(start, count), self._keys.slice(start, count)

    def rest(self) -> Iterator[pa.Table]:
        """Take all remaining rows."""
        yield self._block.slice(self._start)
        yield from self._blocks
