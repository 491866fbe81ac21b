"""Staging folders: where the files of a write lie until they are moved in."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from windrow_core.files.access import why_inaccessible, why_unwritable
from windrow_core.files.errors import LocationError
from windrow_core.files.formats import LOGGED
from windrow_core.files.other_formats import SINK_LOG, refuse_folder, refuse_hidden
from windrow_core.files.parent_folders import refuse_part_of_table
from windrow_core.files.remote import names_in
from windrow_core.models import WRITE_ID_PATTERN, TableInfo
from windrow_spark.commits import intents, posix
from windrow_spark.commits.errors import UnfitLocationError

# Spark, Hive, Arrow and Windrow's own listing skip names that begin with an underscore.
_ROOT = os.path.join("_windrow", "writes")
_DATA = "data"
_NO_LOCKS = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# Linux answers EPERM for a file system without hard links.
_NO_LINKS = _NO_LOCKS | {errno.EMLINK, errno.EPERM}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


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
        return os.path.join(self.location, _ROOT, self.write_id)

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


def staging_folders_in(location: str) -> Iterator[StagingFolder]:
    """Yield the staging folders below a location."""
    try:
        names = sorted(os.listdir(os.path.join(location, _ROOT)))
    except FileNotFoundError:
        return
    for name in names:
        if re.fullmatch(WRITE_ID_PATTERN, name):
            yield StagingFolder(location, name)


def local_location(table: TableInfo) -> str:
    """Return the absolute path of a table that can be written here."""
    location = table.definition.location
    if table.definition.transactional is not None:
        reason = "the table is transactional: write with Hive, then refresh the table"
        raise UnfitLocationError(table.name, location, reason)
    if table.definition.format in LOGGED:
        reason = (
            f"the table is {table.definition.format}: write with its own engine, compact with "
            f"{LOGGED[table.definition.format]}, then refresh the table"
        )
        raise UnfitLocationError(table.name, location, reason)
    if table.definition.format != "parquet":
        reason = f"its format is {table.definition.format}, but only Parquet can be written"
        raise UnfitLocationError(table.name, location, reason)
    if location.startswith("file:"):
        location = unquote(re.sub("^file:(//[^/]*)?", "", location))
    if _SCHEME.match(location) or not location.startswith("/"):
        raise UnfitLocationError(
            table.name,
            location,
            "files can be moved in at once only on local paths: write with Spark, then refresh the "
            "table",
        )
    return os.path.realpath(location)


def require_plain(table: str, location: str) -> None:
    """Make sure that files put into a table's folder become part of the table."""
    try:
        refuse_part_of_table(location)
        names = names_in(location) or ()
        for name in names:
            refuse_hidden(location, name, is_location=True)
            refuse_folder(location, name)
    except LocationError as error:
        raise UnfitLocationError(table, location, error.reason) from error
    except OSError as error:
        reason = f"it cannot be listed: {why_inaccessible(error)}"
        raise UnfitLocationError(table, location, reason) from error
    if SINK_LOG in names:
        raise UnfitLocationError(
            table,
            location,
            f"it holds the log of a Spark streaming query ({SINK_LOG!r}), which lists the files "
            "that count: write through that query, or to another table",
        )
