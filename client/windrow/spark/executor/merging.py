"""Merging sorted tables into one sorted stream, a block at a time and in bounded memory."""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa

from windrow.spark.executor.batches import bounded
from windrow.spark.executor.sorting import KeyAt, Keys, joined, keys_of
from windrow.spark.executor.spec import SortKey


def merge(sources: Sequence[Iterable[pa.Table]], sort: Sequence[SortKey]) -> Iterator[pa.Table]:
    """Merge sorted sources; a step handles about a block of each, never a row at a time.

    Args:
        sources: Streams of tables of one schema, each stream sorted as a whole.
        sort: What they are sorted by; at least one key.

    Yields:
        Tables which one after the other are sorted. Memory holds about two blocks a source.
    """
    cursors = [cursor for source in sources if (cursor := _Cursor(source, sort)).advance()]
    while len(cursors) > 1:
        # Every row up to the least last key is there: what comes later in a source is not less.
        bound = min(cursor.last for cursor in cursors)
        taken = [part for cursor in cursors if len((part := cursor.take(bound))[1])]
        yield sorted_table([table for table, _ in taken], [keys for _, keys in taken])
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
    """Open a temporary file without a name: it is gone when closed, or when the process is."""
    # Spark names its scratch disks here.
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return tempfile.TemporaryFile(dir=folder if os.path.isdir(folder) else None)


def spilled(table: pa.Table, file: BinaryIO, max_rows: int, max_bytes: int) -> Iterator[pa.Table]:
    """Write a table to a file, and return a stream that reads it back in blocks.

    Args:
        table: What to write.
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
    """A source, and how far it has been merged."""

    def __init__(self, source: Iterable[pa.Table], sort: Sequence[SortKey]) -> None:
        self._blocks = iter(source)
        self._sort = sort
        self._block = pa.table({})
        self._keys = Keys(columns=(), descending=())
        self._start = self._stop = 0
        self.last = KeyAt((), ())

    def advance(self) -> bool:
        """Go to the next row that is not yet merged; False where there is none."""
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
        """Take all that is left."""
        yield self._block.slice(self._start)
        yield from self._blocks
