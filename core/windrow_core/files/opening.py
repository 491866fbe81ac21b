"""Reads files wherever they lie; on this machine, no link leads out of the table.

Functions take a `home`, the folder that a file of this machine must lie beneath: see `open_beneath`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from windrow_core.files.access import why_inaccessible
from windrow_core.files.objects.requests import Part, Traffic
from windrow_core.files.remote import (
    OpenedFile,
    open_remote_file,
    range_of,
    read_part,
    why_unreadable,
)
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import open_beneath


@contextmanager
def open_file(
    home: str, path: str, state: FileStatus | None = None, traffic: Traffic | None = None
) -> Iterator[OpenedFile]:
    """Open a file, given its absolute path or URI; see `open_remote_file`."""
    if is_remote(path):
        with open_remote_file(path, state, traffic) as remote:
            yield remote
        return
    with os.fdopen(open_beneath(home, path), "rb") as file:
        yield OpenedFile(file, _status_of(file.fileno()))


def read_file(
    home: str,
    path: str,
    state: FileStatus | None = None,
    start: int = 0,
    end: int | None = None,
    traffic: Traffic | None = None,
    most_bytes: int | None = None,
) -> Part:
    """Read a file, or a part of it, given its absolute path or URI; see `read_part`.

    A file of this machine that is not in the state given is not read either.
    """
    if is_remote(path):
        return read_part(path, state, start, end, traffic, most_bytes)
    descriptor = open_beneath(home, path)
    try:
        status = _status_of(descriptor)
        if state is not None and state.difference(status):
            return Part(b"", status)
        begin, end = range_of(status, start, end, most_bytes)
        parts = []
        while begin < end and (part := os.pread(descriptor, end - begin, begin)):
            parts.append(part)
            begin += len(part)
        return Part(parts[0] if len(parts) == 1 else b"".join(parts), status)
    finally:
        os.close(descriptor)


def why_unread(path: str, error: OSError) -> str:
    """Return why a file was not read, and what to do, to be shown behind its path."""
    return why_unreadable(error) if is_remote(path) else why_inaccessible(error)


def _status_of(descriptor: int) -> FileStatus:
    status = os.fstat(descriptor)
    return FileStatus(status.st_size, status.st_mtime_ns)
