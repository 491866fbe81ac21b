"""Staging folders on local disks: where the files of a write lie until they are moved in."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property

from windrow_core.files.access import why_unwritable
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import Form, Mark, NotOursError
from windrow_tables.commits import posix
from windrow_tables.commits.errors import UnfitLocationError
from windrow_tables.commits.intents import INTENT_FILE, Intent, PartitionChange, decoded, encoded
from windrow_tables.commits.moving import Moving
from windrow_tables.commits.preparation import move_home
from windrow_tables.commits.spellings import Home

# Spark, Hive, Arrow and Windrow's own listing skip names that begin with an underscore.
STAGING_ROOT = "_windrow/writes"
# Everything in the folder of a write is its own.
STAGED = Form(re.compile(rf"{STAGING_ROOT}/[0-9a-f]{{32}}(?s:/.+)?"))
# Age at which a folder without an intent is removed if the coordinator does not know its write.
FORGOTTEN = Form(STAGED.pattern, min_age_s=24 * 3600)
_DATA = "data"
_OWNER = "owner"
_NO_LOCKS = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# Linux answers EPERM for a file system without hard links.
_NO_LINKS = _NO_LOCKS | {errno.EMLINK, errno.EPERM}
# Another write may remove the folder above as often while one is made in it.
_ATTEMPTS = 100


class StagingFolder:
    """The staging folder of one write.

    Args:
        location: Absolute path of the table, without links.
        write_id: The write.
    """

    def __init__(self, location: str, write_id: str) -> None:
        self.location = location
        self.write_id = write_id
        # Below the location.
        self._folder = f"{STAGING_ROOT}/{write_id}"

    @property
    def path(self) -> str:
        """Absolute path of the folder."""
        return os.path.join(self.location, self._folder)

    @property
    def data(self) -> str:
        """Absolute path of the folder that new files are written below."""
        return os.path.join(self.path, _DATA)

    @cached_property
    def _root(self) -> Root:
        return Root(self.location)

    def make(self, table: str, owner: bytes) -> posix.FolderLock:
        """See `Staging.make`."""
        try:
            os.makedirs(self.location, exist_ok=True)
            self._make_folder()
            lock = posix.FolderLock.make(self.path)
        except OSError as error:
            self._leave()
            reason = _why_unfit(error, "locks", _NO_LOCKS)
            raise UnfitLocationError(table, self.location, reason) from error
        try:
            self._root.write_file(f"{self._folder}/{_OWNER}", owner, lasting=False)
            self._root.make_new_folder(f"{self._folder}/{_DATA}")
            self._root.link(f"{self._folder}/{_OWNER}", f"{self._folder}/linked")
        except OSError as error:
            lock.release()
            self._leave()
            reason = _why_unfit(error, "hard links", _NO_LINKS)
            raise UnfitLocationError(table, self.location, reason) from error
        return lock

    def _make_folder(self) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                self._root.make_folder(STAGING_ROOT)
                return self._root.make_new_folder(self._folder)
            except FileNotFoundError:
                # Another write has just ended and removed the folder above.
                if attempt == _ATTEMPTS - 1:
                    raise

    def _leave(self) -> None:
        """Remove what could not be made completely."""
        with suppress(OSError):
            self.remove()

    def remove(self) -> None:
        """See `Staging.remove`."""
        # Without its intent, what is left cannot be mistaken for an interrupted commit.
        with suppress(OSError):
            self.forget()
            self.clear()
            for name in (_OWNER, posix.FolderLock.NAME):
                self._root.remove_file(f"{self._folder}/{name}", STAGED)
            self._root.remove_empty(self._folder)
        # The folders above are left even if this one could not be made.
        with suppress(OSError):
            self._root.remove_empty(STAGING_ROOT)

    def require_ours(self, owner: bytes) -> None:
        """See `Staging.require_ours`."""
        self._root.require(self._folder, Mark(f"{self._folder}/{_OWNER}", owner), FORGOTTEN)

    def take(self) -> posix.FolderLock | None:
        """See `Staging.take`."""
        return posix.FolderLock.take(self.path)

    def claim(self) -> posix.FolderLock:
        """See `Staging.claim`."""
        return posix.FolderLock.make(self.path)

    def take_turn(self) -> posix.FolderLock | None:
        """See `Staging.take_turn`."""
        lock = posix.FolderLock.take_itself(self.location)
        if lock is None:
            return None
        try:
            for name, _ in self._root.entries(STAGING_ROOT):
                intent = f"{STAGING_ROOT}/{name}/{INTENT_FILE}"
                if name != self.write_id and self._has(intent):
                    lock.release()
                    return None
        except BaseException:
            lock.release()
            raise
        return lock

    def _has(self, path: str) -> bool:
        # What is no folder, or a link, is nobody's staging folder.
        with suppress(NotADirectoryError, NotOursError):
            return self._root.status(path) is not None
        return False

    def exists(self) -> bool:
        """See `Staging.exists`."""
        try:
            status = self._root.status(self._folder)
        except FileNotFoundError:
            return False
        return status is not None and stat.S_ISDIR(status.st_mode)

    def record(self, intent: Intent) -> None:
        """See `Staging.record`."""
        self._root.write_file(f"{self._folder}/{INTENT_FILE}", encoded(intent), STAGED)

    def recorded(self) -> Intent | None:
        """See `Staging.recorded`."""
        try:
            content = self._root.content(f"{self._folder}/{INTENT_FILE}")
        except FileNotFoundError:
            return None
        return decoded(self.path, content)

    def forget(self) -> None:
        """See `Staging.forget`."""
        self._root.remove_file(f"{self._folder}/{INTENT_FILE}", STAGED)

    def settle(self, paths: Sequence[str], homes: Mapping[str, Home]) -> dict[str, str]:
        """See `Staging.settle`; files are moved within the staging folder."""
        return move_home(self._root, f"{self._folder}/{_DATA}", homes, STAGED)

    def syncing(self, paths: Iterable[str]) -> AbstractContextManager[None]:
        """See `Staging.syncing`."""
        return posix.syncing(os.path.join(self.data, path) for path in paths)

    def sync(self, changes: Sequence[PartitionChange]) -> None:
        """See `Staging.sync`."""
        posix.sync(_folders_above(self.path, changes))

    def moving(self, intent: Intent) -> Moving:
        """See `Staging.moving`."""
        return Moving(self._root, self._folder, intent, STAGED)

    def clear(self) -> None:
        """See `Staging.clear`.

        The folder stays, so that a recovery finds that nothing has been moved.
        """
        for name, status in self._root.entries(self._folder):
            path = f"{self._folder}/{name}"
            if stat.S_ISDIR(status.st_mode):
                with suppress(OSError):
                    self._root.remove_tree(path, STAGED)
            elif name not in (posix.FolderLock.NAME, _OWNER):
                self._root.remove_file(path, STAGED)


def _why_unfit(error: OSError, needs: str, lacking: Collection[int]) -> str:
    """Return why a folder cannot be made; `lacking` are the errors of file systems without it."""
    if error.errno in lacking:
        return (
            f"its file system has no {needs} ({error.strerror or error}), which commits need: "
            "write with Spark, then refresh the table"
        )
    return why_unwritable(error)


def _folders_above(staging: str, changes: Sequence[PartitionChange]) -> list[str]:
    """Return the folders of the staged partitions, with all folders above them in `staging`."""
    folders = {staging, os.path.join(staging, "data")}
    for change in changes:
        if change.inode is not None:
            folder = os.path.join(staging, "data", change.folder)
            while folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
    return sorted(folders)
