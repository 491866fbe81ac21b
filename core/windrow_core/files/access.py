"""Why the system does not let files be read or written, and what to do: the files may be whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import TypeGuard

_DISK = "check the disk or the mount that it lies on"
_SERVER = "check the network and the file server"


def _numbered(remedies: Mapping[str, str]) -> dict[int, str]:
    """Return remedies by the number of the error; not every system has all errors."""
    return {
        getattr(errno, name): remedy for name, remedy in remedies.items() if hasattr(errno, name)
    }


# What helps whether a file is to be read or written; each completes "Cause: …".
_REMEDIES = _numbered(
    {
        "EIO": _DISK,
        "ENXIO": _DISK,
        "ENODEV": _DISK,
        "EREMOTEIO": _DISK,
        "EUCLEAN": "check its file system (fsck)",
        "EBADMSG": "check its file system (fsck)",
        "ENOTCONN": "mount its file system again",
        "ESTALE": "mount its file system again",
        "ETIMEDOUT": _SERVER,
        "ECONNREFUSED": _SERVER,
        "ECONNRESET": _SERVER,
        "EHOSTDOWN": _SERVER,
        "EHOSTUNREACH": _SERVER,
        "ENETUNREACH": _SERVER,
        "EMFILE": "raise this process's limit of open files (ulimit -n)",
        "ENFILE": "raise the system's limit of open files (fs.file-max)",
        "ENOMEM": "give this process more memory",
        "EAGAIN": "try again, or raise this process's limits (ulimit -a)",
        "ENOSPC": "make room on the disk, for bytes and for inodes (df, df -i)",
        "EDQUOT": "raise the quota of this process's user there",
        "EROFS": "mount its file system for writing",
        "ELOOP": "correct the symbolic links, which lead in a circle",
        "ENAMETOOLONG": "give it a shorter name, or the table a shorter location",
        "EBUSY": "try again once no other process occupies it",
        "ETXTBSY": "try again once no other process occupies it",
        "EISDIR": "a folder is in the file's place; put the file back, or refresh the table",
        "ENOTDIR": "a file is in a folder's place; put the folder back, or refresh the table",
    }
)
_READ_RIGHT = "give this process's user the right to read it, and to enter its folders"
_WRITE_RIGHT = "give this process's user the right to write there"
_READING = _REMEDIES | _numbered({"EACCES": _READ_RIGHT, "EPERM": _READ_RIGHT})
_WRITING = _REMEDIES | _numbered(
    {
        "EACCES": _WRITE_RIGHT,
        "EPERM": _WRITE_RIGHT,
        "EFBIG": "raise this process's limit of file sizes (ulimit -f)",
        "ENOLCK": "make sure that its file system has locks, and lets more be held",
        "ENOENT": "make sure that it exists while this runs",
    }
)
# Words of the system that Spark and Java repeat without a number.
_NAMED = "EDQUOT EFBIG EIO ELOOP EMFILE ENAMETOOLONG ENFILE ENOSPC EROFS ESTALE"
_IN_TEXTS = {
    os.strerror(number): _WRITING[number]
    for number in (getattr(errno, name, None) for name in _NAMED.split())
    if number is not None
} | {
    os.strerror(errno.EACCES): "give the user of that process the right to it",
    "Mkdirs failed to create": "let the user of that process make folders there",
}
# Ends a sentence about a folder.
NOT_READABLE = (
    "is not readable; let the user of the coordinator, or of the job that lists it, list it and "
    "open its files"
)
_ANY_READING = "make sure that this process can read it"
_ANY_WRITING = "make sure that this process can write there"


def is_of_system(error: BaseException) -> TypeGuard[OSError]:
    """Return whether the system has refused, so that the content of a file is not at fault.

    Arrow's errors about what is in a file are errors of the system too, but have no number.
    """
    return isinstance(error, OSError) and error.errno is not None


def why_inaccessible(error: OSError) -> str:
    """Return why a local file could not be read, and what to do if the system is the cause."""
    return _stated(error, _READING, _ANY_READING)


def why_unwritable(error: OSError) -> str:
    """Return what could not be written, why, and what to do about it."""
    reason = _stated(error, _WRITING, _ANY_WRITING)
    return reason if error.filename is None else f"{os.fsdecode(error.filename)!r}: {reason}"


def remedy_in(text: str) -> str:
    """Return what to do about a refusal of the system that another program's text names.

    The result is empty if the text names none.
    """
    return next((_IN_TEXTS[cause] for cause in _IN_TEXTS if cause in text), "")


def _stated(error: OSError, remedies: Mapping[int, str], otherwise: str) -> str:
    if error.errno is None:
        return str(error)
    # These words of `open_beneath` name the remedy themselves.
    if error.errno == errno.EXDEV and error.strerror:
        return error.strerror
    # Negative numbers are of other lists, such as the resolver's.
    if error.errno in remedies or not error.strerror:
        return f"{os.strerror(error.errno)}: {remedies.get(error.errno, otherwise)}"
    return f"{error.strerror}: {otherwise}"
