"""Decoding the splits of a group: from files to tables of the wanted columns, in bounded memory.

Files of at most a megabyte, of which a group may hold thousands, take the short path: one read, and
no other work per file. Parquet files of one writer are decoded together; other files take one open
and one decode each. Steps with a high cost per call (casts, filters, partition columns) handle many
files at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_core.files.excerpts.gathered import Gathered
from windrow_core.files.schemes import is_remote
from windrow_core.files.table_paths import absolute_path
from windrow_tables.executor.caching import Content, Files
from windrow_tables.executor.deleted_positions import DeletedPositions, kept_rows
from windrow_tables.executor.errors import (
    OldTimeError,
    StaleFileError,
    TaskReadError,
    UnreadableFileError,
)
from windrow_tables.executor.formats import FORMAT_ERRORS, FileFormat, Join, unreadable
from windrow_tables.executor.layouts import Layout, nothing
from windrow_tables.executor.orc import OrcFormat
from windrow_tables.executor.packs import packed_rows
from windrow_tables.executor.parquet import ParquetFormat, rows_before
from windrow_tables.executor.pieces import Piece, Pieces
from windrow_tables.executor.prefetching import asked_ahead
from windrow_tables.executor.rows import Rows
from windrow_tables.executor.spec import KIB, MIB, ReadSpec, Split
from windrow_tables.executor.turns import in_turn

# Most files whose decoded tables wait to be joined, even if they hold hardly any rows.
_MAX_JOINED_FILES = 16 * KIB
# Most files, and bytes of them, that are in memory to be decoded together.
_MAX_TOGETHER_FILES = 1 * KIB
_MAX_TOGETHER_BYTES = 8 * MIB
_NO_COLUMNS = pa.table({})
# Below this size of a file, measuring its decoded table is not worth the time.
_NEGLIGIBLE_BYTES = 64 * KIB
_FORMATS: dict[str, Callable[[ReadSpec], FileFormat]] = {"parquet": ParquetFormat, "orc": OrcFormat}


def _place(split: Split) -> tuple[int, int]:
    return split.pack or 0, split.pack_row or 0


def _rows_after(count: int, of_file: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the rows of a file without the first ones."""
    for rows in of_file:
        own_count = sum(rows.counts)
        if own_count > count:
            yield Rows(
                table=rows.table.slice(count), splits=rows.splits, counts=[own_count - count]
            )
        count = max(count - own_count, 0)


def splits_of(spec: ReadSpec, splits: pa.RecordBatch) -> list[Split]:
    """Turn the rows of a group's descriptor into splits."""
    names = frozenset(splits.schema.names)
    nothing_known = [None] * splits.num_rows
    columns = [
        splits.column(name).to_pylist() if name in names else nothing_known
        for name in Split._fields[1:]
    ]
    return [
        Split(ordinal, absolute_path(spec.location, path), *rest)
        for ordinal, (path, *rest) in enumerate(zip(*columns, strict=True))
    ]


class Decoder:
    """Decodes files, and remembers the layouts that it has seen.

    Args:
        spec: What to read.
        files: The files to read from.
        counts: Records what was asked for ahead.
        deletions: The deleted rows to leave out; None if there are none.
    """

    def __init__(
        self,
        spec: ReadSpec,
        files: Files,
        counts: Counter[str],
        deletions: DeletedPositions | None = None,
    ) -> None:
        self._spec = spec
        self._files = files
        self._counts = counts
        self._deletions = deletions
        self._target = spec.decoded
        self._format = _FORMATS[spec.format](spec)
        # If nothing is decoded, the footer is enough.
        self._by_footer = not self._target.names and self._format.has_short_footers
        # Of larger files, not enough are in memory at a time.
        self._max_joined_bytes = -1
        if self._target.names and self._format.has_joins:
            self._max_joined_bytes = _MAX_TOGETHER_BYTES // spec.limits.min_joined_files
        self._layouts: list[Layout] = []
        self._pieces = Pieces(spec, whole=files.takes_whole_files)

    def is_small(self, split: Split) -> bool:
        """Return whether a split is decoded in one go."""
        first, *more = self._pieces.of(split)
        return not more and self._is_small(first)

    def _is_small(self, piece: Piece) -> bool:
        limits, split = self._spec.limits, piece.split
        return (
            split.is_whole
            and self._is_held(piece)
            and piece.size_bytes <= limits.max_decoded_at_once_bytes
            and split.row_count is not None
            and split.row_count <= limits.max_batch_rows
        )

    def decode(self, splits: Iterable[Split], max_rows: int, max_bytes: int) -> Iterator[Rows]:
        """Decode splits one after the other.

        Args:
            splits: The splits to decode, in any order; the order is kept.
            max_rows: About how many rows to hold at a time.
            max_bytes: About how many bytes to hold at a time.
        """
        if self._spec.packs:
            splits = list(splits)
            in_packs = [split for split in splits if split.pack is not None]
            splits = [split for split in splits if split.pack is None]
            for _, some in groupby(sorted(in_packs, key=_place), lambda split: split.pack):
                yield from self._decode_pack(list(some), max_rows, max_bytes)

        def kind(one: tuple[Piece, Content]) -> tuple[bool, bool]:
            return self._is_small(one[0]), one[0].size_bytes <= self._max_joined_bytes

        for (is_small, is_joined), pieces in groupby(self._fetched(splits), kind):
            if not is_small:
                for piece, content in pieces:
                    yield from self._decode_large(piece, content, max_rows, max_bytes)
            elif is_joined:
                for batch, contents in self._batches(pieces):
                    yield from self._decode_together(batch, contents, max_rows, max_bytes)
            else:
                small = ((piece.split, content) for piece, content in pieces)
                yield from self._decode_one_by_one(small, max_rows, max_bytes)

    def _decode_pack(
        self, splits: Sequence[Split], max_rows: int, max_bytes: int
    ) -> Iterator[Rows]:
        """Decode files from a pack that holds them; if it cannot be read, the files, from there."""
        if not self._target.names:
            counts = [split.row_count or 0 for split in splits]
            yield Rows(table=_NO_COLUMNS, splits=splits, counts=counts)
            return
        pack, row_count = self._spec.packs[splits[0].pack or 0], 0
        try:
            with self._files.stream_pack(pack, self._format.opened_pack) as reader:
                for rows in packed_rows(reader, self._format, pack, splits):
                    yield rows
                    row_count += sum(rows.counts)
        except TaskReadError:
            self._counts["packs_lost"] += 1
            ends = np.cumsum([split.row_count for split in splits])
            alone = [split._replace(pack=None) for split in splits]
            at = int(np.searchsorted(ends, row_count, "right"))
            if at < len(alone):
                # Some of its rows have come from the pack.
                of_file = row_count - (int(ends[at - 1]) if at else 0)
                yield from _rows_after(of_file, self.decode([alone[at]], max_rows, max_bytes))
                yield from self.decode(alone[at + 1 :], max_rows, max_bytes)

    def _batches(
        self, pieces: Iterable[tuple[Piece, Content]]
    ) -> Iterator[tuple[list[Split], list[Any]]]:
        """Yield small files, as many as are decoded together, and their contents if they were asked for."""
        is_asked = is_remote(self._spec.location)
        # Requests are made while files are taken, and answered meanwhile.
        most_files = 2 * self._spec.limits.prefetch_files if is_asked else _MAX_TOGETHER_FILES
        splits: list[Split] = []
        contents: list[Any] = []
        size_bytes = 0
        for piece, content in pieces:
            if splits and (size_bytes >= _MAX_TOGETHER_BYTES or len(splits) == most_files):
                yield splits, contents
                splits, contents, size_bytes = [], [], 0
            splits.append(piece.split)
            if is_asked:
                contents.append(self._content_of(piece.split, content))
            size_bytes += piece.size_bytes
        yield splits, contents

    def _decode_together(
        self, batch: Sequence[Split], contents: Sequence[Any], max_rows: int, max_bytes: int
    ) -> Iterator[Rows]:
        """Decode small files, where possible many as if they were one."""

        def lead(file: int) -> tuple[Layout, Any]:
            content = pa.BufferReader(memory.content(file))
            reader = self._format.opened(batch[file].path, content, 0)
            return self._layout_of(batch[file], reader), reader

        def apart(files: range) -> Iterator[tuple[Split, Content]]:
            return ((batch[file], memory.content(file)) for file in files)

        with in_turn():
            memory = Gathered.of(contents) if contents else self._files.gathered(batch)
            joins = list(self._format.joins(memory, lead))
        # For each file, the join that it is in, and its place there.
        places: list[tuple[Join | None, int]] = [(None, 0)] * len(batch)
        for join in joins:
            for at, file in enumerate(join.files):
                places[file] = join, at
        begin = 0
        for own, run in groupby(places, itemgetter(0)):
            first, *more = (at for _, at in run)
            files = range(begin, begin + 1 + len(more))
            begin = files.stop
            if own is None:
                yield from self._decode_one_by_one(apart(files), max_rows, max_bytes)
                continue
            for start, end in own.parts(first, first + len(files), max_rows, max_bytes):
                part = files[start - first : end - first]
                rows = self._decode_join(own, start, batch[part.start : part.stop])
                if rows is None:
                    yield from self._decode_one_by_one(apart(part), max_rows, max_bytes)
                else:
                    yield rows

    def _decode_join(self, join: Join, start: int, splits: Sequence[Split]) -> Rows | None:
        """Decode some files of a join; None if one of them is faulty, which one by one shows."""
        end = start + len(splits)
        counts = join.row_counts[start:end]
        if any(split.row_count != count for split, count in zip(splits, counts, strict=True)):
            return None
        try:
            table = join.decoded(start, end)
            if table.num_rows != sum(counts) or not join.layout.fits(table.schema):
                return None
            table, counts = self._without_deleted(splits, table, counts)
            table = join.layout.apply([table], sum(counts))
        except (*FORMAT_ERRORS, OldTimeError):
            return None
        return Rows(table=table, splits=splits, counts=counts)

    def _without_deleted(
        self, splits: Sequence[Split], table: pa.Table, counts: Sequence[int]
    ) -> tuple[pa.Table, Sequence[int]]:
        """Leave out the deleted rows of several files."""
        if self._deletions is None or not any(split.deletes for split in splits):
            return table, counts
        mask = np.ones(table.num_rows, np.bool_)
        left_counts = []
        first = 0
        for split, count in zip(splits, counts, strict=True):
            positions = self._deletions.of(split)
            own = mask[first : first + count]
            if positions is not None:
                own[positions[positions < count]] = False
            left_counts.append(int(own.sum()))
            first += count
        return table.filter(pa.array(mask)), left_counts

    def _decode_one_by_one(
        self, files: Iterable[tuple[Split, Content]], max_rows: int, max_bytes: int
    ) -> Iterator[Rows]:
        """Decode small files, and join what comes of them."""
        waiting: list[tuple[Split, int, pa.Table]] = []
        layout: Layout | None = None
        rows = size_bytes = 0
        for split, content in files:
            own_layout, count, table = self._decode_small(split, content)
            if (
                waiting
                and layout
                and (
                    own_layout is not layout
                    or rows + count > max_rows
                    or size_bytes >= max_bytes
                    or len(waiting) == _MAX_JOINED_FILES
                )
            ):
                yield self._join(layout, waiting)
                waiting, rows, size_bytes = [], 0, 0
            layout = own_layout
            waiting.append((split, count, table))
            rows += count
            size_bytes += split.size_bytes if split.size_bytes < _NEGLIGIBLE_BYTES else table.nbytes
        if waiting and layout:
            yield self._join(layout, waiting)

    def _fetched(self, splits: Iterable[Split]) -> Iterator[tuple[Piece, Content]]:
        """Yield the pieces of splits; remote pieces with the requests for them."""
        if not is_remote(self._spec.location):
            return ((Piece(split), None) for split in splits)
        pieces = (piece for split in splits for piece in self._pieces.of(split))
        return asked_ahead(
            self._files,
            ((piece, self._is_held(piece)) for piece in pieces),
            self._spec.limits,
            self._counts,
            footers=self._by_footer,
        )

    def _is_held(self, piece: Piece) -> bool:
        """Return whether a piece is read into memory as a whole before it is decoded."""
        return self._by_footer or piece.size_bytes <= self._spec.limits.max_buffered_file_bytes

    def _fetch(self, split: Split) -> bytes:
        """Return the bytes of a small file, or only its footer if nothing is decoded."""
        # The footer still counts the rows: the plan's count may come from a published inventory.
        return self._files.footer(split) if self._by_footer else self._files.whole(split)

    def _decode_small(self, split: Split, content: Content) -> tuple[Layout, int, pa.Table]:
        format_ = self._format
        reader = format_.opened(split.path, pa.BufferReader(self._content_of(split, content)), 0)
        layout = self._layout_of(split, reader) if self._target.names else self._nothing()
        try:
            if layout.selection:
                table = format_.decoded(reader, layout)
                if not layout.fits(table.schema):
                    layout = self._layout_of(split, reader, table.schema)
                    table = format_.decoded(reader, layout)
                count = table.num_rows
            else:
                table, count = _NO_COLUMNS, format_.row_count(reader)
        except FORMAT_ERRORS as error:
            raise unreadable(split.path, error, format_.name) from error
        if count != split.row_count:
            raise self._miscounted(split, reader, count)
        if self._deletions is not None and (positions := self._deletions.of(split)) is not None:
            table = table.filter(kept_rows(positions, 0, count)) if layout.selection else table
            count -= len(positions)
        return layout, count, table

    def _nothing(self) -> Layout:
        if not self._layouts:
            self._layouts.append(nothing(self._target))
        return self._layouts[0]

    def _layout_of(self, split: Split, reader: Any, decoded: pa.Schema | None = None) -> Layout:
        """Return the file's layout, which it most likely shares with the last file.

        Args:
            split: The split, for messages.
            reader: The split's file.
            decoded: The schema of its decoded columns, if it is known.
        """
        for at, layout in enumerate(self._layouts):
            if self._format.describes(layout, reader) and (decoded is None or layout.fits(decoded)):
                if at:
                    self._layouts.insert(0, self._layouts.pop(at))
                return layout
        layout = self._format.find_layout(split.path, reader)
        self._layouts.insert(0, layout)
        return layout

    def _content_of(self, split: Split, content: Content) -> bytes:
        """Return the bytes that were asked for, or read them now."""
        if content is None:
            return self._fetch(split)
        return content if isinstance(content, bytes) else content.result()

    def _decode_large(
        self, piece: Piece, content: Content, max_rows: int, max_bytes: int
    ) -> Iterator[Rows]:
        split, opener = piece.split, self._format.opened
        if self._is_held(piece):
            reader = opener(split.path, pa.BufferReader(self._content_of(split, content)), 0)
            yield from self._stream(split, reader, max_rows, max_bytes)
            return
        if piece.excerpt is None:
            stream = self._files.stream(split, opener)
        else:
            stream = self._files.stream_excerpt(split, piece.excerpt, opener)
        with stream as reader:
            yield from self._stream(split, reader, max_rows, max_bytes)

    def _stream(self, split: Split, reader: Any, max_rows: int, max_bytes: int) -> Iterator[Rows]:
        layout = self._format.find_layout(split.path, reader)
        positions = self._deletions.of(split) if self._deletions is not None else None
        first = 0 if positions is None else rows_before(reader, split)
        count = 0
        for table in self._format.tables(split, reader, layout, max_rows, max_bytes):
            mask = None
            if positions is not None:
                mask = kept_rows(positions, first + count, table.num_rows)
            count += table.num_rows
            table = table if mask is None else table.filter(mask)
            yield self._join(layout, [(split, table.num_rows, table)])
        if split.is_whole and split.row_count not in (count, None):
            raise self._miscounted(split, reader, count)

    def _join(self, layout: Layout, waiting: Sequence[tuple[Split, int, pa.Table]]) -> Rows:
        splits, counts, tables = zip(*waiting, strict=True)
        try:
            return Rows(table=layout.apply(tables, sum(counts)), splits=splits, counts=counts)
        except (pa.ArrowInvalid, OldTimeError) as error:
            if len(waiting) > 1:
                for one in waiting:
                    self._join(layout, [one])
            if isinstance(error, OldTimeError):
                raise OldTimeError(splits[0].path, error.column, error.reason) from error
            raise unreadable(splits[0].path, error, self._format.name) from error

    def _miscounted(self, split: Split, reader: Any, count: int) -> TaskReadError:
        if self._format.row_count(reader) == split.row_count:
            reason = f"it holds {count:,} rows where its footer says {split.row_count:,}"
            return UnreadableFileError(split.path, reason, self._format.name)
        return StaleFileError(split.path, "row count", split.row_count, count)
