"""Snapshots and their manifests, and the ports for storing, refreshing and publishing them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

import pyarrow as pa

from windrow_core.models import (
    LogFigures,
    RefreshProgress,
    RefreshStatus,
    SnapshotInfo,
    TableDefinition,
)
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Once, Page
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One immutable version of a table.

    Attributes:
        info: The snapshot as callers see it.
        data_schema: Columns that are stored in the files.
        partition_schema: Partition columns, typed.
        bloom_columns: Columns for which the manifests have Bloom filters.
        manifests: Its manifests, in the order of their first paths.
        ranges: Ranges of the columns of each manifest, as in `planner.pruning.ranges`.
        delete_files: Delete files (schema `DELETE_FILES`) of a transactional table whose rows can
            be deleted; else None.
    """

    info: SnapshotInfo
    data_schema: pa.Schema
    partition_schema: pa.Schema
    bloom_columns: tuple[str, ...] = ()
    manifests: tuple[Manifest, ...]
    ranges: pa.Table
    delete_files: pa.Table | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSnapshot:
    """The next snapshot of a table, about to be published.

    Attributes:
        data_schema: Columns that are stored in the files.
        partition_schema: Partition columns, typed.
        bloom_columns: Columns for which the manifests have Bloom filters.
        manifests: All its manifests; unchanged ones come without their rows.
        ranges: Ranges of the columns of each manifest, as in `planner.pruning.ranges`.
        file_count: Files in all manifests.
        row_count: Rows in all files; None if the number of rows of some file is not known.
        size_bytes: Bytes in all files.
        file_sizes: Number of files by how many bits their size has; None if not known.
        fewest_files: As in `SnapshotInfo`.
        files_added: Number of files that are new or changed since the previous snapshot.
        files_removed: Number of files that are gone or changed since the previous snapshot.
        listing: State of folders and files, for the next listing; None if nothing was listed.
        delete_files: As in `Snapshot`.
        valid_write_ids: The write ids that the refresh was given; None if it was given none.
        table_version: Name of this version in the table's own log; None if it has no log.
        log: Figures from the log; None if it has no log.
    """

    data_schema: pa.Schema
    partition_schema: pa.Schema
    bloom_columns: tuple[str, ...] = ()
    manifests: tuple[Manifest, ...]
    ranges: pa.Table
    file_count: int
    row_count: int | None
    size_bytes: int
    files_added: int
    files_removed: int
    listing: bytes | None = None
    delete_files: pa.Table | None = None
    valid_write_ids: str | None = None
    table_version: str | None = None
    log: LogFigures | None = None
    file_sizes: tuple[int, ...] | None = None
    fewest_files: int | None = None

    def new_manifests(self, previous: Snapshot | None) -> list[Manifest]:
        """Return the manifests that the previous snapshot does not have."""
        ids = {manifest.manifest_id for manifest in previous.manifests} if previous else ()
        return [manifest for manifest in self.manifests if manifest.manifest_id not in ids]


class SnapshotStore(Protocol):
    """Snapshots and their manifests."""

    async def get(
        self, table: str, snapshot_id: int | None, version: str | None = None
    ) -> tuple[StoredTable, Snapshot]:
        """Return a table and a snapshot of it, the current one by default.

        Args:
            table: The table.
            snapshot_id: Id of the snapshot.
            version: Used instead of `snapshot_id`: a version in the table's own log, by the name in
                the log or the name that a refresh asked for. Its newest snapshot is returned.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The table does not have this snapshot.
            VersionNotKnownError: The table has no snapshot of the version.
        """

    async def page(self, table: str, before: int, limit: int) -> Page[SnapshotInfo]:
        """Return at most `limit` snapshots with ids under `before`, newest first.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def newest(self, table: str, limit: int) -> Sequence[SnapshotInfo]:
        """Return at most `limit` snapshots without their columns, newest first.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def bodies(
        self, table: str, snapshot: Snapshot, manifests: Sequence[Manifest]
    ) -> list[bytes]:
        """Return the encoded rows of some of a snapshot's manifests, in the order given.

        Raises:
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
        """

    async def listing(self, table: StoredTable) -> tuple[bytes | None, bool]:
        """Return the state of folders and files at the table's last listing; None without one.

        The second value tells whether that listing found the files of the current snapshot.
        """

    async def publish(
        self,
        table: StoredTable,
        inventory: NextSnapshot,
        checked_at: datetime | None,
        once: Once | None = None,
        write_id: str | None = None,
    ) -> StoredTable:
        """Make an inventory the table's current snapshot, completely or not at all.

        Args:
            table: The table as it was when the inventory began.
            inventory: The snapshot to publish.
            checked_at: When the files were last compared; None if they never were.
            once: The caller's key.
            write_id: The write that moved the files in.

        Raises:
            TableNotFoundError: The table was deleted meanwhile.
            TableChangedError: The definition or the current snapshot changed meanwhile.
            WriteInProgressError: Another write is moving files in.
            WriteNotFoundError: The table has no such write.
            WriteStateError: The write is not moving files in.
        """

    async def publish_beside(
        self, table: StoredTable, inventory: NextSnapshot, version: str
    ) -> SnapshotInfo:
        """Store an inventory as a snapshot of the table, without making it the current one.

        Args:
            table: The table as it was when the inventory began.
            inventory: The snapshot to store.
            version: The version's name in the request; `get` finds the snapshot by this name and
                by the name in the log.

        Raises:
            TableNotFoundError: The table was deleted meanwhile.
            TableChangedError: The definition or the current snapshot changed meanwhile.
        """

    async def confirm(
        self, table: StoredTable, checked_at: datetime | None, listing: bytes | None
    ) -> None:
        """Record that the current snapshot still agreed with the files at `checked_at`.

        Raises:
            TableChangedError: The definition or the current snapshot changed meanwhile.
            WriteInProgressError: A write is moving files in.
        """


class SnapshotKeeping(Protocol):
    """Drops old snapshots, and manifests that are in no snapshot."""

    async def expire(
        self,
        table: StoredTable | None,
        *,
        keep_last: int,
        max_count: int,
        created_before: datetime,
        now: datetime,
        once: Once | None = None,
    ) -> Sequence[int]:
        """Drop old snapshots; return their ids, ascending, one table after another.

        The current snapshot stays, and so do those to which an unexpired plan is pinned.

        Args:
            table: The table whose snapshots are dropped; None for every table.
            keep_last: How many of each table's newest snapshots stay, at least 1.
            max_count: Most snapshots of a table that stay, however new they are.
            created_before: Snapshots made from this time on stay, within `max_count`.
            now: The time.
            once: The caller's key.
        """

    async def collect(self, limit: int) -> int:
        """Drop at most `limit` manifests that are in no snapshot; return how many.

        Others may publish meanwhile: a manifest that they are about to use stays.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryRequest:
    """What an inventory is taken of, and what is known from the previous one.

    Attributes:
        definition: Definition of the table.
        previous: The current snapshot; None if there is none.
        previous_bodies: The encoded rows of its manifests.
        listing: State of folders and files at the last listing; None if there was none.
        full: Whether to list every folder, also of a table that trusts the times of folders.
            Otherwise `listing` must belong to `previous`.
        on_progress: Called as the work progresses.
        cancelled: May be set from another thread, to stop.
        write_ids: Write ids that a reader of a transactional table sees; None for all.
        partitions: The table's list of partitions, as `PartitionListStore` stores it; None if
            its partitions are its folders.
        version: A version in the table's own log; None for the newest.
    """

    definition: TableDefinition
    previous: Snapshot | None
    previous_bodies: Sequence[bytes]
    listing: bytes | None
    full: bool
    on_progress: Callable[[RefreshProgress], None]
    cancelled: threading.Event
    write_ids: str | None = None
    partitions: bytes | None = None
    version: str | None = None


class Inventories(Protocol):
    """Takes inventories of tables. Blocking: call it off the event loop."""

    def take(self, request: InventoryRequest) -> NextSnapshot:
        """List a table's files and read the footers of those that changed.

        Raises:
            windrow_service.inventory.errors.InventoryError: The files are not a table that
                can be read; nothing may be published.
        """


class WriteCommits(Protocol):
    """Tells which writes move files into a table, when they ended, and what they published."""

    async def refuse_while_committing(self, table: str) -> None:
        """Make sure that no write is moving files into a table now.

        Raises:
            WriteInProgressError: A write is moving files in.
        """

    async def last_committed_at(self, table_id: int) -> datetime | None:
        """Return when the last write that moved files into a table ended; None if there was none."""

    async def compactions(self, table: str, since: int) -> Sequence[int]:
        """Return the snapshots after one that compactions published, ascending.

        Raises:
            TableNotFoundError: No table has this name.
        """


class Turns(Protocol):
    """Lets callers take turns at the same thing, one after another."""

    def take(self, name: str) -> AbstractAsyncContextManager[None]:
        """Wait for a turn, and keep it until the end of the block.

        Raises:
            BusyError: Too many are waiting already.
        """


# Whether a running refresh is still wanted; "lost": another runner took it over.
Standing = Literal["wanted", "cancelled", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRecord:
    """The running refresh of a table, or the last one.

    Attributes:
        table_id: The table's number.
        full: Whether every folder is listed, also if the table trusts the times of folders.
        lease_until: When it may be presumed abandoned; None once it has ended.
        status: Its status as callers see it, last written by its runner.
        previous: How the previous refresh ended; None if there was none, or it did not end.
    """

    table_id: int
    full: bool
    lease_until: datetime | None
    status: RefreshStatus
    previous: RefreshStatus | None = None


class RefreshStore(Protocol):
    """The refresh of each table, whichever replica runs it."""

    async def begin(
        self, status: RefreshStatus, *, full: bool, now: datetime, lease_until: datetime
    ) -> RefreshRecord:
        """Begin a refresh unless the table has a running one; return the one that runs.

        Args:
            status: Status of the new refresh; if it began, the result has its `refresh_id`.
            full: Whether it lists every folder.
            now: The time; a refresh whose lease has expired is abandoned.
            lease_until: Lease of the new refresh.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def renew(self, table_id: int, status: RefreshStatus, lease_until: datetime) -> Standing:
        """Renew the lease of a refresh and record its progress, unless it is lost."""

    async def finish(self, table_id: int, status: RefreshStatus) -> bool:
        """Record how a refresh ended; return False if it was lost or had ended before."""

    async def get(self, table: str) -> RefreshRecord:
        """Return the running refresh of a table, or the last one.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotFoundError: The table has never been refreshed.
        """

    async def recent(
        self, limit: int, among: Names, failed_by: datetime | None = None
    ) -> Sequence[RefreshRecord]:
        """Return the last refreshes of at most `limit` tables: running ones, then the latest.

        Args:
            limit: Most refreshes to return.
            among: The tables.
            failed_by: Only refreshes that have failed, or whose runner is presumed dead at this
                time.
        """

    async def cancel(self, table: str, now: datetime) -> RefreshRecord:
        """Ask the running refresh to stop.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotRunningError: No refresh of the table is running.
        """
