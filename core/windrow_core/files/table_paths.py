"""Finds the files of a table, and opens them so that no link leads elsewhere.

A path in an inventory is relative to the table's location or, for a file outside of it, absolute: a
path on this machine, or a URI. Only this module puts location and path together.
"""

from __future__ import annotations

import errno
import os

# Only systems with this folder can tell where an open file is.
_DESCRIPTORS = "/proc/self/fd"

_WHY = (
    "a symbolic link leads out of the table's location: put the files themselves there and "
    "refresh the table"
)


def is_outside(path: str) -> bool:
    """Return whether the path of a file or folder is absolute, and so outside the location."""
    return path.startswith("/") or "://" in path


def absolute_path(location: str, path: str) -> str:
    """Return the absolute path or URI of a file, or of a folder, of a table.

    Args:
        location: Absolute path of the table's folder, or its URI.
        path: Path as in inventories: relative to the location, or absolute; "" is the location.
    """
    if is_outside(path):
        return path
    return f"{location.rstrip('/')}/{path}" if path else location


def path_in(location: str, absolute: str) -> str:
    """Return a path as in inventories; the inverse of `absolute_path`."""
    prefix = location.rstrip("/") + "/"
    if absolute == location:
        return ""
    return absolute[len(prefix) :] if absolute.startswith(prefix) else absolute


def real_path(path: str) -> str:
    """Return the path that an absolute path has without links; a URI stays as it is."""
    return os.path.realpath(path) if path.startswith("/") else path


def home_of(location: str) -> str:
    """Return the real path of a location with `/` at its end; a URI stays as it is."""
    return os.path.realpath(location).rstrip("/") + "/" if location.startswith("/") else location


def home_for(location: str, home: str, path: str) -> str:
    """Return the folder that a file must lie beneath when it is opened.

    That is the location or, for a file outside, the file's own folder. The coordinator followed all
    links before it allowed that folder, so its path must contain none.

    Args:
        location: Absolute path of the table's folder, or its URI.
        home: What `home_of` returned for the location.
        path: Absolute path of the file.
    """
    if path.startswith(location.rstrip("/") + "/"):
        return home
    return path.rpartition("/")[0] + "/"


def home_and_path(location: str, path: str) -> tuple[str, str]:
    """Return the folder that a file of a table must lie beneath, and its absolute path or URI."""
    absolute = absolute_path(location, path)
    return home_for(location, home_of(location), absolute), absolute


def open_beneath(home: str, path: str) -> int:
    """Open a file for reading and return its descriptor.

    The open file is checked, not its path: a folder may be replaced by a link at any moment. This
    takes 2 µs; resolving the path beforehand takes 14 µs.

    Args:
        home: What `home_for` returned for the file.
        path: Absolute path of the file.

    Raises:
        OSError: The file cannot be opened, or does not lie beneath `home`.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            real = os.readlink(f"{_DESCRIPTORS}/{descriptor}")
        except FileNotFoundError:
            real = os.path.realpath(path)
        if not real.startswith(home):
            raise OSError(errno.EXDEV, _WHY, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
