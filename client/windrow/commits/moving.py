"""Moving staged partitions in, so that each step may be done again after a crash.

A folder keeps its number (inode) when it is moved, so the number that an intent holds tells
whether a partition has been moved in already.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from windrow.commits import folders
from windrow.commits.intents import Intent, PartitionChange


class Moving:
    """Moves what an intent says.

    Args:
        location: Absolute path of the table.
        staging: The write's staging folder, below it.
        intent: Recorded there.
    """

    def __init__(self, location: str, staging: str, intent: Intent) -> None:
        self._location = location
        self._staging = staging
        self._intent = intent

    def move_in(self, on_moved: Callable[[int], None] = lambda _: None) -> None:
        """Give every partition its new files, one partition at once.

        Args:
            on_moved: Told how many partitions are done.

        Raises:
            OSError: It failed; what is done stays, and it may be called again.
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
        """Take away what is left of the old state; called once the new one is published.

        Raises:
            OSError: It failed, and may be called again.
        """
        for change in self._intent.partitions:
            if change.folder:
                self._bring_back(change)
            else:
                self._remove_files(change)

    def _move_folder(self, change: PartitionChange) -> None:
        new, live = self._new(change), self._live(change)
        # If it is at neither place, somebody has removed the partition since it was moved in.
        if folders.inode_of(live) != change.inode and folders.inode_of(new) == change.inode:
            folders.swap(new, live, self._aside(change))

    def _move_out(self, change: PartitionChange) -> None:
        live, aside = self._live(change), self._aside(change)
        if os.path.lexists(aside) or not os.path.lexists(live):
            return
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
        """Keep what other programs did in a partition while it was exchanged."""
        live = self._live(change)
        aside = self._aside(change)
        old = aside if os.path.lexists(aside) else self._new(change)
        if folders.inode_of(old) in (None, change.inode):
            return
        left = {entry.name: entry for entry in os.scandir(old)}
        for name, entry in left.items():
            if name in change.kept or _is(entry, change.gone.get(name)):
                continue
            os.makedirs(live, exist_ok=True)
            self._give(entry.path, os.path.join(live, name))
        for name in set(change.kept) - left.keys():
            # It was removed between the moment it was given its second name and the exchange.
            folders.remove_file(os.path.join(live, name))

    def _give(self, source: str, target: str) -> None:
        try:
            folders.place(source, target)
        except FileExistsError:
            folder, name = os.path.split(target)
            folders.place(source, os.path.join(folder, f"{self._intent.write_id[:8]}-{name}"))

    def _move_files(self, change: PartitionChange) -> None:
        data = self._new(change)
        for name in change.added:
            for part in (f".{name}.crc", name):
                source = os.path.join(data, part)
                if os.path.lexists(source):
                    os.replace(source, os.path.join(self._location, part))

    def _remove_files(self, change: PartitionChange) -> None:
        for name, known in change.gone.items():
            path = os.path.join(self._location, name)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if (status.st_size, status.st_mtime_ns) == known:
                folders.remove_file(path)
                folders.remove_file(os.path.join(self._location, f".{name}.crc"))

    def _sync(self) -> None:
        changed = {self._location}
        for change in self._intent.partitions:
            folder = self._live(change)
            while folder not in changed:
                changed.add(folder)
                folder = os.path.dirname(folder)
        folders.sync(sorted(path for path in changed if os.path.isdir(path)))

    def _live(self, change: PartitionChange) -> str:
        return os.path.join(self._location, change.folder) if change.folder else self._location

    def _new(self, change: PartitionChange) -> str:
        return os.path.join(self._staging, "data", change.folder)

    def _aside(self, change: PartitionChange) -> str:
        return os.path.join(self._staging, "old", change.folder)


def _is(entry: os.DirEntry[str], known: tuple[int, int] | None) -> bool:
    if known is None:
        return False
    status = entry.stat(follow_symlinks=False)
    return (status.st_size, status.st_mtime_ns) == known
