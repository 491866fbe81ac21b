"""Why the system does not let a file be read, and what to do about it: the file may be whole."""

from __future__ import annotations

import errno

_REMEDIES = {
    errno.EACCES: "give this process's user the right to read it",
    errno.EPERM: "give this process's user the right to read it",
    errno.EIO: "check the disk or the mount that it lies on",
    errno.ESTALE: "mount its file system again",
    errno.ETIMEDOUT: "check the network and the file server",
    errno.EMFILE: "raise this process's limit of open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit of open files (fs.file-max)",
    errno.ENOMEM: "give this process more memory",
    errno.ELOOP: "correct the symbolic links, which lead in a circle",
}


def why_inaccessible(error: OSError) -> str:
    """Return why a local file could not be read, and what to do if the system is the cause."""
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0)
    return reason if remedy is None else f"{reason}: {remedy}"
