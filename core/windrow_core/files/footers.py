"""Finds a Parquet file's footer, and the rows and offsets of row groups in it."""

from __future__ import annotations

from typing import Any

# Bytes that are read at first from a file's end: most footers fit into them.
TAIL_BYTES = 64 * 2**10

_END_BYTES = 8
_MAGIC = b"PAR1"
_FIRST_OFFSET = len(_MAGIC)


def footer_bytes_in(tail: bytes) -> int:
    """Return the length of the footer in a file's last bytes; 0 if they are not Parquet's."""
    if not tail.endswith(_MAGIC):
        return 0
    return int.from_bytes(tail[-_END_BYTES : -len(_MAGIC)], "little") + _END_BYTES


def footer_in(tail: bytes) -> bytes:
    """Return the footer that a file's last bytes hold in full, without its length."""
    return tail[-footer_bytes_in(tail) : -_END_BYTES]


def rows_in(metadata: Any) -> int:
    """Return the number of rows in a file's row groups, whatever the footer's total says.

    Spark reads by row groups, and some writers leave the total at 0.

    Args:
        metadata: A `pyarrow.parquet.FileMetaData`.
    """
    return sum(metadata.row_group(index).num_rows for index in range(metadata.num_row_groups))


def row_group_start(row_group: Any) -> int:
    """Return the offset of a row group's first page, which decides the split it belongs to.

    Plans cut files at these offsets, and tasks read the row groups that start in their split; both
    must agree on the offsets.

    Args:
        row_group: A `pyarrow.parquet.RowGroupMetaData`.
    """
    if row_group.num_columns == 0:
        return _FIRST_OFFSET
    column = row_group.column(0)
    start: int = column.data_page_offset
    dictionary = column.dictionary_page_offset
    # Some writers state 0 for a missing dictionary.
    return dictionary if dictionary is not None and 0 < dictionary < start else start
