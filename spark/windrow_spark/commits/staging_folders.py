"""Staging folders on local disks: where the files of a write lie until they are moved in."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from windrow_core.files.access import why_unwritable
from windrow_spark.commits import intents, posix
from windrow_spark.commits.errors import UnfitLocationError
from windrow_spark.commits.intents import Intent, PartitionChange
from windrow_spark.commits.moving import Moving
from windrow_spark.commits.preparation import move_home
from windrow_spark.commits.spellings import Home

# Spark, Hive, Arrow and Windrow's own listing skip names that begin with an underscore.
STAGING_ROOT = "_windrow/writes"
_DATA = "data"
_NO_LOCKS = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# Linux answers EPERM for a file system without hard links.
_NO_LINKS = _NO_LOCKS | {errno.EMLINK, errno.EPERM}


@dataclass(frozen=True, slots=True)
class StagingFolder:
    """The staging folder of one write.

    Attributes:
        location: Absolute path of the table.
        write_id: The write.
    """

    location: str
    write_id: str

    @property
    def path(self) -> str:
        """Absolute path of the folder."""
        return os.path.join(self.location, STAGING_ROOT, self.write_id)

    @property
    def data(self) -> str:
        """Absolute path of the folder that new files are written below."""
        return os.path.join(self.path, _DATA)

    def make(self, table: str) -> posix.FolderLock:
        """Make the folder, and hold its lock."""
        try:
            while True:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                try:
                    os.mkdir(self.path)
                    break
                except FileNotFoundError:
                    # Another write has just ended and removed the folder above.
                    continue
            lock = posix.FolderLock.make(self.path)
        except OSError as error:
            self.remove()
            reason = _why_unfit(error, "locks", _NO_LOCKS)
            raise UnfitLocationError(table, self.location, reason) from error
        try:
            os.mkdir(self.data)
            posix.link(
                os.path.join(self.path, posix.FolderLock.NAME), os.path.join(self.path, "linked")
            )
        except OSError as error:
            lock.release()
            self.remove()
            reason = _why_unfit(error, "hard links", _NO_LINKS)
            raise UnfitLocationError(table, self.location, reason) from error
        return lock

    def remove(self) -> None:
        """Remove the folder and its contents, as far as that is possible now.

        The write must have ended, or not be known to the coordinator.
        """
        # Without its intent, what is left cannot be mistaken for an interrupted commit.
        with suppress(OSError):
            intents.forget(self.path)
            self.clear()
            posix.remove_file(os.path.join(self.path, posix.FolderLock.NAME))
            os.rmdir(self.path)
        # The folders above are left even if this one could not be made.
        with suppress(OSError):
            above = os.path.dirname(self.path)
            for folder in (above, os.path.dirname(above)):
                os.rmdir(folder)

    def take(self) -> posix.FolderLock | None:
        """See `Staging.take`."""
        return posix.FolderLock.take(self.path)

    def claim(self) -> posix.FolderLock:
        """See `Staging.claim`."""
        return posix.FolderLock.make(self.path)

    def exists(self) -> bool:
        """See `Staging.exists`."""
        return os.path.isdir(self.path)

    def age_s(self) -> float:
        """See `Staging.age_s`."""
        return time.time() - os.stat(self.path).st_mtime

    def record(self, intent: Intent) -> None:
        """See `Staging.record`."""
        intents.record(self.path, intent)

    def recorded(self) -> Intent | None:
        """See `Staging.recorded`."""
        return intents.recorded(self.path)

    def forget(self) -> None:
        """See `Staging.forget`."""
        intents.forget(self.path)

    def settle(self, paths: Sequence[str], homes: Mapping[str, Home]) -> dict[str, str]:
        """See `Staging.settle`; files are moved within the staging folder."""
        return move_home(self.data, homes)

    def syncing(self, paths: Iterable[str]) -> AbstractContextManager[None]:
        """See `Staging.syncing`."""
        return posix.syncing(os.path.join(self.data, path) for path in paths)

    def sync(self, changes: Sequence[PartitionChange]) -> None:
        """See `Staging.sync`."""
        posix.sync(_folders_above(self.path, changes))

    def moving(self, intent: Intent) -> Moving:
        """See `Staging.moving`."""
        return Moving(self.location, self.path, intent)

    def clear(self) -> None:
        """Remove everything but the lock, as far as that is possible now; there is no intent.

        The folder stays, so that a recovery finds that nothing has been moved.
        """
        for entry in os.scandir(self.path):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != posix.FolderLock.NAME:
                os.remove(entry.path)


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
