"""Files on S3, Google Cloud Storage, Azure or HDFS, read in the same way.

Credentials, region and endpoint come from the environment, as for the SDKs of these stores
(`AWS_*`, `AZURE_*`, `GOOGLE_APPLICATION_CREDENTIALS`, `HADOOP_CONF_DIR`), never from a table's location.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow_core.files import hadoop
from windrow_core.files.access import remedy_in
from windrow_core.files.acid.names import folder_of
from windrow_core.files.errors import LocationError
from windrow_core.files.listing import FolderEntries, ScanFolder, is_hidden, scan_local_folder
from windrow_core.files.objects.requests import ListedObject, Part, Traffic, requests
from windrow_core.files.objects.stores import bucket_and_key
from windrow_core.files.objects.troubles import ObjectError
from windrow_core.files.other_formats import (
    metadata_folders,
    refuse_file,
    refuse_hidden,
)
from windrow_core.files.positions import PositionedFile
from windrow_core.files.schemes import is_object, is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path

# Up to this many folders under the location are listed in parallel; beyond that, one listing of
# everything takes fewer requests, as each returns 1,000 files or folders.
_MAX_LISTED_APART = 256
_SHOWN_CHARACTERS = 300


class RemoteFile(PositionedFile):
    """A file that can be read at any position; on an object store, each read is one request.

    Args:
        uri: The file.
        state: Its state. An object with another ETag is not read.
        traffic: Requests are counted here.
    """

    def __init__(self, uri: str, status: FileStatus, traffic: Traffic) -> None:
        super().__init__(status.size_bytes)
        self._uri = uri
        self._found = status
        self._traffic = traffic

    def read_at(self, start: int, end: int) -> Any:
        """Return the bytes from `start` to `end`, as a buffer."""
        end = min(end, self.size_bytes)
        if start >= end:
            return b""
        return requests().read(self._uri, self._traffic, self._found.etag, start, end).content

    def read(self, size: int | None = -1) -> bytes:
        """See `io.RawIOBase.read`."""
        content = bytes(self.read_at(self.at, self.end_of(size)))
        self.at += len(content)
        return content


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that can be read at any position.

    Attributes:
        file: The file, as Arrow takes it.
        state: Its state. An object with another ETag is not read.
    """

    file: Any
    state: FileStatus


def scan_remote_folder(location: str, folder: str, entries: FolderEntries) -> None:
    """Add everything under a folder, at any depth, to `entries`; a `ScanFolder`.

    The folders directly under the location are left to further calls, unless there are many.

    Raises:
        LocationError: It cannot be listed.
    """
    uri = absolute_path(location, folder)
    try:
        if not folder:
            folders, files = _direct_entries(uri)
            if len(folders) <= _MAX_LISTED_APART:
                if not folders and not files and is_object(uri):
                    raise FileNotFoundError(uri)
                _require_named(uri, folders)
                _add_files(uri, "", [], files, entries)
                for name in folders:
                    if _is_shown(uri, name, name, entries, is_location=True):
                        entries.folders.append(name)
                return
        folders, files = _beneath(uri)
    except FileNotFoundError as error:
        if not folder:
            raise LocationError(
                location, "does not exist, or holds nothing; give an existing folder"
            ) from error
        return
    except (OSError, pa.ArrowException) as error:
        raise LocationError(uri, why_unreadable(error)) from error
    _add_files(uri, f"{folder}/" if folder else "", folders, files, entries)


def _direct_entries(uri: str) -> tuple[list[str], list[ListedObject]]:
    """Return the folders and files directly in a folder; on object stores it may be missing."""
    if is_object(uri):
        folders, objects = requests().list_one(uri, Traffic())
        _, key = bucket_and_key(uri)
        above = len(key) + 1 if key else 0
        return [one[above:] for one in folders], _without_markers(above, objects, folders)
    return _in_hdfs(uri, recursive=False)


def _beneath(uri: str) -> tuple[list[str], list[ListedObject]]:
    """Return folders and files beneath a folder, at any depth; see `_direct_entries`."""
    if is_object(uri):
        objects = requests().list_all(uri, Traffic())
        _, key = bucket_and_key(uri)
        above = len(key) + 1 if key else 0
        folders = {one.key.rpartition("/")[0] for one in objects}
        files = _without_markers(above, objects, folders)
        left = {one.key for one in files}
        markers = [one.key[above:] for one in objects if one.key[above:] not in left]
        return [name for name in markers if name], files
    return _in_hdfs(uri, recursive=True)


def _without_markers(
    above: int, objects: Iterable[ListedObject], folders: Iterable[str]
) -> list[ListedObject]:
    """Return objects with relative paths, without those that only stand for a folder.

    Such an object has no bytes, and a slash at the end of its key, which listings leave out.
    """
    folder_keys = frozenset(folders)
    return [
        one._replace(key=one.key[above:])
        for one in objects
        if one.state.size_bytes or not (one.key in folder_keys or _names_folder(one.key[above:]))
    ]


def _names_folder(path: str) -> bool:
    name = path.rpartition("/")[2]
    return not name or "=" in name or folder_of(name) is not None


def _in_hdfs(uri: str, *, recursive: bool) -> tuple[list[str], list[ListedObject]]:
    folders, files = hadoop.entries_of(uri, recursive=recursive)
    return folders, [ListedObject(path, status) for path, status in files]


def scan_of(location: str) -> ScanFolder:
    """Return the function that lists a folder of a location."""
    return scan_remote_folder if is_remote(location) else scan_local_folder


def _add_files(
    uri: str, prefix: str, folders: list[str], files: list[ListedObject], entries: FolderEntries
) -> None:
    visible: dict[str, bool] = {}

    def is_shown(folder: str) -> bool:
        if folder not in visible:
            _require_named(uri, [folder])
            parent, slash, name = folder.rpartition("/")
            above = f"{uri}/{parent}" if slash else uri
            is_location = not (prefix or slash)
            visible[folder] = (not slash or is_shown(parent)) and _is_shown(
                above, prefix + folder, name, entries, is_location=is_location
            )
        return visible[folder]

    if prefix and entries.acid_folders is not None:
        # A folder without files counts if its name says that it replaces others.
        for folder in folders:
            is_shown(folder)
    for relative, status in files:
        folder, slash, name = relative.rpartition("/")
        if slash and not is_shown(folder):
            continue
        within = f"{uri}/{folder}" if slash else uri
        if is_hidden(name) and not entries.is_read(name):
            refuse_hidden(within, name, is_location=not (prefix or slash))
            continue
        if within.rpartition("/")[2] in metadata_folders():
            refuse_file(within, name)
        assert status.mtime_ns is not None
        entries.paths.append(prefix + relative)
        entries.sizes_bytes.append(status.size_bytes)
        entries.mtimes_ns.append(status.mtime_ns)
        entries.etags.append(status.etag)


def _is_shown(
    uri: str, folder: str, name: str, entries: FolderEntries, *, is_location: bool
) -> bool:
    """Return whether files in a subfolder of this name count."""
    if is_hidden(name, is_folder=True):
        refuse_hidden(uri, name, is_location=is_location)
        return False
    entries.note_folder(uri, folder)
    return True


def names_in(uri: str) -> list[str] | None:
    """Return the names of the entries of a folder; None if there is no such folder.

    Args:
        uri: Absolute path or URI of the folder.

    Raises:
        OSError: It cannot be listed.
    """
    try:
        if not is_remote(uri):
            return os.listdir(uri)
        folders, files = _direct_entries(uri)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except pa.ArrowException as error:
        raise OSError(str(error)) from error
    # An object store has no empty folders.
    return [*folders, *(one.key for one in files)] or None


def names_between(uri: str, after: str, before: str) -> list[str] | None:
    """Return the names of a folder's files from one name to another, without these.

    A store with many names answers as quickly as one with few.

    Args:
        uri: Absolute path or URI of the folder.
        after: A name that no file has.
        before: Another one.

    Returns:
        The names; None if there is no such folder, or, on an object store, no such file.

    Raises:
        OSError: It cannot be listed.
    """
    if is_object(uri):
        return requests().names_between(uri, after, before, Traffic()) or None
    names = names_in(uri)
    return names and [name for name in names if after < name < before]


def contents_of(uri: str) -> tuple[list[str], dict[str, FileStatus]]:
    """Return what lies directly in a folder, hidden or not; nothing if there is no such folder.

    Args:
        uri: Absolute path or URI of the folder.

    Returns:
        Names of folders; and files, links too, by name.

    Raises:
        OSError: It cannot be listed.
    """
    try:
        if is_remote(uri):
            folders, objects = _direct_entries(uri)
            return folders, {one.key: one.state for one in objects}
        with os.scandir(uri) as scan:
            entries = list(scan)
    except FileNotFoundError:
        return [], {}
    files = {}
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            continue
        with suppress(FileNotFoundError):
            status = entry.stat(follow_symlinks=False)
            files[entry.name] = FileStatus(status.st_size, status.st_mtime_ns)
    return [entry.name for entry in entries if entry.is_dir()], files


def read_whole_file(uri: str, max_bytes: int) -> bytes:
    """Return the content of a small file.

    Args:
        uri: Absolute path or URI.
        max_bytes: Maximum bytes to read; the rest is left out.

    Raises:
        FileNotFoundError: The file does not exist.
        OSError: It cannot be read.
    """
    if is_remote(uri):
        return bytes(read_part(uri, most_bytes=max_bytes).content)
    # Opening a pipe in a file's place would block otherwise.
    descriptor = os.open(uri, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as local:
        return local.read(max_bytes)


def _require_named(uri: str, folders: list[str]) -> None:
    for folder in folders:
        if not folder or folder.startswith("/") or "//" in folder or folder.endswith("/"):
            raise LocationError(
                uri, "holds a folder without a name, as in 'a//b': rename the objects in it"
            )


def read_part(
    uri: str,
    state: FileStatus | None = None,
    start: int = 0,
    end: int | None = None,
    traffic: Traffic | None = None,
    most_bytes: int | None = None,
) -> Part:
    """Read a file, or a part of it, with one request to an object store.

    Args:
        uri: The file.
        state: Its state. An object with another ETag is not read; the caller compares the rest.
        start: First byte; if it is negative, that many bytes at the file's end are read.
        end: Where the part ends; None for the end of the file.
        traffic: Requests are counted here.
        most_bytes: Maximum bytes to read; None for all.

    Raises:
        FileNotFoundError: The file does not exist.
        ChangedObjectError: It has another ETag.
        OSError: It cannot be read.
    """
    if is_object(uri):
        etag = state.etag if state is not None else None
        return requests().read(uri, traffic or Traffic(), etag, start, end, most_bytes)
    # Taken before the file is opened, so that a replacement in between is noticed.
    status = hadoop.status_of(uri)
    begin, end = range_of(status, start, end, most_bytes)
    with hadoop.opened(uri) as file:
        return Part(file.read_at(max(0, end - begin), begin), status)


def begin_read(
    uri: str,
    state: FileStatus,
    traffic: Traffic | None = None,
    start: int = 0,
    most_bytes: int | None = None,
) -> Future[Part] | None:
    """Begin to read an object as `read_part` does; None for files that are not objects."""
    if not is_object(uri):
        return None
    traffic = traffic or Traffic()
    return requests().begin(uri, traffic, state.etag, start, most_bytes=most_bytes)


def range_of(
    state: FileStatus, start: int, end: int | None, most_bytes: int | None
) -> tuple[int, int]:
    """Return where a part of a file begins and ends; see `read_part`."""
    begin = max(0, state.size_bytes + start) if start < 0 else start
    end = state.size_bytes if end is None else min(end, state.size_bytes)
    return begin, end if most_bytes is None else min(end, begin + most_bytes)


def remote_status(uri: str, traffic: Traffic | None = None) -> FileStatus:
    """Return the state of a file, with one request.

    Raises:
        FileNotFoundError: The file does not exist.
        OSError: Its state cannot be read.
    """
    if is_object(uri):
        return requests().look(uri, traffic or Traffic())
    return hadoop.status_of(uri)


@contextmanager
def open_remote_file(
    uri: str, state: FileStatus | None = None, traffic: Traffic | None = None
) -> Iterator[OpenedFile]:
    """Open a file; for an object with a known ETag, this sends no request.

    Raises:
        FileNotFoundError: The file does not exist.
        OSError: It cannot be opened.
    """
    traffic = traffic or Traffic()
    status = state if state is not None and state.etag is not None else remote_status(uri, traffic)
    if is_object(uri):
        with pa.PythonFile(RemoteFile(uri, status, traffic), mode="r") as file:
            yield OpenedFile(file, status)
        return
    with hadoop.opened(uri) as file:
        yield OpenedFile(file, status)


def why_unreadable(error: Exception) -> str:
    """Return why a file or folder could not be read, and what to do about it."""
    text = " ".join(str(error).split())
    if isinstance(error, ObjectError):
        return text
    remedy = remedy_in(text)
    return f"cannot be read: {text[:_SHOWN_CHARACTERS]}{f': {remedy}' if remedy else ''}"
