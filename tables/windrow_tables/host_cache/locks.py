"""Locks between threads and processes of one host, released when their holder ends."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

# Files that share a lock by chance wait for each other needlessly.
_LOCKS = 1024
_FIRST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.02


@contextmanager
def locked(folder: str, name: str, patience_s: float) -> Iterator[bool]:
    """Hold the lock of a name.

    `flock` belongs to the open file, so it also works between threads, and the kernel releases it
    when a process dies.

    Args:
        folder: Folder of lock files.
        name: Any text.
        patience_s: Maximum seconds to wait.

    Yields:
        Whether the lock is held; False if another holder kept it all the time.
    """
    file = os.path.join(folder, f"{zlib.crc32(name.encode()) % _LOCKS:03x}")
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _acquired(descriptor, patience_s)
    finally:
        os.close(descriptor)


def _acquired(descriptor: int, patience_s: float) -> bool:
    # Missing on Windows, where executors do not use caches.
    import fcntl

    wait_s, deadline = _FIRST_WAIT_S, time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        else:
            return True
