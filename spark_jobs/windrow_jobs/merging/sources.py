"""Files to be merged, as they are opened and read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.files.beneath import absolute_path, home_for, home_of, open_beneath
from windrow.files.excerpts.thrift import ThriftError
from windrow.files.footers import rows_in
from windrow_jobs.merging.footers import MAGIC, TAIL_BYTES, Footer, file_of
from windrow_jobs.merging.physical import PhysicalSchema

_MAX_BATCH_ROWS = 2**16
_BATCH_BYTES = 32 * 2**20


class UnfitFileError(Exception):
    """A file cannot be merged; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file, as it was when its footer was read.

    Attributes:
        location: Absolute path of the table's folder.
        path: Its path, relative to the location.
        size_bytes: Its size.
        mtime_ns: When it was changed last.
        footer: Its footer.
        rows: Number of its rows.
        stored_bytes: Bytes of its column chunks, compressed.
        plain_bytes: The same, not compressed.
    """

    location: str
    path: str
    size_bytes: int
    mtime_ns: int
    footer: Footer
    rows: int
    stored_bytes: int
    plain_bytes: int

    @property
    def folder(self) -> str:
        """Folder of the file, relative to the location."""
        return self.path.rpartition("/")[0]

    def tables(self, schema: PhysicalSchema) -> Iterator[pa.Table]:
        """Yield the file's rows, a bounded number at a time.

        Raises:
            UnfitFileError: It has changed.
            OSError: It cannot be read.
            ArrowException: It is damaged.
        """
        with _opened(self.location, self.path) as file:
            status = os.fstat(file.fileno())
            if (status.st_size, status.st_mtime_ns) != (self.size_bytes, self.mtime_ns):
                raise UnfitFileError("it has changed since its footer was read")
            yield from tables_in(file, self.footer, schema, self.plain_bytes // max(self.rows, 1))


def source(location: str, path: str, max_footer_bytes: int) -> Source:
    """Open a file and read its footer.

    Args:
        location: Absolute path of the table's folder.
        path: Path relative to the location.
        max_footer_bytes: Files with longer footers are unfit.

    Raises:
        UnfitFileError: It is no Parquet file that can be merged.
        FileNotFoundError: It is gone.
        OSError: It cannot be read.
    """
    with _opened(location, path) as file:
        status = os.fstat(file.fileno())
        footer = _footer(file, status.st_size, max_footer_bytes)
    try:
        if footer.is_encrypted or any(
            chunk.is_elsewhere for chunks in footer.chunks() for chunk in chunks
        ):
            raise UnfitFileError("it is encrypted, or parts of it lie in other files")
        chunks = [chunk for group in footer.chunks() for chunk in group]
        rows = rows_in(pq.read_metadata(pa.BufferReader(file_of(footer.data))))
    except (ThriftError, pa.ArrowException, OSError) as error:
        raise UnfitFileError(f"its footer is damaged ({error})") from error
    return Source(
        location,
        path,
        status.st_size,
        status.st_mtime_ns,
        footer,
        rows,
        sum(chunk.stored_bytes for chunk in chunks),
        sum(chunk.plain_bytes for chunk in chunks),
    )


def footer_of(file: Any) -> Footer:
    """Return the footer of an open file that was written here."""
    return _footer(file, os.fstat(file.fileno()).st_size, 2**31)


def tables_in(
    file: Any, footer: Footer, schema: PhysicalSchema, row_bytes: int
) -> Iterator[pa.Table]:
    """Yield the rows of an open file, a bounded number at a time.

    Args:
        file: The file.
        footer: Its footer.
        schema: The schema to read it with.
        row_bytes: Expected bytes of a row.

    Raises:
        ArrowException: It is damaged.
    """
    metadata = pq.read_metadata(pa.BufferReader(file_of(schema.footer(footer))))
    opened = pq.ParquetFile(
        file, metadata=metadata, pre_buffer=False, page_checksum_verification=True
    )
    batch_rows = max(min(_BATCH_BYTES // max(row_bytes, 1), _MAX_BATCH_ROWS), 1)
    for batch in opened.iter_batches(batch_rows, use_threads=False):
        yield pa.Table.from_batches([batch])


def _opened(location: str, path: str) -> Any:
    absolute = absolute_path(location, path)
    descriptor = open_beneath(home_for(location, home_of(location), absolute), absolute)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnfitFileError("it is no file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _footer(file: Any, size_bytes: int, max_footer_bytes: int) -> Footer:
    end = os.pread(file.fileno(), TAIL_BYTES, max(size_bytes - TAIL_BYTES, 0))
    if end[4:] == b"PARE":
        raise UnfitFileError("it is encrypted")
    footer_bytes = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or footer_bytes > size_bytes - TAIL_BYTES:
        raise UnfitFileError("it does not end as Parquet files do: part of it may be missing")
    if footer_bytes > max_footer_bytes:
        raise UnfitFileError(f"its footer has {footer_bytes:,} bytes")
    data = os.pread(file.fileno(), footer_bytes, size_bytes - TAIL_BYTES - footer_bytes)
    try:
        return Footer.of(data)
    except ThriftError as error:
        raise UnfitFileError(str(error)) from error
