"""Decoding the splits of a group: from files to tables of the columns wanted, bounded in memory.

Files of at most a megabyte, of which a group may hold thousands, take the short path: one read,
one open, one decode, and no other work per file. What is costly per call (casts, filters,
partition columns) is done for many files at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.files.footers import row_group_start, rows_in
from windrow.files.remote import is_remote
from windrow.spark.executor.caching import Files
from windrow.spark.executor.errors import (
    OldTimeError,
    StaleFileError,
    TaskReadError,
    UnreadableFileError,
)
from windrow.spark.executor.files import PARQUET_ERRORS, open_buffer, unreadable
from windrow.spark.executor.layouts import Layout, find_layout
from windrow.spark.executor.rebasing import FileCalendar, may_be_rebased
from windrow.spark.executor.spec import KIB, MIB, ReadSpec, Split

# Rows that are decoded at first, to see how large rows are.
_PROBE_ROWS = 1 * KIB
_MIN_BATCH_ROWS = 16
# Most files whose decoded tables wait to be joined, should they hold next to no rows.
_MAX_JOINED_FILES = 16 * KIB
# Where each read is a request, several are made at once.
_FETCHING_THREADS = 16
_MAX_FILES_AHEAD = 64
_MAX_BYTES_AHEAD = 16 * MIB
_NO_COLUMNS = pa.table({})
# Below this, asking a decoded table for its size costs more than it tells.
_NEGLIGIBLE_BYTES = 64 * KIB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Decoded rows of one or more splits, in order.

    Attributes:
        table: The columns decoded, with the table's types.
        splits: The splits the rows come from.
        counts: How many of the rows come from each.
    """

    table: pa.Table
    splits: Sequence[Split]
    counts: Sequence[int]

    def origins(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return for each row the ordinal of its split."""
        return np.repeat(np.array([split.ordinal for split in self.splits], np.int64), self.counts)


def splits_of(spec: ReadSpec, splits: pa.RecordBatch) -> list[Split]:
    """Turn the rows of a group's descriptor into splits."""
    columns = [splits.column(name).to_pylist() for name in Split._fields[1:]]
    return [
        Split(ordinal, spec.prefix + path, *rest)
        for ordinal, (path, *rest) in enumerate(zip(*columns, strict=True))
    ]


# The bytes of a small file to decode, or the future that reads them; None before either.
Content = bytes | Future[bytes] | None


class Decoder:
    """Decodes files, and remembers the layouts it has seen.

    Args:
        spec: What is read.
        files: Where from.
    """

    def __init__(self, spec: ReadSpec, files: Files) -> None:
        self._spec = spec
        self._files = files
        self._wanted = spec.decoded
        self._may_be_rebased = any(map(may_be_rebased, self._wanted.types))
        self._layouts: list[Layout] = []

    def is_small(self, split: Split) -> bool:
        """Tell whether a split is decoded in one go."""
        limits = self._spec.limits
        return (
            split.is_whole
            and split.size_bytes <= limits.max_decoded_at_once_bytes
            and split.row_count <= limits.max_batch_rows
        )

    def decode(self, splits: Iterable[Split], max_rows: int, max_bytes: int) -> Iterator[Rows]:
        """Decode splits one after the other.

        Args:
            splits: The splits to decode, in any order, which is kept.
            max_rows: About how many rows to hold at a time.
            max_bytes: About how many bytes.

        Raises:
            TaskReadError: A file is not as planned, cannot be read, or has other columns.
        """
        waiting: list[tuple[Split, int, pa.Table]] = []
        layout: Layout | None = None
        rows = size_bytes = 0
        for split, content in self._fetched(splits):
            if not self.is_small(split):
                if waiting and layout:
                    yield _join(layout, waiting)
                    waiting, rows, size_bytes = [], 0, 0
                yield from self._decode_large(split, max_rows, max_bytes)
                continue
            found, count, table = self._decode_small(split, content)
            if (
                waiting
                and layout
                and (
                    found is not layout
                    or rows + count > max_rows
                    or size_bytes >= max_bytes
                    or len(waiting) == _MAX_JOINED_FILES
                )
            ):
                yield _join(layout, waiting)
                waiting, rows, size_bytes = [], 0, 0
            layout = found
            waiting.append((split, count, table))
            rows += count
            size_bytes += split.size_bytes if split.size_bytes < _NEGLIGIBLE_BYTES else table.nbytes
        if waiting and layout:
            yield _join(layout, waiting)

    def _fetched(self, splits: Iterable[Split]) -> Iterator[tuple[Split, Content]]:
        """Yield the splits; with those of small remote files, what is being read of them."""
        if not is_remote(self._spec.location):
            yield from ((split, None) for split in splits)
            return
        ahead: deque[tuple[Split, Content]] = deque()
        ahead_bytes = 0
        with ThreadPoolExecutor(_FETCHING_THREADS) as threads:
            try:
                for split in splits:
                    content = self._ahead(split, threads) if self.is_small(split) else None
                    ahead.append((split, content))
                    ahead_bytes += split.size_bytes if content is not None else 0
                    while len(ahead) > _MAX_FILES_AHEAD or ahead_bytes > _MAX_BYTES_AHEAD:
                        ahead_bytes -= ahead[0][0].size_bytes if ahead[0][1] is not None else 0
                        yield ahead.popleft()
                while ahead:
                    yield ahead.popleft()
            finally:
                for _, content in ahead:
                    if isinstance(content, Future):
                        content.cancel()

    def _ahead(self, split: Split, threads: ThreadPoolExecutor) -> Content:
        # Handing work to a thread costs more than taking a file that is at hand.
        content = self._files.at_hand(split)
        return threads.submit(self._fetch, split) if content is None else content

    def _fetch(self, split: Split) -> bytes:
        """Return what is to be decoded of a small file."""
        # Where nothing is decoded, rows are counted by the footer: the plan's count may be one
        # that somebody published.
        return self._files.whole(split) if self._wanted.names else self._files.footer(split)

    def _decode_small(self, split: Split, content: Content) -> tuple[Layout, int, pa.Table]:
        if isinstance(content, Future):
            content = content.result()
        elif content is None:
            content = self._fetch(split)
        reader = open_buffer(split.path, content)
        layout = self._layout_of(split, reader) if self._wanted.names else self._nothing()
        try:
            if layout.leaf_indices:
                table = reader.read_all(column_indices=layout.leaf_indices, use_threads=False)
                if not layout.fits(table.schema):
                    layout = self._layout_of(split, reader, table.schema)
                    table = reader.read_all(column_indices=layout.leaf_indices, use_threads=False)
                count = table.num_rows
            else:
                table, count = _NO_COLUMNS, rows_in(reader.metadata)
        except PARQUET_ERRORS as error:
            raise unreadable(split.path, error) from error
        if count != split.row_count:
            raise _miscounted(split, reader, count)
        return layout, count, table

    def _nothing(self) -> Layout:
        if not self._layouts:
            self._layouts.append(
                Layout(
                    wanted=self._wanted,
                    leaf_paths=[],
                    leaf_indices=[],
                    parquet_schema=None,
                    decoded=self._wanted,
                    positions=(),
                    calendar=None,
                    rules=(),
                )
            )
        return self._layouts[0]

    def _layout_of(self, split: Split, reader: Any, decoded: pa.Schema | None = None) -> Layout:
        """Return the file's layout, which the last file is the most likely to share.

        Args:
            split: The split, for messages.
            reader: Its file.
            decoded: What decoding its columns gave, where that is known.
        """
        calendar = self._calendar_of(reader)
        for at, layout in enumerate(self._layouts):
            if layout.describes(reader, calendar) and (decoded is None or layout.fits(decoded)):
                if at:
                    self._layouts.insert(0, self._layouts.pop(at))
                return layout
        layout = find_layout(split.path, reader, self._wanted, calendar)
        self._layouts.insert(0, layout)
        return layout

    def _calendar_of(self, reader: Any) -> FileCalendar | None:
        if not self._may_be_rebased:
            return None
        return self._spec.calendars.of(reader.metadata.metadata)

    def _decode_large(self, split: Split, max_rows: int, max_bytes: int) -> Iterator[Rows]:
        if not self._wanted.names or (
            split.size_bytes <= self._spec.limits.max_buffered_file_bytes
        ):
            content = self._fetch(split)
            yield from self._stream(split, open_buffer(split.path, content), max_rows, max_bytes)
            return
        with self._files.stream(split) as reader:
            yield from self._stream(split, reader, max_rows, max_bytes)

    def _stream(self, split: Split, reader: Any, max_rows: int, max_bytes: int) -> Iterator[Rows]:
        layout = find_layout(split.path, reader, self._wanted, self._calendar_of(reader))
        count = 0
        for table in _tables(split, reader, layout, max_rows, max_bytes):
            count += table.num_rows
            yield _join(layout, [(split, table.num_rows, table)])
        if split.is_whole and count != split.row_count:
            raise _miscounted(split, reader, count)


def _join(layout: Layout, waiting: Sequence[tuple[Split, int, pa.Table]]) -> Rows:
    splits, counts, tables = zip(*waiting, strict=True)
    try:
        return Rows(table=layout.apply(tables, sum(counts)), splits=splits, counts=counts)
    except (pa.ArrowInvalid, OldTimeError) as error:
        if len(waiting) > 1:
            for one in waiting:
                _join(layout, [one])
        if isinstance(error, OldTimeError):
            raise OldTimeError(splits[0].path, error.column, error.reason) from error
        raise unreadable(splits[0].path, error) from error


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
        if not layout.leaf_indices:
            for start in range(0, row_group.num_rows, max_rows):
                yield _rows_only(min(max_rows, row_group.num_rows - start))
            continue
        done = 0
        while done < row_group.num_rows:
            # A reader's batch size is fixed. When rows turn out larger or smaller than thought,
            # the row group is opened again with another size and the rows done are passed over.
            skip, wish = done, batch_rows
            try:
                for batch in reader.iter_batches(
                    batch_rows, [group], column_indices=layout.leaf_indices, use_threads=False
                ):
                    passed = min(skip, batch.num_rows)
                    skip -= passed
                    if passed == batch.num_rows:
                        continue
                    batch = batch.slice(passed)
                    done += batch.num_rows
                    fitting = max_bytes * batch.num_rows // max(batch.nbytes, 1)
                    wish = max(_MIN_BATCH_ROWS, min(max_rows, fitting))
                    yield pa.Table.from_batches([batch])
                    # Larger only at the start: else sizes that alternate would cost a pass each.
                    if wish * 2 < batch_rows or (wish > batch_rows * 2 and done <= _PROBE_ROWS):
                        break
            except PARQUET_ERRORS as error:
                raise unreadable(split.path, error) from error
            batch_rows = wish


def _miscounted(split: Split, reader: Any, count: int) -> TaskReadError:
    if rows_in(reader.metadata) == split.row_count:
        reason = f"it holds {count:,} rows where its footer says {split.row_count:,}"
        return UnreadableFileError(split.path, reason)
    return StaleFileError(split.path, "row count", split.row_count, count)


def _rows_only(row_count: int) -> pa.Table:
    return pa.table({"": pa.nulls(row_count)})
