"""Snapshots and their manifests, where they are kept, and what refreshes and publishes need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

import pyarrow as pa

from windrow.models import (
    LogFigures,
    RefreshProgress,
    RefreshStatus,
    SnapshotInfo,
    TableDefinition,
)
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Once
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One immutable version of a table.

    Attributes:
        info: What callers see.
        data_schema: Columns that are stored in the files.
        partition_schema: Partition columns, typed.
        bloom_columns: Columns for which the manifests have Bloom filters.
        manifests: In the order of their first paths.
        ranges: Ranges of the columns of each manifest, as in `planner.pruning.ranges`.
        delete_files: `DELETE_FILES` of a transactional table whose rows can be deleted; else None.
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
    """What is published as a table's next snapshot.

    Attributes:
        data_schema: Columns that are stored in the files.
        partition_schema: Partition columns, typed.
        bloom_columns: Columns for which the manifests have Bloom filters.
        manifests: All of them; unchanged ones come without their rows.
        ranges: Ranges of the columns of each manifest, as in `planner.pruning.ranges`.
        file_count: Files in all manifests.
        row_count: Rows in all files; None if those of a file are not known.
        size_bytes: Bytes in all files.
        file_sizes: How many files have a size of each number of bits; None if not known.
        files_added: Number of files that are new or changed since the previous snapshot.
        files_removed: Number of files that are gone or changed since the previous snapshot.
        listing: State of folders and files, for the next listing; None if nothing was listed.
        delete_files: As of `Snapshot`.
        valid_write_ids: The write ids that were given; None if there were none.
        table_version: What the table's own log calls this version; None if it has no log.
        log: What the log says.
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


class SnapshotStore(Protocol):
    """Snapshots and their manifests."""

    async def get(
        self, table: str, snapshot_id: int | None, version: str | None = None
    ) -> tuple[StoredTable, Snapshot]:
        """Return a table and a snapshot of it, the current one by default.

        Args:
            table: The table.
            snapshot_id: The snapshot.
            version: Instead of it, a version in the table's own log, as a refresh was asked for it
                or found it; the newest snapshot of it.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The table does not have this one.
            VersionNotKnownError: The table has no snapshot of the version.
        """

    async def page(self, table: str, before: int, limit: int) -> Sequence[SnapshotInfo]:
        """Return at most `limit` snapshots with ids under `before`, newest first.

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
        """Return the state of folders and files at the table's last listing, if there was one.

        And whether that listing found the files of the current snapshot.
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
            table: As it was when the inventory began.
            inventory: All of its files.
            checked_at: When the listing of the files began; None if they were not listed.
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
        """Keep an inventory as a snapshot of the table beside the current one, which stays.

        Args:
            table: As it was when the inventory began.
            inventory: All files of the version.
            version: As it was asked for: it finds the snapshot, and so does the version itself.

        Raises:
            TableNotFoundError: The table was deleted meanwhile.
            TableChangedError: The definition or the current snapshot changed meanwhile.
        """

    async def confirm(
        self, table: StoredTable, checked_at: datetime, listing: bytes | None
    ) -> None:
        """Record that the current snapshot still agreed with the files at `checked_at`.

        Raises:
            TableChangedError: The definition or the current snapshot changed meanwhile.
            WriteInProgressError: A write is moving files in.
        """


class SnapshotKeeping(Protocol):
    """How long snapshots are kept."""

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

        The current one stays, and those to which an unexpired plan is pinned.

        Args:
            table: Whose snapshots; None for those of every table.
            keep_last: How many of each table's newest stay, at least 1.
            max_count: The most that stay, however new they are.
            created_before: Newer ones stay, within `max_count`.
            now: The time.
            once: The caller's key.
        """

    async def collect(self, limit: int) -> int:
        """Drop at most `limit` manifests that are in no snapshot; return how many.

        Publishers may run meanwhile: a manifest that one is about to use stays.
        """


class Inventories(Protocol):
    """The files of tables. Blocking: call it off the event loop."""

    def take(
        self,
        definition: TableDefinition,
        previous: Snapshot | None,
        previous_bodies: Sequence[bytes],
        listing: bytes | None,
        full: bool,
        on_progress: Callable[[RefreshProgress], None],
        cancelled: threading.Event,
        write_ids: str | None = None,
        partitions: bytes | None = None,
        version: str | None = None,
    ) -> NextSnapshot:
        """List a table's files and read the footers of those that changed.

        `listing` is the state of folders and files at the last listing; None if there was none.
        Unless `full`, that listing was for the previous snapshot, and only folders that changed
        since are listed. `cancelled` may be set from another thread, to stop. `write_ids` are
        those that a reader of a transactional table sees; None for all. `partitions` are those that
        a catalog lists, as `PartitionListStore` has them; None for those of the folders. `version`
        is one that a table's own log tells; None for the newest.

        Raises:
            windrow_service.inventory.errors.InventoryError: The files are not a table that
                can be read; nothing may be published.
        """


class WriteCommits(Protocol):
    """Which writes change a table's files."""

    async def refuse_while_committing(self, table: str) -> None:
        """Make sure that no write is moving files into a table now.

        Raises:
            WriteInProgressError: One is.
        """

    async def last_committed_at(self, table_id: int) -> datetime | None:
        """Return when the last write that moved files into a table ended; None if there was none."""


class Turns(Protocol):
    """Lets callers that want the same thing have it one after another."""

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
        full: Whether every folder is listed, not only those that changed.
        lease_until: When it may be presumed abandoned; None once it has ended.
        status: What callers see, as its runner last wrote it.
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
        """Begin a refresh unless one of the table is running; return the running one.

        Args:
            status: Of the new refresh; `refresh_id` tells whether it began.
            full: Whether it lists every folder.
            now: The time; a refresh whose lease has expired is abandoned.
            lease_until: Of the new refresh.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def renew(self, table_id: int, status: RefreshStatus, lease_until: datetime) -> Standing:
        """Renew the lease of a refresh and record its progress, unless it is lost."""

    async def finish(self, table_id: int, status: RefreshStatus) -> bool:
        """Record how a refresh ended; tell whether it was neither lost nor ended before."""

    async def get(self, table: str) -> RefreshRecord:
        """Return the running refresh of a table, or the last one.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotFoundError: It has never been refreshed.
        """

    async def recent(self, limit: int, among: Names) -> Sequence[RefreshRecord]:
        """Return the last refresh of at most `limit` of some tables: running ones, then the latest."""

    async def cancel(self, table: str, now: datetime) -> RefreshRecord:
        """Ask the running refresh to stop.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotRunningError: None is running.
        """
