"""Locks that threads and processes of one host share, and that end with whoever holds them."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

# Two files of one lock are not fetched at the same time, though they could be.
_LOCKS = 1024
_FIRST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.02


@contextmanager
def locked(folder: str, name: str, patience_s: float) -> Iterator[bool]:
    """Hold the lock of a name.

    `flock` belongs to the open file, so that it holds between threads too, and the kernel
    releases it when a process dies.

    Args:
        folder: Where lock files lie.
        name: Any text.
        patience_s: How long to wait for it.

    Yields:
        Whether the lock is held; it is not if someone else held it all the time.

    Raises:
        OSError: There can be no lock.
    """
    file = os.path.join(folder, f"{zlib.crc32(name.encode()) % _LOCKS:03x}")
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _acquired(descriptor, patience_s)
    finally:
        os.close(descriptor)


def _acquired(descriptor: int, patience_s: float) -> bool:
    # Windows has none, and executors there read past caches.
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
