"""Files and folders on local disks: made below a root, and removed there if they are ours.

A root is opened once, and all below it is reached from there, a folder at a time, through none that is
a link. So whoever puts a link in a folder's place, at any moment, leads nobody elsewhere.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from windrow_core.files.process_wide import kept_by_process
from windrow_core.files.roots.proofs import OutsideError, Proof, parts_of, require
from windrow_core.files.status import FileStatus

_FOLDER = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)
# Asks for no right to list the folders on the way.
_STEP = _FOLDER | getattr(os, "O_PATH", 0)
_NOREPLACE, _EXCHANGE = 1, 2
# Errors for an operation that the file system, the kernel or the C library does not support.
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
# Names of files that are being written, and take their own names once they are whole.
ASIDE = r"\.[^/]+\.[0-9a-f]{16}"
_LINK = "is a symbolic link, which is not followed: put the folder itself there"


class Root:
    """A folder below which files are changed; paths below it are relative, and "" is the root.

    Args:
        path: Its absolute path, which holds no link.

    Raises:
        FileNotFoundError: There is no such folder.
        OutsideError: A part of the path is a link.
        OSError: It cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = _descend(os.open("/", _STEP), path, path.strip("/"))
        weakref.finalize(self, os.close, self._descriptor)

    @classmethod
    def resolved(cls, path: str) -> Root:
        """Open a folder that the caller has named, whatever links lead there."""
        return cls(os.path.realpath(path))

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a file, folder or link; None if there is none."""
        try:
            with self._at(path) as (folder, name):
                return os.lstat(name, dir_fd=folder)
        except FileNotFoundError:
            return None

    def inode(self, path: str) -> int | None:
        """Return the inode of a file or folder, which a move does not change; None if missing."""
        status = self.status(path)
        return None if status is None else status.st_ino

    def entries(self, path: str = "") -> list[tuple[str, os.stat_result]]:
        """Return what lies in a folder: names, and the status of each, of links themselves."""
        entries = []
        with self.opened(path) as folder, os.scandir(folder) as scan:
            for entry in scan:
                with suppress(FileNotFoundError):
                    entries.append((entry.name, entry.stat(follow_symlinks=False)))
        return entries

    def require(self, path: str, *proofs: Proof) -> None:
        """Make sure that something is ours.

        Raises:
            FileNotFoundError: There is nothing.
            NotOursError: A proof does not hold.
        """
        with self._at(path) as (folder, name):
            self._require(path, folder, name, *proofs)

    def content(self, path: str, most_bytes: int = -1) -> bytes:
        """Return the content of a file, or its beginning.

        Raises:
            FileNotFoundError: There is none.
            OSError: It cannot be read, or is a link.
        """
        # Opening a pipe in a file's place would block otherwise.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with self._at(path) as (folder, name):
            descriptor = os.open(name, flags, dir_fd=folder)
        with open(descriptor, "rb") as file:
            return file.read(most_bytes)

    def make_folder(self, path: str, mode: int = 0o777) -> None:
        """Make a folder, and those above it, unless there is one.

        Args:
            path: The folder.
            mode: Permissions of new folders, of which the process's mask takes some away.
        """
        parts = parts_of(self.path, path)
        for depth in range(1, len(parts) + 1):
            with self._at("/".join(parts[:depth])) as (folder, name), suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=folder)
        with self.opened(path):
            # It may be a link.
            pass

    def make_new_folder(self, path: str) -> None:
        """Make a folder, in one that exists.

        Raises:
            FileExistsError: Something has this name.
        """
        with self._beneath(path) as (folder, name):
            os.mkdir(name, dir_fd=folder)

    def sync(self, path: str = "") -> None:
        """Make a file, or the names in a folder, survive a loss of power."""
        with self._at(path) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def touch(self, path: str) -> bool:
        """Make a file as young as if it were written now; return False if there is none."""
        try:
            with self._at(path) as (folder, name):
                os.utime(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def link(self, source: str, target: str) -> None:
        """Link a file under a second name, unless it already has that name."""
        with self._beneath(source) as (one, name), self._beneath(target) as (other, new):
            try:
                os.link(name, new, src_dir_fd=one, dst_dir_fd=other, follow_symlinks=False)
            except FileExistsError:
                if not os.path.samestat(os.lstat(name, dir_fd=one), os.lstat(new, dir_fd=other)):
                    raise

    def write_file(
        self,
        path: str,
        content: bytes,
        *proofs: Proof,
        mode: int | None = None,
        lasting: bool = True,
    ) -> None:
        """Write a file as a whole or not at all, in a folder that exists.

        Args:
            path: The file.
            content: What it contains.
            proofs: That a file of this name is ours; without any, there must be none.
            mode: Its permissions; by default, those that this process gives to new files.
            lasting: Whether it must survive a loss of power.

        Raises:
            FileExistsError: There is a file, and no proof is given.
            NotOursError: A proof does not hold.
            OSError: It cannot be written; nothing is left of it.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with self._beneath(path) as (folder, name):
            aside = f".{name}.{secrets.token_hex(8)}"
            descriptor = os.open(aside, flags, 0o666, dir_fd=folder)
            try:
                with open(descriptor, "wb") as file:
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    file.write(content)
                    file.flush()
                    if lasting:
                        os.fsync(file.fileno())
                if not proofs:
                    rename_if_free(folder, aside, folder, name)
                else:
                    with suppress(FileNotFoundError):
                        self._require(path, folder, name, *proofs)
                    os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(aside, dir_fd=folder)
                raise
        if lasting:
            self.sync(path.rpartition("/")[0])

    def move(self, source: str, target: str, *proofs: Proof) -> None:
        """Move a file or folder of ours to a path that is free, in a folder that exists.

        Raises:
            FileNotFoundError: There is nothing to move, or no such folder.
            FileExistsError: The path is not free.
            NotOursError: A proof does not hold.
        """
        with self._beneath(source) as (one, name), self._beneath(target) as (other, new):
            self._require(source, one, name, *proofs)
            rename_if_free(one, name, other, new)

    def exchange(self, new: str, live: str, aside: str, *proofs: Proof) -> None:
        """Move a new folder of ours into the place of another, which then has the new one's path.

        If the file system cannot exchange folders, the other one goes to `aside` first, and for a
        moment none is there.

        Args:
            new: The new folder.
            live: The place, which may be free.
            aside: A path for the other folder, where nothing lies.
            proofs: That the new folder is ours; and so is its path, where the other one comes to lie.
        """
        self.make_folder(live.rpartition("/")[0])
        while True:
            with self._beneath(new) as (one, name), self._beneath(live) as (other, other_name):
                self._require(new, one, name, *proofs)
                try:
                    return exchange_names(one, name, other, other_name)
                except FileNotFoundError:
                    pass
                except NotImplementedError:
                    if self.status(live) is not None:
                        self.make_folder(aside.rpartition("/")[0])
                        with self._beneath(aside) as (third, third_name):
                            rename_if_free(other, other_name, third, third_name)
                # Another program may just have made `live`.
                with suppress(FileExistsError):
                    return rename_if_free(one, name, other, other_name)

    def remove_file(self, path: str, *proofs: Proof) -> bool:
        """Remove a file of ours, or a link itself; return whether there was one.

        Raises:
            NotOursError: A proof does not hold.
            OSError: It cannot be removed, or is a folder.
        """
        try:
            with self._beneath(path) as (folder, name):
                self._require(path, folder, name, *proofs)
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return False
        return True

    def remove_tree(self, path: str, *proofs: Proof) -> None:
        """Remove a folder of ours with all that it holds, if it exists; links are not followed.

        Raises:
            NotOursError: A proof does not hold.
            OSError: Something in it cannot be removed; all else is.
        """
        with suppress(FileNotFoundError), self._beneath(path) as (folder, name):
            self._require(path, folder, name, *proofs)
            _remove_tree(folder, name)

    def remove_empty(self, path: str) -> None:
        """Remove a folder, and those above it up to the root, as long as they are empty.

        Args:
            path: The folder, which need not exist.
        """
        while path:
            try:
                with suppress(FileNotFoundError), self._beneath(path) as (folder, name):
                    os.rmdir(name, dir_fd=folder)
            except OSError:
                return
            path = path.rpartition("/")[0]

    @contextmanager
    def _beneath(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield what `_at` does of anything but the root itself, which is never changed."""
        if not path:
            raise OutsideError(self.path, path, "it is the root itself")
        with self._at(path) as place:
            yield place

    @contextmanager
    def _at(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the folder that something lies in, opened, and its name there."""
        above, _, name = path.rpartition("/")
        if not parts_of(self.path, path):
            name = "."
        folder = _descend(os.dup(self._descriptor), self.path, above)
        try:
            yield folder, name
        except OSError as error:
            # What was done within may have named its own path already.
            if error.filename is not None and not str(error.filename).startswith("/"):
                error.filename = os.path.join(self.path, path)
            raise
        finally:
            os.close(folder)

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Yield a folder, opened to be listed."""
        with self._at(path) as (above, name):
            folder = _open_folder(name, above, self.path, path, _FOLDER)
            try:
                yield folder
            finally:
                os.close(folder)

    def _require(self, path: str, folder: int, name: str, *proofs: Proof) -> None:
        status = os.lstat(name, dir_fd=folder)
        require(self.path, _Entry(self, path, folder, name, status), *proofs)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What proofs look at; see `Entry`."""

    root: Root
    path: str
    folder: int
    name: str
    status: os.stat_result

    def state(self) -> FileStatus | None:
        """See `Entry.state`."""
        if stat.S_ISDIR(self.status.st_mode):
            return None
        return FileStatus(self.status.st_size, self.status.st_mtime_ns)

    def newest_ns(self) -> int:
        """See `Entry.newest_ns`."""
        newest = self.status.st_mtime_ns
        if not stat.S_ISDIR(self.status.st_mode):
            return newest
        for _, _, files, folder in os.fwalk(self.name, dir_fd=self.folder):
            newest = max(newest, os.fstat(folder).st_mtime_ns)
            for name in files:
                with suppress(FileNotFoundError):
                    newest = max(newest, os.lstat(name, dir_fd=folder).st_mtime_ns)
        return newest

    def content_of(self, path: str, most_bytes: int) -> bytes | None:
        """See `Entry.content_of`."""
        try:
            return self.root.content(path, most_bytes)
        except OSError as error:
            # A link is no mark.
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return None
            raise


def _descend(start: int, root: str, path: str) -> int:
    """Return a descriptor of a folder below another one, whose descriptor is closed."""
    folder = start
    try:
        for name in parts_of(root, path):
            below = _open_folder(name, folder, root, path, _STEP)
            os.close(folder)
            folder = below
    except BaseException:
        os.close(folder)
        raise
    return folder


def _open_folder(name: str, above: int, root: str, path: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and stat.S_ISLNK(
            os.lstat(name, dir_fd=above).st_mode
        ):
            raise OutsideError(root, path, f"{name!r} {_LINK}") from None
        error.filename = os.path.join(root, path)
        raise


def _remove_tree(above: int, name: str) -> None:
    errors: list[OSError] = []

    def remove(act: Callable[..., None], name: str, folder: int) -> None:
        try:
            act(name, dir_fd=folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            errors.append(error)

    try:
        for _, folders, files, folder in os.fwalk(name, topdown=False, dir_fd=above):
            for file in files:
                remove(os.unlink, file, folder)
            for one in folders:
                remove(_remove_folder_or_link, one, folder)
    except RecursionError:
        raise OSError(errno.ENAMETOOLONG, "it has folders within folders, too deep", name) from None
    remove(os.rmdir, name, above)
    if errors:
        raise errors[0]


def _remove_folder_or_link(name: str, dir_fd: int) -> None:
    try:
        os.rmdir(name, dir_fd=dir_fd)
    except NotADirectoryError:
        # A link to a folder is listed among folders.
        os.unlink(name, dir_fd=dir_fd)


def exchange_names(one: int, name: str, other: int, new: str) -> None:
    """Exchange two folders in one step, so that neither is ever missing."""
    _rename(one, name, other, new, _EXCHANGE)


def rename_if_free(one: int, name: str, other: int, new: str) -> None:
    """Move a file or folder to a path that must be free."""
    try:
        _rename(one, name, other, new, _NOREPLACE)
    except NotImplementedError:
        with suppress(FileNotFoundError):
            os.lstat(new, dir_fd=other)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(name, new, src_dir_fd=one, dst_dir_fd=other)


def _rename(one: int, name: str, other: int, new: str, flags: int) -> None:
    """Do as Linux's `renameat2`.

    Raises:
        NotImplementedError: The file system, the kernel or the C library does not have it.
    """
    libc = kept_by_process("libc", lambda: ctypes.CDLL(None, use_errno=True))
    call = getattr(libc, "renameat2", None)
    if call is None:
        raise NotImplementedError
    if call(one, os.fsencode(name), other, os.fsencode(new), flags) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise NotImplementedError
    raise OSError(code, os.strerror(code), name, None, new)
