"""Open a data file, and make sure that it is the one that was planned."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.excerpts.excerpt import ExcerptFile
from windrow_core.files.excerpts.gathered import Gathered
from windrow_core.files.excerpts.spliced import SplicedFile
from windrow_core.files.footers import TAIL_BYTES, footer_bytes_in
from windrow_core.files.mounts import keeps_times
from windrow_core.files.objects.requests import Part, Traffic
from windrow_core.files.objects.troubles import ChangedObjectError, ObjectError
from windrow_core.files.places import open_file, read_file
from windrow_core.files.process_wide import kept_by_process
from windrow_core.files.remote import open_remote_file, read_part, remote_status
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import open_beneath
from windrow_tables.executor.errors import (
    InaccessibleFileError,
    StaleFileError,
    StoreError,
    UnreadableFileError,
    VanishedFileError,
)

# Returns a reader; takes the path of a large file, the file, and how many bytes to read at once.
Opener = Callable[[str, Any, int], Any]

STREAM_BUFFER_BYTES = 2**20
# On object stores each read is one request.
_REMOTE_STREAM_BUFFER_BYTES = 4 * 2**20
_COPIED_BYTES = 8 * 2**20
# Longer than the clocks of local file systems take for one step.
TICK_S = 0.1

_SHOWN_CHARACTERS = 300


def read_whole(home: str, path: str, state: FileStatus, traffic: Traffic | None = None) -> bytes:
    """Return the bytes of a small file.

    Args:
        home: Folder that the file must lie beneath; see `open_beneath`.
        path: Absolute path of the file, or its URI.
        state: Its state when the plan was made.
        traffic: Counts requests to object stores.
    """
    with translated(path, state):
        if is_remote(path):
            # One byte more than planned shows that a file has grown.
            most_bytes = state.size_bytes + 1
            part = read_part(path, state, traffic=traffic, most_bytes=most_bytes)
            return whole_of(path, state, part)
        descriptor = open_beneath(home, path)
        try:
            # One byte more than planned shows that a file has grown. One read is usually enough;
            # a network file system may return fewer bytes than it was asked for.
            size_bytes = state.size_bytes
            content = os.read(descriptor, size_bytes + 1)
            while 0 < len(content) < size_bytes and (more := os.read(descriptor, size_bytes)):
                content += more
            # Checked after the read: if the file changes later, these are still its old bytes.
            now = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    _require(path, state, _status_of(now))
    return content


def read_small_files(files: Sequence[tuple[str, str, FileStatus]]) -> Gathered:
    """Return the bytes of small files of this machine.

    Args:
        files: At least one; for each, what `read_whole` takes.
    """
    sizes = np.array([state.size_bytes for _, _, state in files], np.int64)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    # One byte more than planned shows that a file has grown; the next file takes its place.
    buffer = pa.allocate_buffer(int(ends[-1]) + 1)
    memory = memoryview(buffer)
    for (home, path, state), begin in zip(files, begins.tolist(), strict=True):
        room = memory[begin : begin + state.size_bytes + 1]
        try:
            count, now = _read_into(room, open_beneath(home, path))
        except OSError:
            with translated(path, state):
                raise
        _require(path, state, now)
        if count != state.size_bytes:
            raise StaleFileError(path, "size in bytes", state.size_bytes, count)
    return Gathered(np.frombuffer(buffer, np.uint8), begins, ends)


def _read_into(room: memoryview, descriptor: int) -> tuple[int, FileStatus]:
    """Read a file into room for a byte more than it should have, and close it.

    Returns:
        How many bytes it had, and its state.
    """
    try:
        # One read is usually enough; a network file system may return fewer bytes than wanted.
        count = os.readv(descriptor, [room])
        while 0 < count < len(room) - 1 and (more := os.readv(descriptor, [room[count:]])):
            count += more
        # Checked after the read: if the file changes later, these are still its old bytes.
        return count, _status_of(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def whole_of(path: str, state: FileStatus, part: Part) -> bytes:
    """Return the bytes of a file that was read whole."""
    _require(path, state, part.state)
    if len(part.content) != state.size_bytes:
        raise StaleFileError(path, "size in bytes", state.size_bytes, len(part.content))
    content: bytes = part.content
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRequest:
    """An object, or its footer, that was asked for.

    Attributes:
        path: The object's URI.
        state: Its state when the plan was made.
        part: The part that was asked for.
        traffic: Counts further requests.
        footer: Whether its end with the footer is enough.
    """

    path: str
    state: FileStatus
    part: Future[Part]
    traffic: Traffic
    footer: bool

    def result(self) -> bytes:
        """Wait for the bytes, and return them; see `read_whole` and `read_footer`."""
        with translated(self.path, self.state):
            part = self.part.result()
        if not self.footer:
            return whole_of(self.path, self.state, part)
        _require(self.path, self.state, part.state)
        if len(part.content) < footer_bytes_in(bytes(part.content)) <= self.state.size_bytes:
            return read_footer("", self.path, self.state, self.traffic)
        content: bytes = part.content
        return content

    def cancel(self) -> object:
        """Cancel the request."""
        return self.part.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptRequest:
    """An excerpt of an object that was asked for.

    Attributes:
        path: The object's URI.
        state: Its state when the plan was made.
        excerpt: The excerpt.
        parts: The part that was asked for, for each of its ranges.
    """

    path: str
    state: FileStatus
    excerpt: ExcerptFile
    parts: Sequence[Future[Part]]

    def result(self) -> bytes:
        """Wait for all of the excerpt, and return it; see `read_whole`."""
        with translated(self.path, self.state):
            parts = [part.result() for part in self.parts]
        for part, (begin, end) in zip(parts, self.excerpt.ranges, strict=True):
            _require(self.path, self.state, part.state)
            if len(part.content) != end - begin:
                reason = f"its store did not return bytes {begin:,} to {end:,}"
                raise UnreadableFileError(self.path, reason)
        return self.excerpt.content([part.content for part in parts])

    def cancel(self) -> object:
        """Cancel the request."""
        return [part.cancel() for part in self.parts]


def read_range(
    home: str, path: str, offset: int, length: int, traffic: Traffic | None = None
) -> bytes:
    """Return a part of a file that never changes once it is written.

    Args:
        home: As for `read_whole`.
        path: Absolute path of the file, or its URI.
        offset: First byte.
        length: Number of bytes.
        traffic: As for `read_whole`.
    """
    with translated(path):
        part = read_file(home, path, None, offset, offset + length, traffic)
    if len(part.content) != length:
        reason = (
            f"bytes {offset:,} to {offset + length:,} were asked for, but it has "
            f"{part.state.size_bytes:,}"
        )
        raise UnreadableFileError(path, reason)
    return bytes(part.content)


def read_footer(home: str, path: str, state: FileStatus, traffic: Traffic | None = None) -> bytes:
    """Return the end of a file, with its footer in full; see `read_whole`."""
    with translated(path, state):
        tail = _end_of(home, path, state, min(TAIL_BYTES, state.size_bytes), traffic)
        footer_bytes = footer_bytes_in(tail)
        if len(tail) < footer_bytes <= state.size_bytes:
            tail = _end_of(home, path, state, footer_bytes, traffic)
    return tail


def _end_of(home: str, path: str, state: FileStatus, length: int, traffic: Traffic | None) -> bytes:
    start = state.size_bytes - length
    part = read_file(home, path, state, start, state.size_bytes, traffic)
    _require(path, state, part.state)
    return bytes(part.content)


def copy_whole(
    home: str,
    path: str,
    state: FileStatus,
    write: Callable[[bytes], None],
    traffic: Traffic | None = None,
) -> None:
    """Copy a large file, piece by piece; see `read_whole`."""
    with ExitStack() as stack:
        with translated(path, state):
            source = stack.enter_context(open_file(home, path, state, traffic))
        _require(path, state, source.state)
        offset = 0
        while offset < state.size_bytes:
            with translated(path, state):
                piece = source.file.read(_COPIED_BYTES)
            if not piece:
                raise StaleFileError(path, "size in bytes", state.size_bytes, offset)
            write(piece)
            offset += len(piece)
    require_unchanged(path, state, traffic)


def require_unchanged(path: str, state: FileStatus, traffic: Traffic | None = None) -> None:
    """Make sure that a file is the one of the plan, without opening it.

    An object whose ETag is known needs no check: reads get the object with this ETag or fail.
    """
    if state.etag is not None:
        return
    with translated(path, state):
        now = remote_status(path, traffic) if is_remote(path) else _status_of(os.stat(path))
    _require(path, state, now)


@contextmanager
def open_stream(
    home: str, path: str, state: FileStatus, opener: Opener, traffic: Traffic | None = None
) -> Iterator[Any]:
    """Open a large file for reading it part by part, in bounded memory.

    See `read_whole` for the arguments; `opener` returns a reader of the file.

    The file is compared with the plan before and after. It is not memory-mapped: if a mapped file
    is truncated while it is read, the process is killed.
    """
    if is_remote(path):
        with translated(path, state), open_remote_file(path, state, traffic) as remote:
            _require(path, state, remote.state)
            try:
                yield opener(path, remote.file, _REMOTE_STREAM_BUFFER_BYTES)
            except UnreadableFileError as error:
                # A request for a part of the file failed, so its bytes are not at fault.
                if isinstance(error.__cause__, (ObjectError, FileNotFoundError)):
                    raise error.__cause__ from None
                raise
        require_unchanged(path, state, traffic)
        return
    with translated(path):
        file: BinaryIO = os.fdopen(open_beneath(home, path), "rb", buffering=0)
    with file:
        _require(path, state, _status_of(os.fstat(file.fileno())))
        yield opener(path, pa.PythonFile(file, mode="r"), STREAM_BUFFER_BYTES)
        _require(path, state, _status_of(os.fstat(file.fileno())))


@contextmanager
def open_excerpt(
    path: str, state: FileStatus, excerpt: ExcerptFile, opener: Opener, traffic: Traffic
) -> Iterator[Any]:
    """Open a large excerpt of an object for reading it part by part; see `open_stream`."""

    def read(begin: int, end: int) -> Any:
        with translated(path, state):
            part = read_part(path, state, begin, end, traffic)
        _require(path, state, part.state)
        return part.content

    file = pa.PythonFile(SplicedFile(excerpt, read), mode="r")
    yield opener(path, file, _REMOTE_STREAM_BUFFER_BYTES)


@contextmanager
def translated(path: str, state: FileStatus | None = None) -> Iterator[None]:
    """Turn errors of the operating system, or of a store, about `path` into ours.

    Args:
        path: The file.
        state: Its state when the plan was made.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise VanishedFileError(path) from error
    except ChangedObjectError as error:
        etag = state.etag if state is not None else None
        raise StaleFileError(path, "ETag", etag, "different") from error
    except ObjectError as error:
        raise StoreError(path, str(error)) from error
    except OSError as error:
        if is_of_system(error):
            raise InaccessibleFileError(path, why_inaccessible(error)) from error
        reason = " ".join(str(error).split())[:_SHOWN_CHARACTERS]
        raise UnreadableFileError(path, reason) from error


def source_mark(home: str, path: str, state: FileStatus) -> str | None:
    """Return what tells a file from a replacement of equal size and time; None if it is unsure.

    Of an object this is its ETag; of a file of this machine, it changes with every change, also of
    links or owner. It is empty where a file never changes, and where nothing tells: on HDFS, and on
    file systems that may invent it. A file that has changed in this moment may change again without
    a trace.

    Args:
        home: As for `read_whole`.
        path: Absolute path of the file, or its URI.
        state: Its state when the plan was made.
    """
    if state.etag is not None or state.mtime_ns is None or is_remote(path):
        return state.etag or ""
    if not kept_by_process(f"times of {home}", lambda: keeps_times(home)):
        return ""
    try:
        # Opened, since NFS may answer a plain `stat` from memory.
        descriptor = open_beneath(home, path)
    except OSError:
        return None
    try:
        now = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    is_settled = now.st_ctime_ns < time.time_ns() - int(TICK_S * 10**9)
    return f"{now.st_ino:x}-{now.st_ctime_ns:x}" if is_settled else None


def _status_of(now: os.stat_result) -> FileStatus:
    return FileStatus(now.st_size, now.st_mtime_ns)


def _require(path: str, state: FileStatus, now: FileStatus) -> None:
    if difference := state.difference(now):
        raise StaleFileError(path, *difference)
