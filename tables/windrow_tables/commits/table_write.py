"""One write to a table: stage files, then commit or undo them."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Literal, get_args

import pyarrow as pa

from windrow_calls.errors import NotFoundError, WindrowError, WriteInProgressError, WriteLostError
from windrow_core.files.access import why_unwritable
from windrow_core.files.errors import InventoryError
from windrow_core.files.listing import listed_of
from windrow_core.files.roots.stores import MAX_COPIED_BYTES
from windrow_core.files.schema import merge_schemas
from windrow_core.files.schemes import is_object, is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import path_in
from windrow_core.models import (
    PublishedSnapshot,
    StreamBatch,
    TableInfo,
    WriteConflict,
    WriteKind,
    WriteMode,
    WriteReport,
)
from windrow_core.sizes import size_text
from windrow_tables.commits.calls import CommitCalls
from windrow_tables.commits.committing import Commit
from windrow_tables.commits.errors import (
    CommitBlockedError,
    CommitInterruptedError,
    DefinitionChangedError,
    StagedFilesError,
    UnfitLocationError,
    WriteConflictError,
)
from windrow_tables.commits.intents import Intent, PartitionChange
from windrow_tables.commits.inventories import FileInventory, list_files, take_inventory
from windrow_tables.commits.leases import Lease
from windrow_tables.commits.locations import (
    owner_of,
    require_plain,
    staging_folder,
    writable_location,
)
from windrow_tables.commits.preparation import Preparation, Replaced, replaced_files
from windrow_tables.commits.recovery import recover
from windrow_tables.commits.spellings import Spellings
from windrow_tables.commits.staging import Claim, Staging
from windrow_tables.commits.table_layout import (
    check_layout,
    check_values,
    declared_names,
    is_a_change,
    partition_names,
    types_of_partitions,
)

_LEASE_S = 30
_WAIT_S = 60.0
_POLL_S = (0.1, 0.5)
_SHARED = "another table, or another coordinator, has a commit to the same folder: write again"


def begin(
    client: CommitCalls,
    table: str | TableInfo,
    mode: WriteMode = "append",
    kind: WriteKind = "write",
    *,
    conflict: WriteConflict = "fail",
    replace: Mapping[str, str | None] | None = None,
    batch: StreamBatch | None = None,
    lists_partitions: bool = False,
    lease_seconds: int = _LEASE_S,
    wait_seconds: float = _WAIT_S,
) -> TableWrite:
    """Recover the dead writes of a table, then begin a write to it.

    Args:
        client: Client of the coordinator that knows the table.
        table: Name of the table, or the table as it has just been read.
        mode: `append`; `overwrite`, which replaces all rows; or `overwrite_partitions`, which
            replaces the rows of partitions that get new ones.
        kind: What the write is for.
        conflict: What happens to files that others publish after this call and that the mode would
            remove: `fail` refuses the commit, `overwrite` removes them.
        replace: Values of partition columns: mode `overwrite_partitions` then replaces all rows with
            these values, those of partitions without new rows too. A text is not escaped; None is
            null; without any value, all rows are replaced.
        batch: The batches of a stream that the write contains; they are recorded when the write is
            published, and the commit is refused if they do not follow those that are recorded.
        lists_partitions: Whether the caller gives a catalog, and the table's list, the partitions of
            new files before the commit; without that, a table with a list is refused.
        lease_seconds: Time without a renewal after which the coordinator presumes this process
            dead.
        wait_seconds: How long the commit waits for another commit.

    Raises:
        UnfitLocationError: The table cannot be written where it lies.
        UnknownCommitError: The coordinator does not know an interrupted commit.
        CommitBlockedError: An interrupted commit cannot be finished.
        ProblemError: The coordinator refuses.
    """
    if conflict not in get_args(WriteConflict):
        raise ValueError(f"conflict must be 'fail' or 'overwrite', not {conflict!r}")
    info = table if isinstance(table, TableInfo) else client.table(table)
    location = writable_location(info)
    is_listed = info.definition.listed_partitions or info.partition_count is not None
    if is_listed and kind != "compaction" and not lists_partitions:
        raise UnfitLocationError(
            info.name,
            location,
            "a catalog lists its partitions, and would not know of new ones: write with INSERT and "
            "windrow.accelerate(…, writes=True), or with Spark's own writer and then run `windrow "
            "table sync`",
        )
    require_plain(info.name, location)
    if _recover_others(client, info):
        # Files that the recovery published are older than this write.
        info = client.table(info.name)
    staging = staging_folder(location, uuid.uuid4().hex)
    lock = staging.make(info.name, owner_of(info))
    lease = Lease(client, info.name, staging.write_id, kind, mode, lease_seconds, batch)
    write = TableWrite(
        client, info, staging, lock, lease, mode, kind, conflict, replace, batch, wait_seconds
    )
    try:
        lease.tell("staging")
    except KeyboardInterrupt:
        # The coordinator may know of it by now.
        write.undo()
        raise KeyboardInterrupt(write.remains()) from None
    except BaseException:
        staging.remove()
        lock.release()
        raise
    lease.keep()
    return write


class TableWrite:
    """A write to a table. Use it as a context manager: it is undone unless it is committed.

    Made by `begin`.

    Attributes:
        write_id: Id of the write at the coordinator.
        table: The table as it was at the beginning.
        folder: Absolute path, or URI, that data files are written below, in partition folders as in
            the table.
    """

    def __init__(
        self,
        client: CommitCalls,
        table: TableInfo,
        staging: Staging,
        lock: Claim,
        lease: Lease,
        mode: WriteMode,
        kind: WriteKind,
        conflict: WriteConflict,
        replace: Mapping[str, str | None] | None,
        batch: StreamBatch | None,
        wait_s: float,
    ) -> None:
        self.write_id = staging.write_id
        self.table = table
        self.folder = staging.data
        self._client = client
        self._staging = staging
        self._lock = lock
        self._lease = lease
        self._mode = mode
        self._kind = kind
        self._conflict = conflict
        self._replace = replace
        self._batch = batch
        self._wait_s = wait_s
        self._phase: Literal["staging", "moving", "over"] = "staging"
        self._inspection: tuple[pa.Table, FileInventory] | None = None
        self._snapshot: PublishedSnapshot | None = None
        self._turn: Claim | None = None

    def __enter__(self) -> TableWrite:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()
        if isinstance(exc, KeyboardInterrupt):
            raise KeyboardInterrupt(self.remains()) from None

    def check(self) -> None:
        """Raise an error if the write is known to be lost.

        Raises:
            WriteLostError: The coordinator presumed this process dead, and another process finished
                or undid the write.
            NotFoundError: The table has been deleted.
        """
        self._lease.check()

    def inventory(self) -> FileInventory:
        """Return the staged files, after syncing them and reading their footers.

        Later calls do so again only if the files have changed.
        """
        try:
            listing = list_files(self._staging.data)
        except InventoryError as error:
            raise StagedFilesError(self.table.name, self._staging.data, str(error)) from error
        if self._inspection is None or not self._inspection[0].equals(listing):
            paths = listing["path"].to_pylist()
            with self._staging.syncing(paths):
                footers = self._footers(self._staging.data, listing, paths)
            self._inspection = listing, footers
        return self._inspection[1]

    def undo(self) -> None:
        """Remove the staged files; a write that has ended, or is being moved in, stays as it is."""
        self._lease.end()
        if self._phase == "staging":
            self._phase = "over"
            self._end_staging()
        if self._turn is not None:
            self._turn.release()
        self._lock.release()

    def remains(self) -> str:
        """Return a sentence that says what a write that was stopped has left."""
        name = self.table.name
        if self._snapshot is not None:
            return (
                f"the write to {name!r} was stopped when its rows were already in the table: "
                f"snapshot {self._snapshot.snapshot_id} has them"
            )
        if self._phase == "moving":
            return (
                f"the write to {name!r} was stopped while its files were moved into the table: the "
                f"next write to it finishes this one, or `windrow write recover {name}`"
            )
        return f"the write to {name!r} was stopped, and nothing of it is in the table"

    def _end_staging(self) -> None:
        """Tell the coordinator that nothing will be moved in, and remove the staged files."""
        try:
            self._lease.tell("undone")
        except (WriteLostError, NotFoundError):
            pass
        except WindrowError:
            # The coordinator may believe that files are being moved in. The next writer tells it,
            # given a folder that shows that none have been.
            with suppress(OSError):
                self._staging.forget()
                self._staging.clear()
            return
        self._staging.remove()

    def commit(
        self,
        report: WriteReport,
        replaces: Replaced | None = None,
        on_moved: Callable[[int, int], None] | None = None,
    ) -> PublishedSnapshot:
        """Move the staged files in and publish them; a failure before that leaves nothing behind.

        Args:
            report: The planned and the actual outcome of the write; the duration of the commit is
                filled in.
            replaces: Files that the new ones replace: paths relative to the location; or a table of
                `path`, `size_bytes` and `mtime_ns`, as they were when they were read. These files
                must not have changed since. Only for mode `append`.
            on_moved: Called with the number of partitions moved in, and their total number.

        Raises:
            StagedFilesError: The staged files do not fit the table.
            PartitionChangedError: A file of `replaces` has changed.
            WriteConflictError: The commit would remove files that others have published since
                `begin`.
            DefinitionChangedError: The table's definition has changed.
            UnfitLocationError: A partition's folder cannot be exchanged.
            CommitBlockedError: Another commit takes too long, or cannot be finished.
            BatchOrderError: The stream has published other batches.
            CommitInterruptedError: The commit stopped halfway.
            UnpublishedError: All files were moved in, but the coordinator refuses the inventory.
            WriteLostError: See `check`.
            ProblemError: The coordinator refuses.
        """
        began_s = time.monotonic()
        try:
            table, intent, inventory = self._prepare(report, replaced_files(replaces))
            self._staging.record(intent)
        except OSError as error:
            # The folder of a write that another process has undone is gone.
            self._lease.renew()
            self.undo()
            self._lease.check()
            location = self._staging.location
            raise UnfitLocationError(self.table.name, location, why_unwritable(error)) from error
        except BaseException:
            self.undo()
            raise
        self._phase = "moving"
        try:
            commit = Commit(self._client, table, self._staging, intent, self._lease, began_s)
            snapshot = commit.finish(inventory, on_moved)
            self._phase, self._snapshot = "over", snapshot
        finally:
            # A half-done commit is left to the next writer, who finds the lock free.
            self.undo()
        assert snapshot is not None
        return snapshot

    def _prepare(
        self, report: WriteReport, old_files: Mapping[str, FileStatus | None]
    ) -> tuple[TableInfo, Intent, FileInventory]:
        """Do everything that may fail, wait for this write's turn, and return its intent."""
        if old_files and self._mode != "append":
            raise ValueError(
                f"mode {self._mode} itself decides which files are replaced: leave out `replaces`"
            )
        inventory = self.inventory()
        self._refuse_large(inventory)
        paths = inventory.files["path"].to_pylist()
        self._admit()
        # A table may be converted in place, to one of Delta for example, while a write stages files.
        require_plain(self.table.name, self._staging.location)
        table = self._client.table(self.table.name)
        if table.definition != self.table.definition:
            raise DefinitionChangedError(table.name)
        whole = not is_a_change(table, self._mode, inventory)
        if whole and self._mode != "overwrite":
            self._check_compatible(inventory, paths)
        members = self._listed_folders(table)
        spellings = self._spellings(table, paths, members)
        homes = {} if spellings is None else spellings.homes(map(_folder_of, paths))
        region = self._region(spellings, paths)
        new_paths = self._staging.settle(paths, homes)
        paths = [new_paths.get(path, path) for path in paths]
        inventory = inventory.moved(new_paths)
        location = self._staging.location
        preparation = Preparation(table, location, self._staging.data, self._mode)
        changes = preparation.changes(paths, old_files, homes.values(), region)
        if self._mode != "append" and self._conflict == "fail":
            self._refuse_conflicts(table, changes)
        if members is not None:
            self._refuse_unlisted(members, changes)
        self._staging.sync(changes)
        intent = Intent(
            write_id=self.write_id,
            table=table.name,
            kind=self._kind,
            mode=self._mode,
            whole=whole,
            partitions=tuple(changes),
            report=report,
            batch=self._batch,
            sources={new: old for old, new in new_paths.items()} if is_remote(location) else {},
        )
        return table, intent, inventory

    def _footers(self, folder: str, listing: pa.Table, new_paths: Sequence[str]) -> FileInventory:
        partitions = partition_names(self.table, self._mode, new_paths)
        paths = listing["path"].to_pylist()
        check_layout(self.table, paths, partitions)
        check_values(self.table, self._mode, paths, partitions)
        try:
            return take_inventory(folder, listing, partitions, declared_names(self.table))
        except InventoryError as error:
            raise StagedFilesError(self.table.name, folder, str(error)) from error

    def _refuse_large(self, inventory: FileInventory) -> None:
        """Make sure that an object store can copy the new files."""
        if not is_object(self._staging.location):
            return
        for path, status in zip(*listed_of(inventory.files), strict=True):
            if status.size_bytes > MAX_COPIED_BYTES:
                reason = (
                    f"it has {size_text(status.size_bytes)}, and the store copies files up to "
                    f"{size_text(MAX_COPIED_BYTES)}: write smaller files"
                )
                raise StagedFilesError(self.table.name, path, reason)

    def _check_compatible(self, inventory: FileInventory, new_paths: Sequence[str]) -> None:
        """Make sure that the table can still be read with the new files in it."""
        listing = list_files(self._staging.location)
        present = self._footers(self._staging.location, listing, new_paths)
        partitions = partition_names(self.table, self._mode, new_paths)
        try:
            merge_schemas([present.data, inventory.data], partitions)
        except InventoryError as error:
            raise StagedFilesError(self.table.name, self._staging.data, str(error)) from error

    def _spellings(
        self, table: TableInfo, paths: Sequence[str], members: Collection[str] | None
    ) -> Spellings | None:
        """Return what tells the folders of values, in the table as it is now; None if not needed."""
        location = self._staging.location
        names = partition_names(self.table, self._mode, paths)
        if self._replace is None and not (names and paths):
            return None
        types = types_of_partitions(table, self._mode, location, paths, names)
        return Spellings(location, names, types, members)

    def _region(self, spellings: Spellings | None, paths: Sequence[str]) -> list[str]:
        """Return the folders of the table that are replaced whether or not they get new files."""
        if self._replace is None or spellings is None:
            return []
        outside = spellings.folder_without(self._replace, set(map(_folder_of, paths)))
        if outside is not None:
            reason = f"its rows are not among those that are replaced, {self._replace}"
            raise StagedFilesError(self.table.name, outside, reason)
        return spellings.folders_with(self._replace)

    def _listed_folders(self, table: TableInfo) -> set[str] | None:
        """Return the folders in the table's list, which cannot change during a commit."""
        if table.partition_count is None:
            return None
        locations = (one.location for one in self._client.partitions(table.name))
        return {path_in(self._staging.location, location) for location in locations}

    def _refuse_unlisted(
        self, members: Collection[str], changes: Sequence[PartitionChange]
    ) -> None:
        """Make sure that the table's list has the partitions."""
        for change in changes:
            if change.folder not in members:
                reason = "no partition of the table's list has this folder now: try again"
                raise StagedFilesError(self.table.name, change.folder, reason)

    def _refuse_conflicts(self, table: TableInfo, changes: Sequence[PartitionChange]) -> None:
        """Make sure that the write removes nothing that others have published since it began."""
        since, now = self.table.current_snapshot, table.current_snapshot
        if now is None or (since is not None and since.snapshot_id == now.snapshot_id):
            return
        going = {change.folder for change in changes if change.loses_data}
        if not going:
            return
        reason = "others published"
        try:
            gains = self._client.gained_files(
                table.name, None if since is None else since.snapshot_id
            )
            conflicts = going & set(gains.folders)
            if not (gains.complete or conflicts):
                conflicts, reason = going, "others may have published"
        except NotFoundError:
            # The snapshot of the beginning is no longer kept, so conflicts cannot be ruled out.
            conflicts, reason = going, "others may have published"
        if conflicts:
            raise WriteConflictError(table.name, self._mode, tuple(sorted(conflicts)), reason)

    def _admit(self) -> None:
        """Wait until no other write is moving files in, and keep others from starting."""
        began_s = time.monotonic()
        while True:
            reason = _SHARED
            try:
                self._lease.tell("committing")
                self._turn = self._staging.take_turn()
                if self._turn is not None:
                    return
            except WriteInProgressError as error:
                reason = str(error)
            waited_s = time.monotonic() - began_s
            if waited_s > self._wait_s:
                raise CommitBlockedError(self.table.name, waited_s, reason)
            time.sleep(random.uniform(*_POLL_S))
            # The other write may be dead.
            _recover_others(self._client, self._client.table(self.table.name), waited_s)


def _recover_others(client: CommitCalls, table: TableInfo, waited_s: float = 0.0) -> bool:
    """Recover dead writes before this one goes on; return whether files were published."""
    try:
        return any(one.outcome == "published" for one in recover(client, table))
    except CommitInterruptedError as error:
        # Of another write: whoever gets this error must not take its own rows for written.
        raise CommitBlockedError(table.name, waited_s, str(error)) from error


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]
