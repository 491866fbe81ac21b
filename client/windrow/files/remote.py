"""Files on S3, HDFS or Google Cloud Storage, through `pyarrow.fs`.

Credentials, region and endpoint come from the environment, as for the SDKs of these stores
(`AWS_*`, `GOOGLE_APPLICATION_CREDENTIALS`, `HADOOP_CONF_DIR`), never from a table's location.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from windrow.files.beneath import absolute_path
from windrow.files.entries import FolderEntries, ScanFolder, is_hidden, scan_local_folder
from windrow.files.errors import LocationError
from windrow.files.signs import (
    metadata_folders,
    refuse_file,
    refuse_hidden,
)

_CONNECT_TIMEOUT_S = 5.0
_REQUEST_TIMEOUT_S = 30.0
_ATTEMPTS = 4
# Up to this many folders under the location are listed side by side; beyond that, one listing of
# everything takes fewer requests, as each returns 1,000 files or folders.
_MAX_LISTED_APART = 256
_NS_PER_S = 10**9

_AWS_ERROR = re.compile(r"AWS Error ([A-Z_]+)")
_AWS_REASONS = {
    "NO_SUCH_BUCKET": "lies in a bucket that does not exist: correct the table's location",
    "ACCESS_DENIED": "may not be read: let the coordinator's credentials list and read it",
    "NETWORK_CONNECTION": "cannot be reached: check the network, AWS_ENDPOINT_URL and AWS_REGION",
}
_BAD_KEY = "may not be read: the coordinator's credentials are not valid; check AWS_* variables"
_AWS_REASONS |= dict.fromkeys(
    ("INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_CLIENT_TOKEN_ID"), _BAD_KEY
)
_SHOWN_CHARACTERS = 300


class _FileSystems(dict[tuple[str, str, str | None], pafs.FileSystem]):
    """Those that this process has connected to; each keeps its connections.

    None of them travels with the code: executors have credentials and a region of their own.
    """

    def __reduce__(self) -> tuple[type[_FileSystems], tuple[()]]:
        return _FileSystems, ()


_filesystems = _FileSystems()


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that can be read at any place, as it was when it was opened."""

    file: Any
    size_bytes: int
    mtime_ns: int

    @property
    def status(self) -> tuple[int, int]:
        """Size and last change, to be compared with what was planned."""
        return self.size_bytes, self.mtime_ns

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, with one request."""
        content: bytes = self.file.read_at(end - start, start)
        return content


def is_remote(location: str) -> bool:
    """Tell whether a canonical location is a URI, not a path of this machine."""
    return not location.startswith("/")


def scan_remote_folder(location: str, folder: str, entries: FolderEntries) -> None:
    """Add what lies under a folder, at any depth, to `entries`; a `ScanFolder`.

    The folders right under the location itself are left to further calls, unless they are many.

    Raises:
        LocationError: It cannot be listed.
    """
    uri = absolute_path(location, folder)
    try:
        filesystem, base = _located(uri)
        base = base.rstrip("/") + "/"
        if not folder:
            found = filesystem.get_file_info(pafs.FileSelector(base))
            apart = [
                info.path[len(base) :] for info in found if info.type == pafs.FileType.Directory
            ]
            if len(apart) <= _MAX_LISTED_APART:
                _require_named(uri, apart)
                _add_files(uri, base, "", found, entries)
                for name in apart:
                    if _is_shown(uri, name, name, entries, is_location=True):
                        entries.folders.append(name)
                return
        found = filesystem.get_file_info(pafs.FileSelector(base, recursive=True))
    except FileNotFoundError as error:
        if not folder:
            raise LocationError(
                location, "does not exist, or holds nothing; give an existing folder"
            ) from error
        return
    except (OSError, pa.ArrowException) as error:
        raise LocationError(uri, why_unreadable(error)) from error
    _add_files(uri, base, f"{folder}/" if folder else "", found, entries)


def scan_of(location: str) -> ScanFolder:
    """Return what reads one folder of a location."""
    return scan_remote_folder if is_remote(location) else scan_local_folder


def _add_files(
    uri: str, base: str, prefix: str, found: list[pafs.FileInfo], entries: FolderEntries
) -> None:
    shown: dict[str, bool] = {}

    def is_shown(folder: str) -> bool:
        if folder not in shown:
            _require_named(uri, [folder])
            parent, slash, name = folder.rpartition("/")
            above = f"{uri}/{parent}" if slash else uri
            is_location = not (prefix or slash)
            shown[folder] = (not slash or is_shown(parent)) and _is_shown(
                above, prefix + folder, name, entries, is_location=is_location
            )
        return shown[folder]

    for info in found:
        relative = info.path[len(base) :]
        if info.type == pafs.FileType.Directory:
            # One that holds no file counts where its name says that it replaces others.
            if prefix and entries.acid_folders is not None:
                is_shown(relative)
            continue
        folder, slash, name = relative.rpartition("/")
        if slash and not is_shown(folder):
            continue
        within = f"{uri}/{folder}" if slash else uri
        if is_hidden(name) and not entries.is_read(name):
            refuse_hidden(within, name, is_location=not (prefix or slash))
            continue
        if within.rpartition("/")[2] in metadata_folders():
            refuse_file(within, name)
        entries.paths.append(prefix + relative)
        entries.sizes_bytes.append(info.size)
        entries.mtimes_ns.append(_planned_mtime_ns(uri, info.mtime_ns))


def _is_shown(
    uri: str, folder: str, name: str, entries: FolderEntries, *, is_location: bool
) -> bool:
    """Tell whether files in a subfolder of this name count."""
    if is_hidden(name, is_folder=True):
        refuse_hidden(uri, name, is_location=is_location)
        return False
    entries.note_folder(uri, folder)
    return True


def names_in(uri: str) -> list[str] | None:
    """Return the names of what is right in a folder; None if there is no such folder.

    Args:
        uri: Absolute path or URI of the folder.

    Raises:
        OSError: It cannot be listed.
    """
    if not is_remote(uri):
        try:
            return os.listdir(uri)
        except (FileNotFoundError, NotADirectoryError):
            return None
    filesystem, path = _located(uri)
    try:
        found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    except pa.ArrowException as error:
        raise OSError(str(error)) from error
    # An object store has no empty folders.
    return [info.base_name for info in found] or None


def read_whole_file(uri: str, max_bytes: int) -> bytes:
    """Return the content of a small file.

    Args:
        uri: Absolute path or URI.
        max_bytes: Most bytes to read; the rest is left out.

    Raises:
        FileNotFoundError: It is not there.
        OSError: It cannot be read.
    """
    if not is_remote(uri):
        # A pipe in a file's place would block whoever opens it.
        descriptor = os.open(uri, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as local:
            return local.read(max_bytes)
    filesystem, path = _located(uri)
    with filesystem.open_input_stream(path, compression=None) as stream:
        content: bytes = stream.read(max_bytes)
    return content


def _require_named(uri: str, folders: list[str]) -> None:
    for folder in folders:
        if not folder or folder.startswith("/") or "//" in folder or folder.endswith("/"):
            raise LocationError(
                uri, "holds a folder without a name, as in 'a//b': rename what lies in it"
            )


def remote_status(uri: str) -> tuple[int, int]:
    """Return size in bytes and last change in ns of a file, with one request.

    Raises:
        FileNotFoundError: It is not there.
        OSError: It cannot be looked at.
    """
    filesystem, path = _located(uri)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(uri)
    return info.size, _planned_mtime_ns(uri, info.mtime_ns)


@contextmanager
def open_remote_file(uri: str) -> Iterator[OpenedFile]:
    """Open a file, on S3 with one request.

    Raises:
        FileNotFoundError: It is not there.
        OSError: It cannot be opened.
    """
    # Before it is opened, so that a file put in its place meanwhile shows. S3 tells both when a
    # file is opened, which saves a request.
    status = None if uri.startswith("s3:") else remote_status(uri)
    filesystem, path = _located(uri)
    with filesystem.open_input_file(path) as file:
        if status is None:
            told = file.metadata()["Last-Modified"].decode()
            moment = datetime.strptime(told, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
            status = file.size(), int(moment.timestamp()) * _NS_PER_S
        yield OpenedFile(file, *status)


def why_unreadable(error: Exception) -> str:
    """Say what is wrong with something that could not be read, and what to do about it."""
    text = " ".join(str(error).split())
    if (code := _AWS_ERROR.search(text)) and code[1] in _AWS_REASONS:
        return _AWS_REASONS[code[1]]
    if "to load lib" in text:
        return (
            "needs Hadoop's native client and a JVM here: set JAVA_HOME, HADOOP_HOME and CLASSPATH "
            "(`hadoop classpath --glob`)"
        )
    return f"cannot be read: {text[:_SHOWN_CHARACTERS]}"


def _planned_mtime_ns(uri: str, mtime_ns: int) -> int:
    # S3 says a time in whole seconds when a file is opened; some servers list milliseconds.
    return mtime_ns // _NS_PER_S * _NS_PER_S if uri.startswith("s3:") else mtime_ns


def _located(uri: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a URI, and the path in it.

    Raises:
        OSError: It cannot be connected to.
    """
    scheme, _, rest = uri.partition("://")
    authority, _, path = rest.partition("/")
    # The environment may name another endpoint by now.
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    key = (
        scheme,
        authority if scheme == "hdfs" else "",
        endpoint if scheme == "s3" else None,
    )
    if key not in _filesystems:
        try:
            _filesystems[key] = _connected(*key)
        except pa.ArrowException as error:
            raise OSError(str(error)) from error
    return _filesystems[key], f"/{path}" if scheme == "hdfs" else rest


def _connected(scheme: str, authority: str, endpoint: str | None) -> pafs.FileSystem:
    if scheme == "hdfs":
        host, _, port = authority.partition(":")
        # Host "default" is what core-site.xml says; a name service goes without a port.
        return pafs.HadoopFileSystem(host or "default", int(port or 0))
    if scheme == "gs":
        return pafs.GcsFileSystem(retry_time_limit=timedelta(seconds=_REQUEST_TIMEOUT_S))
    if scheme != "s3":
        raise OSError(f"{scheme}: is not supported by this version of Windrow")
    return pafs.S3FileSystem(
        endpoint_override=endpoint,
        connect_timeout=_CONNECT_TIMEOUT_S,
        request_timeout=_REQUEST_TIMEOUT_S,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
