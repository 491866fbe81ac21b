"""Sources of packs: small Parquet files, read whole, and the hashes of their bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow._parquet import ParquetReader

from windrow_core.files.excerpts.thrift import ThriftError
from windrow_core.files.footers import rows_in
from windrow_tables.merging.footers import TAIL_BYTES, Footer, Head, file_of
from windrow_tables.merging.physical import PhysicalSchema
from windrow_tables.merging.sources import Heads, UnfitFileError, footer_length


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file.

    Attributes:
        data: Its bytes.
        head: The head of its footer.
        keys: Its metadata.
        created_by: Its writer.
        rows: Number of its rows.
    """

    data: bytes
    head: Head
    keys: Mapping[bytes, bytes]
    created_by: str
    rows: int

    @classmethod
    def of(cls, data: bytes, heads: Heads) -> Content:
        """Look at the footer of a file.

        Raises:
            UnfitFileError: It is damaged, or encrypted.
        """
        footer = _footer_in(data)
        try:
            # First, since Arrow ends the process when it is asked for chunks that are encrypted.
            head = heads.of(footer)
            metadata = _metadata_in(footer)
        except (ThriftError, pa.ArrowException, OSError) as error:
            raise UnfitFileError(f"its footer is damaged ({error})") from error
        return cls(data, head, metadata.metadata or {}, metadata.created_by, rows_in(metadata))

    @property
    def digest(self) -> bytes:
        """SHA-256 of its bytes."""
        return hashlib.sha256(self.data).digest()

    def rows_of(self, schema: PhysicalSchema) -> pa.Table:
        """Return its rows.

        Args:
            schema: A physical schema for files with its head.

        Raises:
            UnfitFileError: They are damaged.
        """
        try:
            table = reader_of(self.data, schema).read_all(use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise UnfitFileError(f"it is damaged ({error})") from error
        if len(table) != self.rows:
            raise UnfitFileError(f"it has {len(table):,} rows, but its footer says {self.rows:,}")
        return table


def reader_of(data: bytes | pa.Buffer, schema: PhysicalSchema) -> Any:
    """Open a file in memory to read values as they are stored.

    Args:
        data: Its bytes.
        schema: A physical schema for files with its head.
    """
    # Arrow's own class for files would parse the footer once more.
    reader = ParquetReader()
    reader.open(
        pa.BufferReader(data),
        metadata=_metadata_in(schema.footer(_footer_in(data))),
        pre_buffer=False,
        page_checksum_verification=True,
    )
    return reader


def _metadata_in(footer: bytes) -> Any:
    reader = ParquetReader()
    reader.open(pa.BufferReader(file_of(footer)), pre_buffer=False)
    return reader.metadata


def columns_of(data: bytes) -> pa.Schema:
    """Return the columns of a file in memory, as Arrow sees them."""
    return _metadata_in(_footer_in(data)).schema.to_arrow_schema()


def footer_of(data: bytes | pa.Buffer) -> Footer:
    """Return the footer of a file in memory."""
    return Footer.of(_footer_in(data))


def _footer_in(data: bytes | pa.Buffer) -> bytes:
    view = memoryview(data)
    end = len(view) - TAIL_BYTES
    length = footer_length(bytes(view[max(end, 0) :]), len(view))
    return bytes(view[end - length : end])
