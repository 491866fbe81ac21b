"""Moving the files of a commit into a table on a local disk: folders are exchanged."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from windrow_core.files.status import FileStatus
from windrow_spark.commits import posix
from windrow_spark.commits.intents import Intent, PartitionChange


class Moving:
    """Moves files as an intent says; each step may be repeated after a crash.

    A moved folder keeps its inode, so the inode in the intent shows whether a partition has
    already been moved in.

    Args:
        location: Absolute path of the table.
        staging: Absolute path of the write's staging folder.
        intent: The intent recorded there.
    """

    def __init__(self, location: str, staging: str, intent: Intent) -> None:
        self._location = location
        self._staging = staging
        self._intent = intent

    def move_in(self, on_moved: Callable[[int], None] = lambda _: None) -> None:
        """Give every partition its new files, each partition in one step.

        Args:
            on_moved: Called with the number of partitions done.
        """
        for done, change in enumerate(self._intent.partitions, 1):
            if not change.folder:
                self._move_files(change)
            elif change.inode is None:
                self._move_out(change)
            else:
                self._move_folder(change)
            if change.folder:
                self._bring_back(change)
            on_moved(done)
        self._sync()

    def finish(self) -> None:
        """Remove what is left of the old state; call this once the new state is published."""
        for change in self._intent.partitions:
            if change.folder:
                self._bring_back(change)
            else:
                self._remove_files(change)

    def _move_folder(self, change: PartitionChange) -> None:
        new, live = self._new(change), self._live(change)
        # If neither folder has this inode, somebody removed the partition after it was moved in.
        if posix.inode_of(live) != change.inode and posix.inode_of(new) == change.inode:
            posix.swap(new, live, self._aside(change))

    def _move_out(self, change: PartitionChange) -> None:
        live, aside = self._live(change), self._aside(change)
        if os.path.lexists(aside) or not os.path.lexists(live):
            return
        # Not made anew if another process has ended this commit and removed the staging folder:
        # what is live now belongs to a later one.
        with suppress(FileExistsError):
            os.mkdir(os.path.join(self._staging, "old"))
        os.makedirs(os.path.dirname(aside), exist_ok=True)
        os.rename(live, aside)
        self._remove_empty(os.path.dirname(live))

    def _remove_empty(self, folder: str) -> None:
        while folder != self._location:
            try:
                os.rmdir(folder)
            except OSError:
                return
            folder = os.path.dirname(folder)

    def _bring_back(self, change: PartitionChange) -> None:
        """Carry over changes that other programs made to a partition during the exchange."""
        live = self._live(change)
        aside = self._aside(change)
        old = aside if os.path.lexists(aside) else self._new(change)
        if posix.inode_of(old) in (None, change.inode):
            return
        left = {entry.name: entry for entry in os.scandir(old)}
        for name, entry in left.items():
            if name in change.kept or _is_unchanged(entry, change.gone.get(name)):
                continue
            os.makedirs(live, exist_ok=True)
            self._give(entry.path, os.path.join(live, name))
        for name in set(change.kept) - left.keys():
            # Another program removed it after it was linked and before the exchange.
            posix.remove_file(os.path.join(live, name))

    def _give(self, source: str, target: str) -> None:
        try:
            posix.move_if_free(source, target)
        except FileExistsError:
            folder, name = os.path.split(target)
            posix.move_if_free(source, os.path.join(folder, f"{self._intent.write_id[:8]}-{name}"))

    def _move_files(self, change: PartitionChange) -> None:
        data = self._new(change)
        for name in change.added:
            for part in (f".{name}.crc", name):
                source = os.path.join(data, part)
                if os.path.lexists(source):
                    os.replace(source, os.path.join(self._location, part))

    def _remove_files(self, change: PartitionChange) -> None:
        for name, state in change.gone.items():
            path = os.path.join(self._location, name)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if state == (status.st_size, status.st_mtime_ns, None):
                posix.remove_file(path)
                posix.remove_file(os.path.join(self._location, f".{name}.crc"))

    def _sync(self) -> None:
        folders = {self._location}
        for change in self._intent.partitions:
            folder = self._live(change)
            while folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
        posix.sync(sorted(path for path in folders if os.path.isdir(path)))

    def _live(self, change: PartitionChange) -> str:
        return os.path.join(self._location, change.folder) if change.folder else self._location

    def _new(self, change: PartitionChange) -> str:
        return os.path.join(self._staging, "data", change.folder)

    def _aside(self, change: PartitionChange) -> str:
        return os.path.join(self._staging, "old", change.folder)


def _is_unchanged(entry: os.DirEntry[str], state: FileStatus | None) -> bool:
    if state is None:
        return False
    status = entry.stat(follow_symlinks=False)
    return state == (status.st_size, status.st_mtime_ns, None)
