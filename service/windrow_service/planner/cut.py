"""Cut large files into splits, on row-group boundaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.splits import NO_BUCKET, Deletes, Hosts, Ints, Splits


def cut(files: pa.Table, rows: Ints, max_split_size: int) -> Splits:
    """Turn files into splits.

    A file of at most `max_split_size` bytes is one split. A larger one is cut before a
    row group whenever the piece would pass `max_split_size`; a row group is never divided,
    so a piece is larger only when it holds a single row group. The first piece begins at
    byte 0 and the last ends with the file, so the pieces cover every byte once.

    Args:
        files: An inventory, in the order of its paths.
        rows: Which files to cut, ascending.
        max_split_size: Bytes.
    """
    size = _ints(files["size_bytes"])[rows]
    bucket = _ints(files["bucket"].fill_null(NO_BUCKET))[rows]
    hosts = Hosts.of(files["hosts"])
    group_count = _ints(pc.list_value_length(files["row_group_offsets"]).fill_null(0))[rows]
    large = (size > max_split_size) & (group_count > 1)

    whole = np.flatnonzero(~large)
    source, start = whole, np.zeros(len(whole), np.int64)
    if large.any():
        cut_rows = np.flatnonzero(large)
        offsets = files["row_group_offsets"].take(pa.array(rows[cut_rows]))
        piece_source, piece_start = _pieces(
            offsets, group_count[large], size[large], max_split_size
        )
        source = np.concatenate((source, cut_rows[piece_source]))
        start = np.concatenate((start, piece_start))
        order = np.lexsort((start, source))
        source, start = source[order], start[order]

    last = np.append(source[1:] != source[:-1], True) if len(source) else np.empty(0, np.bool_)
    end = np.where(last, size[source], np.append(start[1:], 0))
    file = rows[source]
    return Splits(
        file=file,
        start=start,
        length=end - start,
        bucket=bucket[source],
        hosts=hosts.take(file),
        deletes=_deletes(files, file),
        paths=files["path"],
    )


def _pieces(offsets: pa.ChunkedArray, counts: Ints, size: Ints, limit: int) -> tuple[Ints, Ints]:
    """Return the file (row of `size`) and the start of every piece, in order."""
    begin = _ints(pc.list_flatten(offsets)).copy()
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    begin[first] = 0
    source = np.repeat(np.arange(len(size)), counts)
    # Files laid end to end, so that one search serves all of them.
    base = np.concatenate(([0], np.cumsum(size)))
    position = begin + base[source]
    following = np.searchsorted(np.append(position, base[-1]), position + limit, side="right") - 1
    following = np.minimum(following, np.append(first[1:], len(begin))[source])
    following = np.maximum(following, np.arange(len(begin)) + 1)
    kept = walk(following)
    return source[kept], begin[kept]


def walk(following: Ints) -> Ints:
    """Return 0, following[0], following[following[0]], … up to the end: one step per piece."""
    steps = following.tolist()
    visited = []
    at = 0
    while at < len(steps):
        visited.append(at)
        at = steps[at]
    return np.array(visited, np.int64)


def _deletes(files: pa.Table, file: Ints) -> Deletes | None:
    deletes = Deletes(_ints(files["delete_count"]), _ints(files["delete_bytes"]))
    return deletes.take(file) if deletes.count.any() else None


def _ints(column: pa.ChunkedArray) -> Ints:
    values: Ints = column.to_numpy().astype(np.int64, copy=False)
    return values
