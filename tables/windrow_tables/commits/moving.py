"""Moving the files of a commit into a table on a local disk: folders are exchanged."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import NotOursError, Proof, Record
from windrow_core.files.status import FileStatus
from windrow_tables.commits import posix
from windrow_tables.commits.intents import INTENT_FILE, Intent, PartitionChange


class Moving:
    """Moves files as an intent says; each step may be repeated after a crash.

    A moved folder keeps its inode, so the inode in the intent shows whether a partition has
    already been moved in.

    Args:
        root: The table's folder.
        staging: The write's staging folder, below it.
        intent: The intent recorded there.
        proof: Proves that something lies in a staging folder.
    """

    def __init__(self, root: Root, staging: str, intent: Intent, proof: Proof) -> None:
        self._root = root
        self._staging = staging
        self._intent = intent
        self._proof = proof

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
        new, live = self._new(change), change.folder
        # If neither folder has this inode, somebody removed the partition after it was moved in.
        if self._root.inode(live) != change.inode and self._root.inode(new) == change.inode:
            self._root.exchange(new, live, self._aside(change), self._proof)

    def _move_out(self, change: PartitionChange) -> None:
        live, aside = change.folder, self._aside(change)
        if self._root.status(aside) is not None or self._root.status(live) is None:
            return
        # Not made anew if another process has ended this commit and removed the staging folder:
        # what is live now belongs to a later one.
        with suppress(FileExistsError):
            self._root.make_new_folder(f"{self._staging}/old")
        self._root.make_folder(os.path.dirname(aside))
        self._root.move(live, aside, Record({live: None}))
        self._root.remove_empty(os.path.dirname(live))

    def _bring_back(self, change: PartitionChange) -> None:
        """Carry over changes that other programs made to a partition during the exchange."""
        live, aside = change.folder, self._aside(change)
        old = aside if self._root.status(aside) is not None else self._new(change)
        if self._root.inode(old) in (None, change.inode):
            return
        left = dict(self._root.entries(old))
        for name, status in left.items():
            if name in change.kept or _is_unchanged(status, change.gone.get(name)):
                continue
            self._root.make_folder(live)
            self._give(f"{old}/{name}", live, name)
        intent = self._root.status(f"{self._staging}/{INTENT_FILE}")
        for name in set(change.kept) - left.keys():
            # Another program removed it after it was linked and before the exchange. What is newer
            # than the intent has been put there since.
            link = self._root.status(f"{live}/{name}")
            if link is not None and intent is not None and link.st_mtime_ns <= intent.st_mtime_ns:
                state = FileStatus(link.st_size, link.st_mtime_ns)
                with suppress(NotOursError):
                    self._root.remove_file(f"{live}/{name}", Record({f"{live}/{name}": state}))

    def _give(self, source: str, live: str, name: str) -> None:
        try:
            self._root.move(source, f"{live}/{name}", self._proof)
        except FileExistsError:
            other = f"{self._intent.write_id[:8]}-{name}"
            self._root.move(source, f"{live}/{other}", self._proof)

    def _move_files(self, change: PartitionChange) -> None:
        for name in change.added:
            for part in (f".{name}.crc", name):
                # It has been moved already if it is not there.
                with suppress(FileNotFoundError):
                    self._root.move(f"{self._new(change)}/{part}", part, self._proof)

    def _remove_files(self, change: PartitionChange) -> None:
        for name, state in change.gone.items():
            # Files that have changed are no longer the old ones.
            with suppress(NotOursError):
                if self._root.remove_file(name, Record({name: state})):
                    checksum = f".{name}.crc"
                    self._root.remove_file(checksum, Record({checksum: None}))

    def _sync(self) -> None:
        location = self._root.path
        folders = {location}
        for change in self._intent.partitions:
            folder = os.path.join(location, change.folder) if change.folder else location
            while folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
        posix.sync(sorted(path for path in folders if os.path.isdir(path)))

    def _new(self, change: PartitionChange) -> str:
        return f"{self._staging}/data/{change.folder}".rstrip("/")

    def _aside(self, change: PartitionChange) -> str:
        return f"{self._staging}/old/{change.folder}"


def _is_unchanged(status: os.stat_result, state: FileStatus | None) -> bool:
    return state is not None and state == (status.st_size, status.st_mtime_ns, None)
