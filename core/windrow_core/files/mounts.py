"""File systems of this machine whose times and inode numbers can be believed."""

from __future__ import annotations

import os

# File systems that keep times of files and folders, and inode numbers, as POSIX requires. Others, such
# as object stores mounted through FUSE, invent them.
_TRUSTED_FILE_SYSTEMS = frozenset(
    [
        "btrfs",
        "ceph",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "overlay",
        "tmpfs",
        "xfs",
        "zfs",
    ]
)


def keeps_times(location: str) -> bool:
    """Return whether a path is on a file system that is known to keep times and inode numbers."""
    real = os.path.realpath(location)
    kind, length = "", -1
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                point = _unescaped(before.split(" ")[4])
                # Of several mounts at one point, the last one is visible.
                if (real + "/").startswith(point.rstrip("/") + "/") and len(point) >= length:
                    kind, length = after.split(" ")[0], len(point)
    except (OSError, IndexError):
        return False
    return kind in _TRUSTED_FILE_SYSTEMS


def _unescaped(text: str) -> str:
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace("\\" + code, character)
    return text
