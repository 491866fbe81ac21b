"""Opening a data file and making sure that it is the one that was planned."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa

# `ParquetFile` builds an index of nested columns for each file, a fifth of what a small file
# costs. This is its `.reader`: the same class and calls since pyarrow 10.
from pyarrow._parquet import ParquetReader

from windrow.spark.executor.errors import StaleFileError, UnreadableFileError, VanishedFileError

# What Arrow raises for bytes that are not valid Parquet; UnicodeDecodeError is a ValueError.
PARQUET_ERRORS = (pa.ArrowException, OSError, ValueError)

_STREAM_BUFFER_BYTES = 2**20


def read_whole(path: str, size_bytes: int, mtime_ns: int) -> bytes:
    """Return the bytes of a small file.

    Raises:
        StaleFileError: The file is not the one of the plan.
        UnreadableFileError: The operating system does not let it be read.
    """
    with translated(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # One byte more than planned: a file that grew shows. One read as a rule; a network
            # file system may return less than it was asked for.
            content = os.read(descriptor, size_bytes + 1)
            while 0 < len(content) < size_bytes and (more := os.read(descriptor, size_bytes)):
                content += more
            # After the read: a file that changes later has given its old bytes.
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    _require(path, found, size_bytes, mtime_ns)
    return content


def require_unchanged(path: str, size_bytes: int, mtime_ns: int) -> None:
    """Make sure that a file is the one of the plan, without opening it.

    Raises:
        StaleFileError: The file is not the one of the plan.
        UnreadableFileError: The operating system does not let it be seen.
    """
    with translated(path):
        found = os.stat(path)
    _require(path, found, size_bytes, mtime_ns)


def open_buffer(path: str, content: bytes) -> Any:
    """Return a reader of a Parquet file that is in memory.

    Raises:
        UnreadableFileError: It is not valid Parquet.
    """
    reader = ParquetReader()
    try:
        reader.open(pa.BufferReader(content), pre_buffer=False, coerce_int96_timestamp_unit="us")
    except PARQUET_ERRORS as error:
        raise unreadable(path, error) from error
    return reader


@contextmanager
def open_stream(path: str, size_bytes: int, mtime_ns: int) -> Iterator[Any]:
    """Open a large file for reading column chunk by column chunk, in bounded memory.

    The file is compared with the plan before and after. It is not memory-mapped: a map of a
    file that is cut while it is read kills the process.

    Raises:
        StaleFileError: The file is not the one of the plan.
        UnreadableFileError: It cannot be opened, or is not valid Parquet.
    """
    with translated(path):
        file: BinaryIO = open(path, "rb", buffering=0)  # noqa: SIM115 - closed below
    with file:
        _require(path, os.fstat(file.fileno()), size_bytes, mtime_ns)
        reader = ParquetReader()
        try:
            reader.open(
                pa.PythonFile(file, mode="r"),
                pre_buffer=False,
                buffer_size=_STREAM_BUFFER_BYTES,
                coerce_int96_timestamp_unit="us",
            )
        except PARQUET_ERRORS as error:
            raise unreadable(path, error) from error
        yield reader
        _require(path, os.fstat(file.fileno()), size_bytes, mtime_ns)


def unreadable(path: str, error: Exception) -> UnreadableFileError:
    """Return the error that says that `path` is not valid Parquet."""
    return UnreadableFileError(path, " ".join(str(error).split()) or type(error).__name__)


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the operating system's errors about `path` into ours."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise VanishedFileError(path) from error
    except OSError as error:
        raise UnreadableFileError(path, error.strerror or str(error)) from error


def _require(path: str, found: os.stat_result, size_bytes: int, mtime_ns: int) -> None:
    if found.st_size != size_bytes:
        raise StaleFileError(path, "size in bytes", size_bytes, found.st_size)
    if found.st_mtime_ns != mtime_ns:
        raise StaleFileError(path, "modification time in ns", mtime_ns, found.st_mtime_ns)
