"""The end of a commit, once its intent is recorded: move in, publish, tidy up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from windrow.errors import (
    InvalidRequestError,
    NotFoundError,
    ProblemError,
    WindrowError,
    WriteInProgressError,
    WriteLostError,
)
from windrow_core.files.access import why_unwritable
from windrow_core.files.errors import InventoryError
from windrow_core.models import PublishedSnapshot, TableInfo, WriteReport
from windrow_spark.commits import posix
from windrow_spark.commits.calls import CommitCalls
from windrow_spark.commits.errors import CommitInterruptedError, UnpublishedError
from windrow_spark.commits.intents import Intent, PartitionChange
from windrow_spark.commits.inventories import LocalInventory, list_local, stat_local, take_local
from windrow_spark.commits.leases import Lease
from windrow_spark.commits.staging_folders import StagingFolder
from windrow_spark.commits.table_layout import (
    declared_names,
    in_types_of,
    partition_names,
    with_known_stats,
)

_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit whose intent is recorded: from here on it is finished, never undone.

    Attributes:
        client: The coordinator's client.
        table: The table, with its current snapshot.
        staging: The write's staging folder.
        intent: The intent recorded in the staging folder.
        lease: Lease of the write, which is in state `committing`.
        began_s: When the commit began, on the monotonic clock; None for an interrupted commit.
    """

    client: CommitCalls
    table: TableInfo
    staging: StagingFolder
    intent: Intent
    lease: Lease
    began_s: float | None = None

    def finish(
        self,
        inventory: LocalInventory | None = None,
        on_moved: Callable[[int, int], None] | None = None,
    ) -> PublishedSnapshot | None:
        """Move files in, publish, tidy up; return the snapshot, or None if published before.

        Args:
            inventory: Inventory of the new files, if it is at hand.
            on_moved: See `TableWrite.commit`.
        """
        moving = Moving(self.staging.location, self.staging.path, self.intent)
        done = 0

        def count(number: int) -> None:
            nonlocal done
            self.lease.check()
            done = number
            if on_moved is not None:
                on_moved(done, len(self.intent.partitions))

        try:
            # After a pause of any length, another process may have finished or undone the write.
            self.lease.tell("committing")
            moving.move_in(count)
            snapshot, refusal = self._publish(inventory)
            # Before the record ends, as nobody looks into the folder of a write that has ended.
            moving.finish()
            self.lease.tell("published", report=self._report())
        except NotFoundError:
            raise
        except (OSError, WindrowError) as error:
            if isinstance(error, WriteLostError) and self._is_undone():
                raise
            reason = why_unwritable(error) if isinstance(error, OSError) else str(error)
            raise CommitInterruptedError(
                self.table.name, self.intent.write_id, done, len(self.intent.partitions), reason
            ) from error
        self.staging.remove()
        if refusal is not None:
            raise UnpublishedError(self.table.name, self.intent.write_id, str(refusal)) from refusal
        return snapshot

    def _is_undone(self) -> bool:
        """Whether the coordinator is known to have recorded that nothing will be moved."""
        try:
            record = self.client.write_record(self.table.name, self.intent.write_id)
        except WindrowError:
            return False
        return record.state == "undone"

    def _report(self) -> WriteReport:
        report = self.intent.report
        if self.began_s is None:
            return report
        return report.model_copy(update={"commit_seconds": time.monotonic() - self.began_s})

    def _publish(
        self, inventory: LocalInventory | None
    ) -> tuple[PublishedSnapshot | None, Exception | None]:
        """Publish; return the snapshot, or the error if the coordinator refuses for good."""
        if self.lease.tell("committing").snapshot_id is not None:
            return None, None
        if not self.intent.whole:
            try:
                return self._publish_change(inventory), None
            except (InventoryError, ProblemError) as error:
                if not _is_refusal(error):
                    raise
        try:
            return self._publish_all(), None
        except (InventoryError, ProblemError) as error:
            if not _is_refusal(error):
                raise
            return None, error

    def _publish_change(self, inventory: LocalInventory | None) -> PublishedSnapshot:
        if inventory is None:
            paths = self.intent.added()
            listing = stat_local(self.staging.location, paths)
            partitions = partition_names(self.table, self.intent.mode, paths)
            inventory = take_local(
                self.staging.location, listing, partitions, declared_names(self.table)
            )
        return self.client.publish_delta(
            self.table.name,
            added=with_known_stats(self.table, inventory),
            removed=self.intent.gone(),
            write_id=self.intent.write_id,
        )

    def _publish_all(self) -> PublishedSnapshot:
        location = self.staging.location
        if self.intent.mode == "overwrite":
            listing = stat_local(location, self.intent.added())
        else:
            listing = list_local(location)
        partitions = partition_names(self.table, self.intent.mode, listing["path"].to_pylist())
        inventory = take_local(location, listing, partitions, declared_names(self.table))
        files, columns = inventory.files, self.table.definition.columns
        if columns is not None or not len(files):
            # The columns stay as they are.
            files = in_types_of(columns or (), inventory)
        return self.client.publish(self.table.name, files, write_id=self.intent.write_id)


def _is_refusal(error: Exception) -> bool:
    """Tell whether the coordinator would refuse the same request again."""
    if isinstance(error, WriteLostError | WriteInProgressError):
        return False
    return isinstance(error, InventoryError | InvalidRequestError) or (
        isinstance(error, ProblemError) and error.problem.status == _CONFLICT
    )


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
            if (status.st_size, status.st_mtime_ns) == state:
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


def _is_unchanged(entry: os.DirEntry[str], state: tuple[int, int] | None) -> bool:
    if state is None:
        return False
    status = entry.stat(follow_symlinks=False)
    return (status.st_size, status.st_mtime_ns) == state
