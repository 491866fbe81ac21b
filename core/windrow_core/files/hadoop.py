"""Files on HDFS, through `pyarrow.fs` and Hadoop's own client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from windrow_core.files.process_wide import kept_by_process
from windrow_core.files.status import FileStatus


def status_of(uri: str) -> FileStatus:
    """Return the state of a file."""
    filesystem, path = located(uri)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(uri)
    return FileStatus(info.size, info.mtime_ns)


@contextmanager
def opened(uri: str) -> Iterator[Any]:
    """Open a file for reading at any position."""
    filesystem, path = located(uri)
    with filesystem.open_input_file(path) as file:
        yield file


def located(uri: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a URI, and the path in it."""
    scheme, _, rest = uri.partition("://")
    if scheme != "hdfs":
        raise OSError(f"{scheme}:// is not supported by this version of Windrow")
    authority, _, path = rest.partition("/")
    return kept_by_process(f"hdfs://{authority}", lambda: _connected(authority)), f"/{path}"


def _connected(authority: str) -> pafs.FileSystem:
    host, _, port = authority.partition(":")
    try:
        # Host "default" stands for the one in core-site.xml; a name service has no port.
        return pafs.HadoopFileSystem(host or "default", int(port or 0))
    except pa.ArrowException as error:
        raise OSError(str(error)) from error
