"""Files copied from HDFS or an object store to a local disk."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, BinaryIO

from windrow_core.files.objects.troubles import ChangedObjectError
from windrow_core.files.remote import read_part
from windrow_core.files.status import FileStatus

# Of a file that is copied, so much is in memory at a time: of its beginning, and of the rest.
FIRST_BYTES = 512 * 2**10
PIECE_BYTES = 8 * 2**20


def download(uri: str, path: str, large: AbstractContextManager[Any]) -> FileStatus:
    """Copy a file to a new one on the local disk, a piece at a time; return its state.

    Args:
        uri: The file.
        path: Path of the new one.
        large: What is entered for the large pieces of a file that does not end with its first one,
            such as a semaphore that bounds the memory of several copies.

    Raises:
        FileNotFoundError: The file does not exist.
        ChangedObjectError: It has changed between two pieces.
        OSError: It cannot be read.
    """
    part = read_part(uri, end=FIRST_BYTES)
    status = part.state
    with open(path, "xb") as file:
        at = file.write(part.content)
        if at < status.size_bytes:
            with large:
                _append(uri, status, at, file)
    return status


def _append(uri: str, status: FileStatus, at: int, file: BinaryIO) -> None:
    while at < status.size_bytes:
        part = read_part(uri, status, at, min(at + PIECE_BYTES, status.size_bytes))
        if status.difference(part.state) is not None:
            raise ChangedObjectError("has changed while it was copied")
        at += file.write(part.content)
