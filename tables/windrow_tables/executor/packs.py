"""Rows of files that are read from a pack, where they lie one file after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_core.files.arrays import array_of
from windrow_tables.executor.errors import OldTimeError, StaleFileError, UnreadableFileError
from windrow_tables.executor.formats import FORMAT_ERRORS, FileFormat, unreadable
from windrow_tables.executor.rows import Rows
from windrow_tables.executor.spec import PackFile, Split


def packed_rows(
    reader: Any, format_: FileFormat, pack: PackFile, splits: Sequence[Split]
) -> Iterator[Rows]:
    """Yield the rows of files in a pack, a row group at a time.

    Args:
        reader: The pack, opened.
        format_: Its format.
        pack: The pack, for messages.
        splits: Splits of whole files, in the order in which the pack has them.

    Raises:
        TaskReadError: The pack cannot be read, does not have so many rows, or files share rows of it.
    """
    try:
        layout = format_.find_layout(pack.path, reader)
    except UnicodeDecodeError as error:
        raise unreadable(pack.path, error, format_.name) from error
    begins = np.array([split.pack_row for split in splits], np.int64)
    ends = begins + np.array([split.row_count for split in splits], np.int64)
    metadata = reader.metadata
    if len(ends) and ends[-1] > metadata.num_rows:
        raise StaleFileError(pack.path, "row count", int(ends[-1]), metadata.num_rows)
    # From the end of a file on, up to the end of the next one.
    if (begins < np.concatenate(([0], ends[:-1]))).any() or (ends < begins).any():
        raise UnreadableFileError(pack.path, "the plan has files that share rows of it")
    first = 0
    for group in range(metadata.num_row_groups):
        last = first + metadata.row_group(group).num_rows
        # Those with rows in this row group.
        begin, end = np.searchsorted(ends, first, "right"), np.searchsorted(begins, last, "left")
        some = slice(int(begin), int(end))
        own_begins = np.maximum(begins[some], first) - first
        counts = np.minimum(ends[some], last) - first - own_begins
        if counts.sum():
            try:
                table = reader.read_row_groups(
                    [group], column_indices=layout.selection, use_threads=False
                )
                table = _taken(table, own_begins, counts)
                table = layout.apply([table], len(table))
            except (*FORMAT_ERRORS, OldTimeError) as error:
                raise unreadable(pack.path, error, format_.name) from error
            yield Rows(table=table, splits=splits[some], counts=counts.tolist())
        first = last


def _taken(table: pa.Table, begins: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> pa.Table:
    """Return some runs of a table's rows."""
    if counts.sum() == begins[-1] + counts[-1] - begins[0]:
        return table.slice(int(begins[0]), int(counts.sum()))
    is_wanted = np.zeros(len(table) + 1, np.int8)
    np.add.at(is_wanted, begins, 1)
    np.add.at(is_wanted, begins + counts, -1)
    return table.filter(array_of(np.cumsum(is_wanted[:-1], dtype=np.int8)).cast(pa.bool_()))
