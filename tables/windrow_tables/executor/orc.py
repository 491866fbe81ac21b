"""ORC files as the executor decodes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

# `pyarrow.orc.ORCFile` wraps it in a Python object, which takes too long for small files.
from pyarrow._orc import ORCReader

from windrow_core.files.schema import fields_in
from windrow_tables.executor.batches import bounded
from windrow_tables.executor.errors import ColumnTypeError
from windrow_tables.executor.formats import FORMAT_ERRORS, FileFormat, rows_only, unreadable
from windrow_tables.executor.layouts import Layout, positions_of
from windrow_tables.executor.spec import ReadSpec, Split

_NTZ = pa.timestamp("us")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrcLayout(Layout):
    """How to read the wanted columns from ORC files of one schema, by name.

    Attributes:
        file_schema: All columns of the files.
    """

    file_schema: pa.Schema


class OrcFormat(FileFormat):
    """ORC, for a read. Plans send only columns here that Arrow reads as Spark does.

    Args:
        spec: What to read.
    """

    name = "ORC"
    has_short_footers = False
    has_joins = False

    def __init__(self, spec: ReadSpec) -> None:
        self._target = spec.decoded

    def opened(self, path: str, file: Any, buffer_bytes: int) -> Any:
        """See `FileFormat.opened`."""
        reader = ORCReader()
        try:
            reader.open(file)
        except FORMAT_ERRORS as error:
            raise unreadable(path, error, self.name) from error
        return reader

    def row_count(self, reader: Any) -> int:
        """See `FileFormat.row_count`."""
        count: int = reader.nrows()
        return count

    def describes(self, layout: Layout, reader: Any) -> bool:
        """See `FileFormat.describes`."""
        assert isinstance(layout, OrcLayout)
        return bool(reader.schema().equals(layout.file_schema))

    def find_layout(self, path: str, reader: Any) -> Layout:
        """See `FileFormat.find_layout`."""
        try:
            file_schema = reader.schema()
        except FORMAT_ERRORS as error:
            raise unreadable(path, error, self.name) from error
        positions = positions_of(path, file_schema, self._target)
        for field, at in zip(self._target, positions, strict=True):
            if at >= 0 and not _is_readable_as(file_schema.field(at).type, field.type):
                types = str(file_schema.field(at).type), str(field.type)
                raise ColumnTypeError(path, field.name, *types)
        present = sorted({at for at in positions if at >= 0})
        return OrcLayout(
            target=self._target,
            file_schema=file_schema,
            selection=[file_schema.names[at] for at in present],
            decoded=pa.schema([file_schema.field(at) for at in present]),
            positions=tuple(present.index(at) if at >= 0 else -1 for at in positions),
            rules=(),
        )

    def decoded(self, reader: Any, layout: Layout) -> pa.Table:
        """See `FileFormat.decoded`."""
        return reader.read(columns=layout.selection)

    def tables(
        self, split: Split, reader: Any, layout: Layout, max_rows: int, max_bytes: int
    ) -> Iterator[pa.Table]:
        """See `FileFormat.tables`; one stripe is decoded at a time."""
        try:
            if not layout.selection and split.is_whole:
                yield rows_only(reader.nrows())
                return
            # Only decoding a column tells the rows of a stripe.
            columns = layout.selection or reader.schema().names[:1]
            for stripe in split.blocks_of(reader.nstripes()):
                table = pa.Table.from_batches([reader.read_stripe(stripe, columns)])
                if not layout.selection:
                    yield rows_only(table.num_rows)
                    continue
                for batch in bounded([table], max_rows, max_bytes):
                    yield pa.Table.from_batches([batch])
        except FORMAT_ERRORS as error:
            raise unreadable(split.path, error, self.name) from error


def _is_readable_as(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a file's type can be the table's; Spark stores times without zone as numbers."""
    if source == target:
        return True
    if not pt.is_nested(source):
        return bool(pt.is_int64(source) and target == _NTZ)
    inside, others = fields_in(source), fields_in(target) if pt.is_nested(target) else []
    return (
        source.id == target.id
        and len(inside) == len(others)
        and all(
            # Libraries have different names for the items of lists and maps.
            (one.name == other.name or not pt.is_struct(source))
            and _is_readable_as(one.type, other.type)
            for one, other in zip(inside, others, strict=True)
        )
    )
