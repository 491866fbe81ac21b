"""Files to be merged, as they are opened and read."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow_core.files.changes import download
from windrow_core.files.excerpts.thrift import ThriftError
from windrow_core.files.footers import rows_in
from windrow_core.files.permissions import Access, access_of
from windrow_core.files.places import place_of
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, home_for, home_of, open_beneath
from windrow_tables.merging.footers import MAGIC, TAIL_BYTES, Footer, Head, file_of
from windrow_tables.merging.physical import PhysicalSchema

_MAX_BATCH_ROWS = 2**16
_BATCH_BYTES = 32 * 2**20
# Remote files of which a task has a large piece in memory, while it copies more files than these.
_LARGE_COPIES = 4
# Tables have few schemas over time.
_HEADS = 16


class UnfitFileError(Exception):
    """A file cannot be merged; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file, as it was when its footer was read.

    Attributes:
        location: Absolute path of the table's folder, or its URI.
        home: What `home_of` returns for the location.
        path: Its path, relative to the location.
        size_bytes: Its size.
        mtime_ns: When it was changed last.
        etag: An object store's identifier of its content.
        access: Who may use it; None on object stores.
        copy: Where a copy of it lies on the local disk; None if it lies there itself.
        head: The head of its footer.
        keys: Its metadata.
        created_by: Its writer.
        rows: Number of its rows.
        stored_bytes: Bytes of its column chunks, compressed.
        plain_bytes: The same, not compressed.
        selection: Which of the file's rows count; None for all of them.
    """

    location: str
    home: str
    path: str
    size_bytes: int
    mtime_ns: int
    etag: str | None
    access: Access | None
    copy: str | None
    head: Head
    keys: Mapping[bytes, bytes]
    created_by: str
    rows: int
    stored_bytes: int
    plain_bytes: int
    selection: npt.NDArray[np.bool_] | None = None

    @property
    def folder(self) -> str:
        """Folder of the file, relative to the location."""
        return self.path.rpartition("/")[0]

    def footer(self) -> Footer:
        """Return the file's footer."""
        with self._opened() as file:
            footer = footer_of(file)
        _require_whole(footer)
        return footer

    def tables(self, schema: PhysicalSchema) -> Iterator[pa.Table]:
        """Yield the file's rows, a bounded number at a time.

        Args:
            schema: A physical schema for files with its head.
        """
        begin = 0
        with self._opened() as file:
            for table in tables_in(file, schema, self.plain_bytes // max(self.rows, 1)):
                end = begin + len(table)
                if self.selection is not None:
                    table = table.filter(pa.array(self.selection[begin:end]))
                yield table
                begin = end

    def only(self, selection: npt.NDArray[np.bool_]) -> Source:
        """Return the file with some of its rows.

        Args:
            selection: For each of its rows, whether it counts.
        """
        if len(selection) != self.rows:
            raise UnfitFileError("its footer tells of another number of rows than it has")
        return replace(self, rows=int(np.count_nonzero(selection)), selection=selection)

    def _opened(self) -> Any:
        if self.copy is not None:
            return open(self.copy, "rb")
        file = _opened(self.location, self.home, self.path)
        status = os.fstat(file.fileno())
        if (status.st_size, status.st_mtime_ns) != (self.size_bytes, self.mtime_ns):
            file.close()
            raise UnfitFileError("it has changed since its footer was read")
        return file


class Sources:
    """Opens files of one table, most of which have the same head.

    Args:
        location: Absolute path of the table's folder, or its URI.
        max_footer_bytes: Files with longer footers are unfit.
        copies: Absolute path of a folder for copies of remote files.
    """

    def __init__(self, location: str, max_footer_bytes: int, copies: str) -> None:
        self._copies = copies
        self._location = location
        self._home = home_of(location)
        self._max_footer_bytes = max_footer_bytes
        self._heads = Heads()
        self._large = BoundedSemaphore(_LARGE_COPIES)

    def open(self, path: str) -> Source:
        """Open a file and read its footer.

        Args:
            path: Path relative to the location.
        """
        copy, status, access = None, None, None
        if is_remote(self._location):
            copy, status, access = self._copied(path)
        with self._file(path, copy) as file:
            if status is None:
                of_system = os.fstat(file.fileno())
                status = FileStatus(of_system.st_size, of_system.st_mtime_ns)
                access = access_of(file.fileno())
            footer = _footer_bytes(file, self._max_footer_bytes)
        assert status.mtime_ns is not None
        try:
            # First, since Arrow ends the process when it is asked for chunks that are encrypted.
            head = self._heads.of(footer)
            metadata = pq.read_metadata(pa.BufferReader(file_of(footer)))
        except (ThriftError, pa.ArrowException, OSError) as error:
            raise UnfitFileError(f"its footer is damaged ({error})") from error
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
        return Source(
            self._location,
            self._home,
            path,
            status.size_bytes,
            status.mtime_ns,
            status.etag,
            access,
            copy,
            head,
            metadata.metadata or {},
            metadata.created_by,
            rows_in(metadata),
            sum(chunk.total_compressed_size for chunk in chunks),
            sum(chunk.total_uncompressed_size for chunk in chunks),
        )

    def _copied(self, path: str) -> tuple[str, FileStatus, Access | None]:
        """Copy a remote file to the local disk; return the copy's path, its state and access."""
        copy = os.path.join(self._copies, uuid.uuid4().hex)
        uri = absolute_path(self._location, path)
        return copy, download(uri, copy, self._large), place_of(uri).access_of(uri)

    def _file(self, path: str, copy: str | None) -> Any:
        return _opened(self._location, self._home, path) if copy is None else open(copy, "rb")


class Heads:
    """Heads of footers that were seen, most of which are the same."""

    def __init__(self) -> None:
        self._heads: list[Head] = []

    def of(self, footer: bytes) -> Head:
        """Return the head of a footer.

        Raises:
            ThriftError: It is damaged.
            UnfitFileError: Its file is encrypted, or parts of it lie elsewhere.
        """
        for head in self._heads:
            if footer.startswith(head.data):
                return head
        whole = Footer.of(footer)
        _require_whole(whole)
        self._heads = [whole.head, *self._heads[: _HEADS - 1]]
        return whole.head


def _require_whole(footer: Footer) -> None:
    if footer.is_encrypted or any(
        chunk.is_elsewhere for chunks in footer.chunks for chunk in chunks
    ):
        raise UnfitFileError("it is encrypted, or parts of it lie in other files")


def footer_of(file: Any) -> Footer:
    """Return the footer of an open file."""
    try:
        return Footer.of(_footer_bytes(file))
    except ThriftError as error:
        raise UnfitFileError(str(error)) from error


def tables_in(file: Any, schema: PhysicalSchema, row_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of an open file, a bounded number at a time.

    Args:
        file: The file.
        schema: A physical schema for files with its head.
        row_bytes: Expected bytes of a row.
    """
    footer = schema.footer(_footer_bytes(file))
    metadata = pq.read_metadata(pa.BufferReader(file_of(footer)))
    reader = pq.ParquetFile(
        file, metadata=metadata, pre_buffer=False, page_checksum_verification=True
    )
    batch_rows = max(min(_BATCH_BYTES // max(row_bytes, 1), _MAX_BATCH_ROWS), 1)
    for batch in reader.iter_batches(batch_rows, use_threads=False):
        yield pa.Table.from_batches([batch])


def _opened(location: str, home: str, path: str) -> Any:
    absolute = absolute_path(location, path)
    descriptor = open_beneath(home_for(location, home, absolute), absolute)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnfitFileError("it is no file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _footer_bytes(file: Any, max_footer_bytes: int = 2**31) -> bytes:
    size_bytes = os.fstat(file.fileno()).st_size
    end = os.pread(file.fileno(), TAIL_BYTES, max(size_bytes - TAIL_BYTES, 0))
    footer_bytes = footer_length(end, size_bytes)
    if footer_bytes > max_footer_bytes:
        raise UnfitFileError(f"its footer has {footer_bytes:,} bytes")
    return os.pread(file.fileno(), footer_bytes, size_bytes - TAIL_BYTES - footer_bytes)


def footer_length(end: bytes, size_bytes: int) -> int:
    """Return the length of a file's footer.

    Args:
        end: The last bytes of the file, `TAIL_BYTES` of them if it has as many.
        size_bytes: Its size.

    Raises:
        UnfitFileError: It is encrypted, or no whole Parquet file.
    """
    if end[4:] == b"PARE":
        raise UnfitFileError("it is encrypted")
    footer_bytes = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or footer_bytes > size_bytes - TAIL_BYTES:
        raise UnfitFileError("it does not end as Parquet files do: part of it may be missing")
    return footer_bytes
