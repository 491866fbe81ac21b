"""Cut large files into splits, where their format allows it.

A piece is at most as large as the limit, unless a single row group is larger. All pieces of a file
except the last two are as large as possible. With a level tail, once the remainder fits into two
pieces it is cut in the middle, or at the nearest boundary: 250 bytes with a limit of 100 become
100, 75 and 75, as in Hadoop's CombineFileInputFormat.

Parquet and ORC files are cut where the inventory says that a row group or stripe begins. They stay
whole if it gives no offsets, or impossible ones. Files of lines, plain or compressed with bzip2,
are cut at any byte if no blocks are known, because their readers skip to the next line, unless a
record may span several lines. A file compressed as a whole stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.errors import PlanTooLargeError
from windrow_service.planner.fingerprints import fingerprints
from windrow_service.planner.splits import (
    MAX_COST,
    NO_BUCKET,
    Bools,
    Deletes,
    Hosts,
    Ints,
    Splits,
    run_offsets,
    walk,
)

_BLOCKS = r"(?i)\.(parquet|parq|pq|orc)$"
_LINES = r"(?i)\.(csv|tsv|json|jsonl|ndjson|txt|text|log)(\.bz2)?$|\.bz2$"
# Streams of these codecs can only be read from the beginning.
_STREAM = r"(?i)\.(gz|gzip|zst|zstd|snappy|sz|lz4|lzo|lzo_deflate|lzma|xz|br|deflate|z|zip)$"


def is_stream(paths: pa.ChunkedArray) -> Bools:
    """Return which files are compressed as a whole, so that they cannot be cut.

    `x.gz` and `x.csv.zst` are; `x.snappy.parquet` is not, because Parquet compresses its pages.
    """
    return _matches(paths, _STREAM)


def is_lines(paths: pa.ChunkedArray, *, has_lines: bool) -> Bools:
    """Return which files hold one record per line, so that a reader can start from any byte.

    A bzip2 reader also finds the next block from any byte. The suffix decides; if it is
    inconclusive, the table's format does.
    """
    if has_lines:
        return ~_matches(paths, _BLOCKS)
    return _matches(paths, _LINES)


def _matches(paths: pa.ChunkedArray, pattern: str) -> Bools:
    matches: Bools = pc.match_substring_regex(paths, pattern).to_numpy()
    return matches


# Columns that describe a split's file.
_COLUMNS = [
    "size_bytes",
    "mtime_ns",
    "row_count",
    "bucket",
    "hosts",
    "delete_count",
    "delete_bytes",
]


def cut(
    files: pa.Table,
    rows: Ints,
    max_size: int,
    *,
    initial_size: int | None = None,
    initial_count: int = 0,
    level_tail: bool = True,
    has_lines: bool = False,
    any_line: bool = True,
    max_splits: int | None = None,
) -> Splits:
    """Turn files into splits that cover every byte exactly once.

    Args:
        files: An inventory, in path order.
        rows: The files to cut, ascending.
        max_size: Most bytes of a piece.
        initial_size: Most bytes of a piece among the initial splits; `max_size` by default.
        initial_count: Number of initial splits, in path order; whole files count.
        level_tail: Whether the last two pieces of a file are made about equal.
        has_lines: Whether files have one record per line if their suffix does not show it.
        any_line: Whether a reader of text can start at any line.
        max_splits: Most pieces of files that can be cut at any byte; checked before cutting.
    """
    size = _ints(files["size_bytes"])[rows]
    cutter = _Cutter(files, rows, size, level_tail, has_lines, any_line, max_splits)
    file, start = np.empty(0, np.int64), np.empty(0, np.int64)
    next_file, next_start = 0, 0
    if initial_count:
        # Each file takes up at least one initial split.
        first = np.arange(min(initial_count, len(rows)))
        file, start = cutter.of(
            first, np.zeros_like(first), min(initial_size or max_size, max_size)
        )
        next_file = len(first)
        if len(file) > initial_count:
            next_file, next_start = int(file[initial_count]), int(start[initial_count])
        file, start = file[:initial_count], start[:initial_count]
    rest = np.arange(next_file, len(rows))
    begin = np.zeros_like(rest)
    begin[:1] = next_start
    rest_file, rest_start = cutter.of(rest, begin, max_size)
    file, start = np.concatenate((file, rest_file)), np.concatenate((start, rest_start))

    last = np.append(file[1:] != file[:-1], True) if len(file) else np.empty(0, np.bool_)
    end = np.where(last, size[file], np.append(start[1:], 0))
    row = at = rows[file]
    if len(rows) < len(files) // 2:
        # Few files are left: do not decode the hosts of the others.
        hashes = np.zeros(len(files), np.uint64)
        files, at = files.select(_COLUMNS).take(pa.array(rows)), file
        hashes[rows] = fingerprints(files)
    else:
        hashes = fingerprints(files)
    return Splits(
        file=row,
        start=start,
        length=end - start,
        bucket=_ints(files["bucket"].fill_null(NO_BUCKET))[at],
        hosts=Hosts.of(files["hosts"]).take(at),
        deletes=_deletes(files, at),
        fingerprints=hashes,
    )


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts files from a given offset on; files are numbered by their position in `rows`."""

    files: pa.Table
    rows: Ints
    size: Ints
    level_tail: bool
    has_lines: bool
    any_line: bool
    max_splits: int | None

    def of(self, file: Ints, begin: Ints, limit: int) -> tuple[Ints, Ints]:
        """Return the file and the start of every piece between `begin` and the file's end."""
        large = np.flatnonzero(self.size[file] - begin > limit)
        if not len(large):
            return file, begin
        end = self.size[file]
        count = np.ones(len(file), np.int64)
        offsets, blocks, anywhere = self._boundaries(file[large])
        in_blocks, by_bytes = large[blocks], large[anywhere]

        block_count, block_start = _by_blocks(
            offsets, begin[in_blocks], end[in_blocks], limit, self.level_tail
        )
        count[in_blocks] = block_count
        pieces = int(-(-(end[by_bytes] - begin[by_bytes]) // limit).sum())
        if self.max_splits is not None and pieces > self.max_splits:
            raise PlanTooLargeError(pieces, self.max_splits, "splits")
        byte_count, byte_start = _by_bytes(begin[by_bytes], end[by_bytes], limit, self.level_tail)
        count[by_bytes] = byte_count

        source = np.repeat(np.arange(len(file)), count)
        start = begin[source]
        for cut_files, cut_start in ((in_blocks, block_start), (by_bytes, byte_start)):
            chosen = np.zeros(len(file), np.bool_)
            chosen[cut_files] = True
            start[chosen[source]] = cut_start
        return file[source], start

    def _boundaries(self, file: Ints) -> tuple[pa.ListArray, Bools, Bools]:
        """Return the offsets, which files are cut at them, and which are cut at any byte."""
        row = pa.array(self.rows[file])
        paths = self.files["path"].take(row)
        lists = self.files["row_group_offsets"].take(row).combine_chunks()
        may_cut = ~is_stream(paths)
        blocks = may_cut & _are_boundaries(lists, self.size[file])
        anywhere = may_cut & ~blocks & is_lines(paths, has_lines=self.has_lines) & self.any_line
        return lists.filter(pa.array(blocks)), blocks, anywhere


def _are_boundaries(lists: pa.ListArray, size: Ints) -> Bools:
    """Return which lists name at least two positions inside their file, in ascending order."""
    counts = _counts(lists)
    offset = _ints(pc.list_flatten(lists))
    source = np.repeat(np.arange(len(size)), counts)
    wrong = (offset < 0) | (offset >= size[source])
    wrong[1:] |= (offset[1:] <= offset[:-1]) & (source[1:] == source[:-1])
    right = np.ones(len(size), np.bool_)
    right[source[wrong]] = False
    return right & (counts > 1)


def _by_bytes(begin: Ints, end: Ints, limit: int, level_tail: bool) -> tuple[Ints, Ints]:
    """Return the number of pieces of each range, all longer than `limit`, and their starts."""
    count = -(-(end - begin) // limit)
    source = np.repeat(np.arange(len(begin)), count)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
    start = begin[source] + nth * limit
    if level_tail:
        tail = begin + (count - 2) * limit
        start[np.cumsum(count) - 1] = tail + (end - tail + 1) // 2
    return count, start


def _by_blocks(
    lists: pa.ListArray, begin: Ints, end: Ints, limit: int, level_tail: bool
) -> tuple[Ints, Ints]:
    """Return the number of pieces of each range, and all starts, each at an offset."""
    if not len(begin):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    source = np.repeat(np.arange(len(begin)), _counts(lists))
    offset = _ints(pc.list_flatten(lists))
    first = run_offsets(source)[:-1]
    # Bytes before the first row group belong to it.
    offset[first] = begin
    inside = offset > begin[source]
    inside[first] = True
    source, offset = source[inside], offset[inside]
    runs = run_offsets(source)
    # Lay the ranges end to end, so that one search serves all of them.
    base = np.cumsum(end - begin) - end
    position, stop = offset + base[source], (end + base)[source]
    line = np.append(position, stop[-1:])
    after = runs[1:][source]

    furthest = np.searchsorted(line, position + limit, side="right") - 1
    following = np.clip(furthest, np.arange(len(position)) + 1, after)
    if level_tail:
        middle = position + (stop - position) // 2
        upper = np.clip(np.searchsorted(line, middle), 0, after)
        lower = np.maximum(upper - 1, 0)
        stops_at = np.where(upper == after, stop, line[upper])
        nearest = np.where(middle - line[lower] < stops_at - middle, lower, upper)
        level = (
            (stop - position > limit)
            & (line[nearest] - position <= limit)
            & (stop - line[nearest] <= limit)
            & (nearest > np.arange(len(position)))
            & (nearest < after)
        )
        following = np.where(level, nearest, following)
    starts = walk(following)
    return np.bincount(source[starts], minlength=len(begin)), offset[starts]


def _deletes(files: pa.Table, file: Ints) -> Deletes | None:
    count = _ints(files["delete_count"])
    if not count.any():
        return None
    # Each split counts all delete files of its file, up to a bound that prevents overflow.
    size_bytes = np.minimum(_ints(files["delete_bytes"]), MAX_COST // max(len(file), 1))
    return Deletes(count, size_bytes).take(file)


def _counts(lists: pa.ListArray) -> Ints:
    return _ints(pc.list_value_length(lists).fill_null(0))


def _ints(column: pa.Array | pa.ChunkedArray) -> Ints:
    if isinstance(column, pa.Array):
        values: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64)
    else:
        values = column.to_numpy().astype(np.int64, copy=False)
    return values
