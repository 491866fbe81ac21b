"""Changes of remote files: made, moved and removed; each can be repeated by any process.

Object stores have no folders, and cannot rename: there, files are copied, and their staged ones stay
until the staging folder is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from windrow_core.files import hadoop
from windrow_core.files.objects.requests import ListedObject, Traffic, requests
from windrow_core.files.objects.stores import bucket_and_key
from windrow_core.files.objects.troubles import ChangedObjectError
from windrow_core.files.remote import read_part, remote_status
from windrow_core.files.schemes import is_object
from windrow_core.files.status import FileStatus

_Item = TypeVar("_Item")

# Each change is one or two requests.
_THREADS = 16
# Of a file that is copied, so much is in memory at a time: of its beginning, and of the rest.
FIRST_BYTES = 512 * 2**10
PIECE_BYTES = 8 * 2**20
# What S3 copies in one request.
MAX_COPIED_BYTES = 5 * 2**30


def write_once(uri: str, content: bytes) -> None:
    """Make a small file as a whole or not at all.

    Raises:
        FileExistsError: There is one; on an object store, one with another content.
        OSError: It cannot be made.
    """
    if is_object(uri):
        requests().create(uri, content, Traffic())
        return
    aside = f"{uri}.new"
    hadoop.remove(aside)
    hadoop.create(aside, [content])
    hadoop.rename(aside, uri)


def upload(path: str, uri: str) -> None:
    """Copy a file of the local disk to a path that is free."""
    if is_object(uri):
        requests().upload(Path(path), uri, Traffic())
        return
    with open(path, "rb") as file:
        hadoop.create(uri, iter(lambda: file.read(PIECE_BYTES), b""))


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


def bring_all(moves: Collection[tuple[str, str]]) -> Iterator[None]:
    """Give files other paths, which no file had before; yield when each one has its path.

    A file that is not there has been moved before, and perhaps removed since.

    Args:
        moves: The path of each file now and then, as URIs.

    Raises:
        OSError: A file cannot be moved.
    """
    folders = {target.rpartition("/")[0] for _, target in moves if not is_object(target)}
    for _ in _in_threads(hadoop.make_folder, folders):
        pass
    return _in_threads(lambda move: _bring(*move), moves)


def _bring(source: str, target: str) -> None:
    try:
        if not is_object(target):
            hadoop.rename(source, target)
        elif not _exists(target):
            # A file that readers may know already must not change, not even its time.
            requests().copy(source, target, Traffic())
    except FileNotFoundError:
        # Or the folder is missing that it was to go to.
        if _exists(source):
            raise


def _exists(uri: str) -> bool:
    try:
        remote_status(uri)
    except FileNotFoundError:
        return False
    return True


def remove_all(uris: Iterable[str]) -> None:
    """Remove files that exist; all are in one bucket or file system."""
    uris = list(uris)
    if uris and is_object(uris[0]):
        requests().remove(uris, Traffic())
        return
    for _ in _in_threads(hadoop.remove, uris):
        pass


def remove_folder(uri: str) -> None:
    """Remove a folder with all that it holds, if it exists."""
    if is_object(uri):
        bucket, _ = bucket_and_key(uri)
        remove_all(f"{bucket}/{one.key}" for one in requests().list_all(uri, Traffic()))
        return
    hadoop.remove(uri, recursive=True)


def remove_empty(uri: str, topmost: str) -> None:
    """Remove a folder, and those above it, as long as they are empty.

    Args:
        uri: The folder, which need not exist.
        topmost: A folder above it that stays.
    """
    if is_object(uri):
        # It is gone with the last file in it.
        return
    with suppress(hadoop.FolderNotEmptyError):
        while uri != topmost:
            hadoop.remove(uri)
            uri = uri.rpartition("/")[0]


def changed_ns(uri: str) -> int | None:
    """Return when a folder changed, in nanoseconds since 1970; None if there is none.

    On object stores, this is when the newest object directly in it was made, or beneath it if there
    is none. Objects without bytes, which Hadoop makes to stand for folders, do not count.
    """
    if is_object(uri):
        _, direct = requests().list_one(uri, Traffic())
        return _newest_ns(direct) or _newest_ns(requests().list_all(uri, Traffic()))
    try:
        return hadoop.status_of(uri).mtime_ns
    except FileNotFoundError:
        return None


def _newest_ns(objects: Iterable[ListedObject]) -> int | None:
    moments = [one.state.mtime_ns or 0 for one in objects if one.state.size_bytes]
    return max(moments, default=None)


def _in_threads(change: Callable[[_Item], None], items: Iterable[_Item]) -> Iterator[None]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="windrow-changes") as threads:
        yield from threads.map(change, items)
