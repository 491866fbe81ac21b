"""Opening a data file and making sure that it is the one that was planned."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

import pyarrow as pa

from windrow.files.beneath import open_beneath
from windrow.files.footers import TAIL_BYTES, footer_bytes_in
from windrow.files.remote import is_remote, open_remote_file, remote_status
from windrow.spark.executor.errors import StaleFileError, UnreadableFileError, VanishedFileError

# Takes the path of a large file, the file, and how many bytes to read at once.
Opened = Callable[[str, Any, int], Any]

STREAM_BUFFER_BYTES = 2**20
# On object stores each read is one request.
_REMOTE_STREAM_BUFFER_BYTES = 4 * 2**20
_COPIED_BYTES = 8 * 2**20

_SHOWN_CHARACTERS = 300


def read_whole(home: str, path: str, size_bytes: int, mtime_ns: int | None) -> bytes:
    """Return the bytes of a small file.

    Args:
        home: Folder that the file must lie beneath; see `open_beneath`.
        path: Absolute path of the file, or its URI.
        size_bytes: As planned.
        mtime_ns: As planned; None if the file never changes once it is written.

    Raises:
        StaleFileError: The file is not the one of the plan.
        UnreadableFileError: The operating system does not let it be read, or it lies outside.
    """
    if is_remote(path):
        return _read_remote(path, size_bytes, mtime_ns)
    with translated(path):
        descriptor = open_beneath(home, path)
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
    _require(path, _status_of(found), size_bytes, mtime_ns)
    return content


def read_range(home: str, path: str, offset: int, length: int) -> bytes:
    """Return a part of a file that never changes once it is written.

    Args:
        home: As for `read_whole`.
        path: Absolute path of the file, or its URI.
        offset: First byte.
        length: Bytes.

    Raises:
        UnreadableFileError: The operating system does not let it be read, or the file is shorter.
    """
    with translated(path), _raw(home, path) as (file, (size_bytes, _)):
        if offset < 0 or offset + length > size_bytes:
            reason = f"bytes {offset:,} to {offset + length:,} are wanted of {size_bytes:,}"
            raise UnreadableFileError(path, reason)
        file.seek(offset)
        content = b""
        while len(content) < length and (more := file.read(length - len(content))):
            content += more
    return content


def _read_remote(path: str, size_bytes: int, mtime_ns: int | None) -> bytes:
    with translated(path), open_remote_file(path) as file:
        _require(path, file.status, size_bytes, mtime_ns)
        content = file.read(0, size_bytes)
    if len(content) != size_bytes:
        raise StaleFileError(path, "size in bytes", size_bytes, len(content))
    return content


def read_footer(home: str, path: str, size_bytes: int, mtime_ns: int | None) -> bytes:
    """Return the end of a file, with its footer in full; see `read_whole`.

    Raises:
        StaleFileError: The file is not the one of the plan.
        UnreadableFileError: The operating system does not let it be read.
    """
    with translated(path), _raw(home, path) as (file, found):
        _require(path, found, size_bytes, mtime_ns)
        tail = _end_of(file, size_bytes, min(TAIL_BYTES, size_bytes))
        footer_bytes = footer_bytes_in(tail)
        if len(tail) < footer_bytes <= size_bytes:
            tail = _end_of(file, size_bytes, footer_bytes)
    return tail


def _end_of(file: Any, size_bytes: int, length: int) -> bytes:
    file.seek(size_bytes - length)
    content: bytes = file.read(length)
    return content


def copy_whole(
    home: str, path: str, size_bytes: int, mtime_ns: int | None, write: Callable[[bytes], None]
) -> None:
    """Copy a large file, piece by piece; see `read_whole`.

    Raises:
        StaleFileError: The file is not the one of the plan, before or after.
        UnreadableFileError: The operating system does not let it be read.
    """
    with ExitStack() as stack:
        with translated(path):
            file, found = stack.enter_context(_raw(home, path))
        _require(path, found, size_bytes, mtime_ns)
        copied = 0
        while copied < size_bytes:
            with translated(path):
                piece = file.read(_COPIED_BYTES)
            if not piece:
                raise StaleFileError(path, "size in bytes", size_bytes, copied)
            write(piece)
            copied += len(piece)
    require_unchanged(path, size_bytes, mtime_ns)


def require_unchanged(path: str, size_bytes: int, mtime_ns: int | None) -> None:
    """Make sure that a file is the one of the plan, without opening it.

    Raises:
        StaleFileError: The file is not the one of the plan.
        UnreadableFileError: The operating system does not let it be seen.
    """
    with translated(path):
        found = remote_status(path) if is_remote(path) else _status_of(os.stat(path))
    _require(path, found, size_bytes, mtime_ns)


@contextmanager
def open_stream(
    home: str, path: str, size_bytes: int, mtime_ns: int | None, opened: Opened
) -> Iterator[Any]:
    """Open a large file for reading it part by part, in bounded memory.

    See `read_whole` for what is passed; `opened` returns a reader of the file.

    The file is compared with the plan before and after. It is not memory-mapped: a map of a
    file that is cut while it is read kills the process.

    Raises:
        StaleFileError: The file is not the one of the plan.
        UnreadableFileError: It cannot be opened, or is not of its format.
    """
    if is_remote(path):
        with translated(path), open_remote_file(path) as remote:
            _require(path, remote.status, size_bytes, mtime_ns)
            yield opened(path, remote.file, _REMOTE_STREAM_BUFFER_BYTES)
        require_unchanged(path, size_bytes, mtime_ns)
        return
    with translated(path):
        file: BinaryIO = os.fdopen(open_beneath(home, path), "rb", buffering=0)
    with file:
        _require(path, _status_of(os.fstat(file.fileno())), size_bytes, mtime_ns)
        yield opened(path, pa.PythonFile(file, mode="r"), STREAM_BUFFER_BYTES)
        _require(path, _status_of(os.fstat(file.fileno())), size_bytes, mtime_ns)


@contextmanager
def _raw(home: str, path: str) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Open a file; tell its size in bytes and its last change in ns."""
    if is_remote(path):
        with open_remote_file(path) as remote:
            yield remote.file, remote.status
        return
    with os.fdopen(open_beneath(home, path), "rb", buffering=0) as file:
        yield file, _status_of(os.fstat(file.fileno()))


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the operating system's errors about `path` into ours."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise VanishedFileError(path) from error
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())[:_SHOWN_CHARACTERS]
        if is_remote(path):
            reason += " (credentials, region and endpoint come from the executors' environment)"
        raise UnreadableFileError(path, reason) from error


def _status_of(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


def _require(path: str, found: tuple[int, int], size_bytes: int, mtime_ns: int | None) -> None:
    found_bytes, found_ns = found
    if found_bytes != size_bytes:
        raise StaleFileError(path, "size in bytes", size_bytes, found_bytes)
    if mtime_ns is not None and found_ns != mtime_ns:
        raise StaleFileError(path, "modification time in ns", mtime_ns, found_ns)
