"""Batches of bounded size, from tables of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def bounded(tables: Iterable[pa.Table], max_rows: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut and join tables into batches near the bounds, keeping the order of rows.

    Args:
        tables: Tables of one schema, with at least one column.
        max_rows: Most rows of a batch.
        max_bytes: Most bytes of a batch, unless it is a single row.

    Yields:
        Batches that are not empty.
    """
    pending: list[pa.Table] = []
    pending_rows = pending_bytes = 0
    for table in tables:
        for piece in _cut(table, max_rows, max_bytes):
            piece_bytes = piece.nbytes
            if pending and (
                pending_rows + piece.num_rows > max_rows or pending_bytes + piece_bytes > max_bytes
            ):
                yield _joined(pending)
                pending, pending_rows, pending_bytes = [], 0, 0
            pending.append(piece)
            pending_rows += piece.num_rows
            pending_bytes += piece_bytes
    if pending:
        yield _joined(pending)


def _cut(table: pa.Table, max_rows: int, max_bytes: int) -> Iterator[pa.Table]:
    """Cut a table in halves until each piece is within the bounds."""
    if table.num_rows == 0:
        return
    parts = max(-(-table.num_rows // max_rows), min(-(-table.nbytes // max_bytes), table.num_rows))
    if parts == 1:
        yield table
        return
    rows = -(-table.num_rows // parts)
    for start in range(0, table.num_rows, rows):
        # Rows differ in size, so that a piece of the average length may still be too large.
        yield from _cut(table.slice(start, rows), max_rows, max_bytes)


def _joined(tables: list[pa.Table]) -> pa.RecordBatch:
    table = pa.concat_tables(tables).combine_chunks()
    return table.to_batches()[0]
