"""Kinds of places where tables lie: this machine's file systems, HDFS and object stores.

Files are opened and read in the same way everywhere. Functions that do so take a `home`: the folder
that a file of this machine must lie beneath, see `open_beneath`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from windrow_core.files import hadoop, permissions
from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.mounts import keeps_times
from windrow_core.files.objects.requests import Part, Traffic
from windrow_core.files.permissions import Access
from windrow_core.files.remote import (
    OpenedFile,
    open_remote_file,
    range_of,
    read_part,
    why_unreadable,
)
from windrow_core.files.schemes import is_object, is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import open_beneath


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A kind of place.

    Attributes:
        access_of: Returns who may use a file there; None where the store decides that by itself.
        why_unreadable: Returns why a file or folder there could not be read, given the system's error,
            and what to do about it.
        keeps_times: Returns whether times and inode numbers of files and folders can be believed.
        request_s: Seconds until it answers a request.
        listings: How many folders are looked at together, each of which takes a request; one where
            nothing has to be waited for.
        footers: How many files' footers are read together: reads overlap, also on slow disks.
        has_excerpts: Whether some columns of large files are read without asking for the footers
            first, as each read is a request.
        shows_both: Whether readers that list folders may find old and new files for a while, when
            some replace others.
        has_versions: Whether older versions of removed files may be left.
        hides_readers: Whether nothing there tells who may read a file.
        package: The Python package that reads its files, and the extra that installs it; None if
            none is needed.
        packing: Why there are no packs of tables there; None if there may be.
    """

    access_of: Callable[[str], Access | None]
    why_unreadable: Callable[[Exception], str]
    request_s: float
    listings: int
    footers: int
    keeps_times: Callable[[str], bool] = lambda _: False
    has_excerpts: bool = False
    shows_both: bool = True
    has_versions: bool = True
    hides_readers: bool = False
    packing: str | None = None
    package: tuple[str, str] | None = None


def _why_unreadable_here(error: Exception) -> str:
    if is_of_system(error):
        return f"cannot be read: {why_inaccessible(error)}"
    return f"cannot be read: {' '.join(str(error).split())}; restore it"


DISK = Place(
    access_of=permissions.access_of,
    keeps_times=keeps_times,
    why_unreadable=_why_unreadable_here,
    request_s=0.0,
    listings=1,
    footers=8,
    shows_both=False,
    has_versions=False,
)
# As measured in a cluster on loopback.
HDFS = Place(
    access_of=hadoop.access_of,
    why_unreadable=why_unreadable,
    request_s=0.001,
    package=("hdfs_native", "hdfs"),
    listings=16,
    footers=32,
    packing="it lies on HDFS, whose permissions packs do not keep yet: compact it instead",
)
# Estimated.
OBJECTS = Place(
    access_of=lambda _: None,
    why_unreadable=why_unreadable,
    request_s=0.02,
    listings=16,
    footers=32,
    has_excerpts=True,
    hides_readers=True,
    package=("obstore", "scan"),
)


def place_of(location: str) -> Place:
    """Return the kind of place where a canonical location lies."""
    if is_object(location):
        return OBJECTS
    return HDFS if is_remote(location) else DISK


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
