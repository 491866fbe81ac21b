"""The POSIX operations that commits need: exchange, link, lock and sync files and folders."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
# Errors for an operation that the file system, the kernel or the C library does not support.
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_SYNCING_THREADS = 8

_libc = ctypes.CDLL(None, use_errno=True)


def exchange(one: str, other: str) -> None:
    """Exchange two folders in one step, so that neither is ever missing."""
    _renameat2(one, other, _EXCHANGE)


def move_if_free(source: str, target: str) -> None:
    """Move a file or folder to a path that must be free."""
    try:
        _renameat2(source, target, _NOREPLACE)
    except NotImplementedError:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(source, target)


def swap(new: str, live: str, aside: str) -> None:
    """Move the folder `new` to `live`; a folder that was at `live` is then at `new`.

    If the file system cannot exchange folders, the old folder goes to `aside` first, and for a
    moment `live` is missing.
    """
    os.makedirs(os.path.dirname(live), exist_ok=True)
    while True:
        try:
            return exchange(new, live)
        except FileNotFoundError:
            pass
        except NotImplementedError:
            os.makedirs(os.path.dirname(aside), exist_ok=True)
            if os.path.lexists(live):
                os.rename(live, aside)
        try:
            return move_if_free(new, live)
        except FileExistsError:
            # Another program has just created `live`.
            continue


def inode_of(path: str) -> int | None:
    """Return the inode of a file or folder, which a move does not change; None if missing."""
    try:
        return os.lstat(path).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None


def link(source: str, target: str) -> None:
    """Link a file under a second name, unless it already has that name."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        if inode_of(source) != inode_of(target):
            raise


def look_alike(model: str, folder: str) -> None:
    """Copy permissions to a folder from another, and owner and group where that is allowed."""
    status = os.stat(model)
    owner = (status.st_uid, status.st_gid)
    own_status = os.stat(folder)
    if (own_status.st_uid, own_status.st_gid) != owner:
        with contextlib.suppress(PermissionError):
            os.chown(folder, *owner)
    os.chmod(folder, stat.S_IMODE(status.st_mode))


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


def write_atomically(path: str, content: bytes) -> None:
    """Write a file as a whole or not at all, so that it survives a loss of power."""
    aside = f"{path}.{secrets.token_hex(4)}"
    try:
        with open(aside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError:
        remove_file(aside)
        raise
    _sync(os.path.dirname(path))


def remove_file(path: str) -> None:
    """Remove a file, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


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


def _renameat2(source: str, target: str, flags: int) -> None:
    call = getattr(_libc, "renameat2", None)
    if call is None:
        raise NotImplementedError
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise NotImplementedError
    raise OSError(code, os.strerror(code), source, None, target)
