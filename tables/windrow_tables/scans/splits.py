"""Parts of a scan, for the workers of Ray, Dask or PyTorch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence

import pyarrow as pa

from windrow_core.cards import Card, card_of
from windrow_core.sizes import size_text
from windrow_tables.executor.reading import read_descriptor
from windrow_tables.executor.spec import ReadSpec
from windrow_tables.scans.rows import Rows


class ScanSplit(Rows):
    """A part of a scan's rows, which any process can read that reaches the table's files.

    It can be pickled, needs no coordinator, and is read by the thread that asks for its rows.

    Args:
        spec: What to read of the table, from `ReadSpec.packed`.
        descriptors: The groups to read.
        size_bytes: Bytes of their splits.
    """

    def __init__(self, spec: bytes, descriptors: Sequence[bytes], size_bytes: int) -> None:
        self._spec = spec
        self._descriptors = descriptors
        self.size_bytes = size_bytes

    @property
    def schema(self) -> pa.Schema:
        """See `Rows.schema`."""
        return ReadSpec.unpacked(self._spec).output_schema

    def read(self) -> pa.Table:
        """Return all rows of this part; the same as `to_table`.

        Example:
            part = client.scan("sales.events").splits(8)[0]
            part.read().to_pandas()
        """
        return self.to_table()

    def to_reader(self) -> pa.RecordBatchReader:
        """See `Rows.to_reader`."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Generator[pa.RecordBatch, None, None]:
        spec = ReadSpec.unpacked(self._spec)
        for descriptor in self._descriptors:
            yield from read(spec, descriptor)


@card_of.register
def _(split: ScanSplit) -> Card:
    names = ", ".join(split.schema.names)
    return Card("Part of a scan", [("size", size_text(split.size_bytes)), ("columns", names)])


def read(spec: ReadSpec, descriptor: bytes) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a group."""
    yield from read_descriptor(spec, pa.py_buffer(descriptor), Counter())
