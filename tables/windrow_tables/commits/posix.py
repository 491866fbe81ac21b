"""The POSIX operations that commits need beside those of roots: locks, permissions, and what lasts."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

_SYNCING_THREADS = 8
# NFS locks only files that are open for writing, which folders never are.
_UNLOCKABLE = frozenset(
    {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
)


def sync(paths: Iterable[str]) -> None:
    """Make sure that files, and the names in folders, survive a loss of power."""
    with syncing(paths):
        pass


@contextlib.contextmanager
def syncing(paths: Iterable[str]) -> Iterator[None]:
    """Sync paths while the block runs; all of them are synced at its end."""
    with ThreadPoolExecutor(_SYNCING_THREADS) as threads:
        syncs = threads.map(_sync, paths)
        yield
        for _ in syncs:
            pass


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderLock:
    """The lock of a folder, held until `release` or the end of the process, however it ends.

    Attributes:
        NAME: Name of its file in the folder.
        same_machine: Whether this machine made the lock, and has not been restarted since. Only
            then does this machine see whether the lock is held.
    """

    NAME = "lock"

    def __init__(self, descriptor: int, *, same_machine: bool) -> None:
        self._descriptor = descriptor
        self.same_machine = same_machine

    @classmethod
    def make(cls, folder: str) -> FolderLock:
        """Make the lock of a new folder, and hold it."""
        path = os.path.join(folder, cls.NAME)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            # A recovery that looks for dead writes may hold it for a moment.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.write(descriptor, _machine())
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor, same_machine=True)

    @classmethod
    def take(cls, folder: str) -> FolderLock | None:
        """Take the lock of a folder; None if it is held, by this process or another."""
        # NFS locks only files that are open for writing.
        descriptor = os.open(os.path.join(folder, cls.NAME), os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor, same_machine=os.read(descriptor, 100) == _machine())

    @classmethod
    def take_itself(cls, folder: str) -> FolderLock | None:
        """Lock a folder itself, without a file in it; None if it is held, by this process or another.

        Nothing is locked on a file system that does not lock folders.
        """
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _UNLOCKABLE:
                raise
            descriptor = -1
        return cls(descriptor, same_machine=True)

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _machine() -> bytes:
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read(64).strip()
    except OSError:
        return b""
