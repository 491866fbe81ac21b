"""Finds a Parquet file's footer, and the size of its schema, and rows and offsets of row groups."""

from __future__ import annotations

from typing import Any

from windrow_core.files.excerpts.thrift import INTEGERS, LIST, Skimmer
from windrow_core.files.limits import refuse_deep, refuse_wide

# Bytes that are read at first from a file's end: most footers fit into them.
TAIL_BYTES = 64 * 2**10

_END_BYTES = 8
_MAGIC = b"PAR1"
_FIRST_OFFSET = len(_MAGIC)

# Numbers of fields in parquet.thrift.
_SCHEMA, _CHILDREN = 2, 5


class SchemaLimit:
    """Refuses footers whose schemas have too many fields or levels, before they are decoded.

    Args:
        fields: Most fields of a schema.
    """

    def __init__(self, fields: int) -> None:
        self._fields = fields
        # The beginning of the last footer, up to the end of its schema: most files share it.
        self._schema: bytes | None = None

    def check(self, footer: bytes) -> None:
        """Refuse a footer.

        Raises:
            ValueError: Its schema is too large, or its fields cannot be told apart.
        """
        if self._schema is not None and footer.startswith(self._schema):
            return
        skimmer = Skimmer(footer)
        for number, type_ in skimmer.fields():
            if number == _SCHEMA and type_ == LIST:
                count, _ = skimmer.listed()
                refuse_wide(count - 1, self._fields)
                _check_levels(skimmer, count)
                self._schema = footer[: skimmer.at]
                return
            skimmer.skip(type_)


def _check_levels(skimmer: Skimmer, count: int) -> None:
    # How many children of each group are still to come, from the outermost group to the innermost.
    groups: list[int] = []
    for _ in range(count):
        children = 0
        for number, type_ in skimmer.fields():
            if number == _CHILDREN and type_ in INTEGERS:
                children = skimmer.integer()
            else:
                skimmer.skip(type_)
        while groups and not groups[-1]:
            groups.pop()
        if groups:
            groups[-1] -= 1
        if children > 0:
            groups.append(children)
            # The outermost group is the row.
            refuse_deep(len(groups) - 1)


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
