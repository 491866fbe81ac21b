"""The files of several manifests as one inventory, in path order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Rows that must be copied are copied in blocks of this size, to limit memory.
_BLOCK_FILES = 65_536
# With more pieces than this, computing with a block costs more than copying it.
_MAX_PIECES = 64


def merge_files(tables: Sequence[pa.Table], removed: Sequence[npt.NDArray[np.int32]]) -> pa.Table:
    """Return the live rows of manifests, in path order.

    Long runs of rows of one manifest are not copied.

    Args:
        tables: Decoded manifests of one schema, at least one, in any order; each is sorted by
            path, and no path appears in two of them, except in removed rows.
        removed: For each manifest, the positions of removed rows.

    Complexity: O(n) for n rows of manifests that do not overlap, O(n log n) at worst.
    """
    order = [at for at, table in enumerate(tables) if len(table)]
    order.sort(key=lambda at: tables[at]["path"][0].as_py())
    if not order:
        return tables[0]
    tables, removed = [tables[at] for at in order], [removed[at] for at in order]
    if not _overlap(tables) and not any(map(len, removed)):
        return pa.concat_tables(tables)
    ends = np.cumsum([len(table) for table in tables])
    starts = np.concatenate(([0], ends[:-1]))
    is_live = np.ones(ends[-1], np.bool_)
    for start, positions in zip(starts, removed, strict=True):
        is_live[start + positions] = False
    if _overlap(tables):
        paths = pa.chunked_array([chunk for table in tables for chunk in table["path"].chunks])
        rows = pc.sort_indices(paths).to_numpy().astype(np.int64)
        rows = rows[is_live[rows]]
    else:
        rows = np.flatnonzero(is_live)
    owner = np.searchsorted(ends, rows, "right")
    rows -= starts[owner]
    pieces = [tables[0].slice(0, 0)]
    for begin in range(0, len(rows), _BLOCK_FILES):
        block = slice(begin, begin + _BLOCK_FILES)
        pieces += _block(tables, owner[block], rows[block])
    return pa.concat_tables(pieces)


def _overlap(tables: Sequence[pa.Table]) -> bool:
    return any(
        left["path"][-1].as_py() >= right["path"][0].as_py() for left, right in pairwise(tables)
    )


def _block(
    tables: Sequence[pa.Table], owner: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> list[pa.Table]:
    """Return rows given by their table and their position there, in that order."""
    breaks = np.flatnonzero((np.diff(owner) != 0) | (np.diff(rows) != 1)) + 1
    edges = np.concatenate(([0], breaks, [len(rows)]))
    if len(edges) - 1 <= _MAX_PIECES:
        return [
            tables[owner[first]].slice(rows[first], last - first)
            for first, last in pairwise(edges.tolist())
        ]
    # For each table, a block takes adjacent rows, and the removed ones between them.
    at = np.empty(len(rows), np.int64)
    slices, length = [], 0
    for table in np.unique(owner):
        mine = np.flatnonzero(owner == table)
        first, last = rows[mine[0]], rows[mine[-1]]
        slices.append(tables[table].slice(first, last + 1 - first))
        at[mine] = rows[mine] - first + length
        length += len(slices[-1])
    return [pa.concat_tables(slices).combine_chunks().take(pa.array(at))]
