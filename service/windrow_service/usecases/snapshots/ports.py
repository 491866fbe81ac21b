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
    RefreshProgress,
    RefreshStatus,
    SnapshotInfo,
    TableDefinition,
)
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.usecases.ports import Once
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One immutable version of a table.

    Attributes:
        info: What callers see.
        data_schema: Columns that are stored in the files.
        partition_schema: Partition columns, typed.
        bloom_columns: Columns that the manifests have Bloom filters of.
        manifests: In the order of their first paths.
        ranges: What is known of the columns of each, as `planner.ranges` says.
    """

    info: SnapshotInfo
    data_schema: pa.Schema
    partition_schema: pa.Schema
    bloom_columns: tuple[str, ...] = ()
    manifests: tuple[Manifest, ...]
    ranges: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSnapshot:
    """What is published as a table's next snapshot.

    Attributes:
        data_schema: Columns that are stored in the files.
        partition_schema: Partition columns, typed.
        bloom_columns: Columns that the manifests have Bloom filters of.
        manifests: All of them; those that did not change come without a body.
        ranges: What is known of the columns of each, as `planner.ranges` says.
        file_count: Files in all manifests.
        row_count: Rows in all files.
        size_bytes: Bytes in all files.
        files_added: New or changed since the previous snapshot.
        files_removed: Gone or changed since the previous snapshot.
        listing: What folders and files were, for the next look; None where nothing was listed.
    """

    data_schema: pa.Schema
    partition_schema: pa.Schema
    bloom_columns: tuple[str, ...] = ()
    manifests: tuple[Manifest, ...]
    ranges: pa.Table
    file_count: int
    row_count: int
    size_bytes: int
    files_added: int
    files_removed: int
    listing: bytes | None = None


class SnapshotStore(Protocol):
    """Snapshots and their manifests."""

    async def get(self, table: str, snapshot_id: int | None) -> tuple[StoredTable, Snapshot]:
        """Return a table and a snapshot of it, the current one by default.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot at all.
            SnapshotNotFoundError: The table does not have this one.
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
            SnapshotNotFoundError: The snapshot has been dropped since it was got.
        """

    async def listing(self, table: StoredTable) -> tuple[bytes | None, bool]:
        """Return what folders and files were when the table was last listed, if it was.

        And whether that found the files of its current snapshot.
        """

    async def publish(
        self,
        table: StoredTable,
        inventory: NextSnapshot,
        checked_at: datetime | None,
        once: Once | None = None,
        write_id: str | None = None,
    ) -> StoredTable:
        """Make an inventory the table's current snapshot, wholly or not at all.

        Args:
            table: As it was when the inventory was begun.
            inventory: All of its files.
            checked_at: When the look at the files began; None if nobody looked.
            once: The caller's key.
            write_id: The write that has moved the files in.

        Raises:
            TableNotFoundError: The table was deleted meanwhile.
            TableChangedError: The definition or the current snapshot changed meanwhile.
            WriteInProgressError: Another write is moving files in.
            WriteNotFoundError: The table has no such write.
            WriteStateError: The write is not moving files in.
        """

    async def confirm(
        self, table: StoredTable, checked_at: datetime, listing: bytes | None
    ) -> None:
        """Note that the current snapshot still agreed with the files at `checked_at`.

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
        """Drop old snapshots; return their ids, ascending, and of several tables one after another.

        The current one stays, and those that a plan is pinned to which has not expired.

        Args:
            table: Whose; None for those of every table.
            keep_last: So many of the newest of each table stay, at least 1.
            max_count: More than so many do not stay, whenever they were made.
            created_before: Those of then or later stay, as far as these allow.
            now: The time.
            once: The caller's key.
        """

    async def collect(self, limit: int) -> int:
        """Drop at most `limit` manifests that are in no snapshot; return how many.

        Safe beside publishers: what one of them is about to use stays.
        """


class Inventories(Protocol):
    """The file system, as far as a table's files go. Blocking: call it off the event loop."""

    def take(
        self,
        definition: TableDefinition,
        previous: Snapshot | None,
        previous_bodies: Sequence[bytes],
        listing: bytes | None,
        full: bool,
        on_progress: Callable[[RefreshProgress], None],
        cancelled: threading.Event,
    ) -> NextSnapshot:
        """List a table's files and read the footers of those that changed.

        `listing` is what folders and files were when they were last listed; None if they were
        not. Unless `full`, that was for the previous snapshot, and only folders that changed
        since are listed. `cancelled` may be set from another thread, to stop.

        Raises:
            windrow_service.inventory.errors.InventoryError: The files are not a table that
                can be read; nothing may be published.
        """


class WriteCommits(Protocol):
    """Which writes change a table's files."""

    async def refuse_while_committing(self, table: str) -> None:
        """Make sure that no write is moving files into a table just now.

        Raises:
            WriteInProgressError: One is.
        """

    async def last_committed_at(self, table_id: int) -> datetime | None:
        """Return when the last write ended that moved files into a table; None if there is none."""


class Turns(Protocol):
    """Lets callers that want the same thing have it one after the other."""

    def take(self, name: str) -> AbstractAsyncContextManager[None]:
        """Wait for one's turn, and have it until the end of the block.

        Raises:
            BusyError: Too many are waiting already.
        """


# Whether a refresh that runs is still wanted: "lost" is one that another has taken over.
Standing = Literal["wanted", "cancelled", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRecord:
    """The refresh of a table that runs, or that ended last.

    Attributes:
        table_id: The table's number.
        full: Whether every folder is listed, not only those that changed.
        lease_until: When it may be taken for abandoned; None once it has ended.
        status: What callers see, as its runner last wrote it.
        previous: How the refresh before it ended; None if there was none, or it did not end.
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
        """Begin a refresh unless one of the table runs already; return the one that runs.

        Args:
            status: Of the refresh that is begun; `refresh_id` tells whether it was.
            full: Whether it lists every folder.
            now: A refresh whose lease has run out by now is abandoned.
            lease_until: Of the refresh that is begun.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def renew(self, table_id: int, status: RefreshStatus, lease_until: datetime) -> Standing:
        """Go on with a refresh, and write down how far it is, unless it is lost."""

    async def finish(self, table_id: int, status: RefreshStatus) -> bool:
        """Write down how a refresh ended; tell whether it was neither lost nor ended before."""

    async def get(self, table: str) -> RefreshRecord:
        """Return the refresh of a table that runs, or that ended last.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotFoundError: It has never been refreshed.
        """

    async def cancel(self, table: str, now: datetime) -> RefreshRecord:
        """Ask for the refresh that runs to stop.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotRunningError: No refresh of it runs.
        """
