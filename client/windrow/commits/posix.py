"""What commits need of a POSIX file system: exchange, link, lock and sync files and folders."""

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
# What a file system, a kernel or a C library that cannot do it answers.
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_LOCK = "lock"
_SYNCING_THREADS = 8

_libc = ctypes.CDLL(None, use_errno=True)


def exchange(one: str, other: str) -> None:
    """Exchange two folders in one step, so that neither is ever missing.

    Raises:
        FileNotFoundError: One of them is not there.
        NotImplementedError: The file system cannot.
        OSError: It failed.
    """
    _renameat2(one, other, _EXCHANGE)


def move_if_free(source: str, target: str) -> None:
    """Move a file or folder to where nothing is.

    Raises:
        FileExistsError: Something is there.
        OSError: It failed.
    """
    try:
        _renameat2(source, target, _NOREPLACE)
    except NotImplementedError:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(source, target)


def swap(new: str, live: str, aside: str) -> None:
    """Move the folder `new` to `live`; a folder that was there is then at `new`.

    Where the file system cannot exchange folders, the old one goes to `aside` first, and for a
    moment `live` is missing.

    Raises:
        OSError: It failed.
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
            # Somebody has just made it.
            continue


def inode_of(path: str) -> int | None:
    """Return the inode of a file or folder, which moves along with it; None if it is missing."""
    try:
        return os.lstat(path).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None


def link(source: str, target: str) -> None:
    """Link a file under a second name; it may have that name already.

    Raises:
        OSError: It failed.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        if inode_of(source) != inode_of(target):
            raise


def look_alike(model: str, folder: str) -> None:
    """Give a folder the permissions of another, and its owner and group where that is allowed."""
    wanted = os.stat(model)
    with_owner = (wanted.st_uid, wanted.st_gid)
    status = os.stat(folder)
    if (status.st_uid, status.st_gid) != with_owner:
        with contextlib.suppress(PermissionError):
            os.chown(folder, *with_owner)
    os.chmod(folder, stat.S_IMODE(wanted.st_mode))


def sync(paths: Iterable[str]) -> None:
    """Make sure that files, and the names in folders, survive a loss of power.

    Raises:
        OSError: The disk failed, or is full.
    """
    with syncing(paths):
        pass


@contextlib.contextmanager
def syncing(paths: Iterable[str]) -> Iterator[None]:
    """Do what `sync` does while the block runs; it has been done at its end.

    Raises:
        OSError: The disk failed, or is full.
    """
    with ThreadPoolExecutor(_SYNCING_THREADS) as threads:
        synced = threads.map(_sync, paths)
        yield
        for _ in synced:
            pass


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: str, content: bytes) -> None:
    """Write a file as a whole or not at all, so that it survives a loss of power.

    Raises:
        OSError: It failed; what was there before stays.
    """
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
        same_machine: Whether this machine made the lock, and has not been restarted since: only
            then is its holder seen here.
    """

    def __init__(self, descriptor: int, *, same_machine: bool) -> None:
        self._descriptor = descriptor
        self.same_machine = same_machine

    @classmethod
    def make(cls, folder: str) -> FolderLock:
        """Make the lock of a new folder, and hold it.

        Raises:
            OSError: The file system has no locks.
        """
        path = os.path.join(folder, _LOCK)
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
        """Take the lock of a folder; None if it is held, by this process or another.

        Raises:
            FileNotFoundError: It has none.
            OSError: It cannot be opened.
        """
        # NFS locks only what is open for writing.
        descriptor = os.open(os.path.join(folder, _LOCK), os.O_RDWR)
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
        """Let it go."""
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
