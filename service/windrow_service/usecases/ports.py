"""What the use cases need from the outside, and the values that pass through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.models import RefreshProgress, SnapshotInfo, TableDefinition, TableInfo

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """A table as the store holds it.

    Attributes:
        table_id: Its number, which no other table ever gets.
        info: What callers see.
        version: Changes whenever definition or current snapshot do; the entity tag.
        checked_at: When the look at the files began that the current snapshot agrees with;
            None before the first.
        has_cache_rules: Whether there are any, be they expired.
    """

    table_id: int
    info: TableInfo
    version: str
    checked_at: datetime | None
    has_cache_rules: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A change that may be asked for again, after an answer was lost, and is made once.

    Attributes:
        principal: Who asks; keys of others are other keys.
        key: The caller's name for the change.
        fingerprint: Digest of all that was asked for.
        answer: Says what is answered, from what the change returns.
    """

    principal: str
    key: str
    fingerprint: str
    answer: Callable[[Any], str]


class OnceStore(Protocol):
    """Answers to changes that callers may ask for again; the stores write them with the change."""

    async def refuse_repeated(self, once: Once) -> None:
        """Make sure that a change was not asked for before.

        Raises:
            RepeatedRequestError: It has been made; the error holds the answer.
            IdempotencyKeyReusedError: The key was used for another change.
        """

    async def purge(self, now: datetime) -> int:
        """Forget the keys that have expired by `now`; return how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One manifest of a snapshot.

    Attributes:
        manifest_id: Digest of the body; equal bodies are one manifest.
        first_path: Least path in it.
        last_path: Greatest path in it.
        removed: Positions of its rows that the snapshot no longer has, ascending.
        body: Encoded rows; None where the store already has them.
    """

    manifest_id: str
    first_path: str
    last_path: str
    removed: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    body: bytes | None = None


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
    manifests: tuple[ManifestEntry, ...]
    ranges: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenInventory:
    """What a look at a table's location found.

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
    manifests: tuple[ManifestEntry, ...]
    ranges: pa.Table
    file_count: int
    row_count: int
    size_bytes: int
    files_added: int
    files_removed: int
    listing: bytes | None = None


class TableStore(Protocol):
    """Registered tables, by name."""

    async def put(
        self,
        name: str,
        definition: TableDefinition,
        if_match: str | None,
        once: Once | None = None,
    ) -> tuple[StoredTable, bool]:
        """Register a table or change its definition; tell whether it is new.

        The same definition again changes nothing. A change of anything but the sort columns
        and the Bloom filters' drops the table's snapshots, since they hold what the files said
        under the old one.

        Raises:
            TableChangedError: The table is not at version `if_match`; `*` is any version.
            WriteInProgressError: The definition is another, and a write is moving files in.
        """

    async def get(self, name: str) -> StoredTable:
        """Return one table.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def page(self, after: str, limit: int) -> Sequence[StoredTable]:
        """Return at most `limit` tables whose names follow `after`, by name."""

    async def delete(self, name: str, if_match: str | None, once: Once | None = None) -> None:
        """Forget a table and its snapshots; its files stay.

        Raises:
            TableNotFoundError: No table has this name.
            TableChangedError: The table is not at version `if_match`.
            WriteInProgressError: A write is moving files in.
        """


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
        self, table: str, snapshot: Snapshot, manifests: Sequence[ManifestEntry]
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
        inventory: TakenInventory,
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

    def locate(self, definition: TableDefinition) -> str:
        """Return the canonical form of a table's location.

        Raises:
            LocationNotAllowedError: It lies outside the allowed prefixes.
        """

    def take(
        self,
        definition: TableDefinition,
        previous: Snapshot | None,
        previous_bodies: Sequence[bytes],
        listing: bytes | None,
        full: bool,
        on_progress: Callable[[RefreshProgress], None],
        cancelled: threading.Event,
    ) -> TakenInventory:
        """List a table's files and read the footers of those that changed.

        `listing` is what folders and files were when they were last listed; None if they were
        not. Unless `full`, that was for the previous snapshot, and only folders that changed
        since are listed. `cancelled` may be set from another thread, to stop.

        Raises:
            windrow_service.inventory.errors.InventoryError: The files are not a table that
                can be read; nothing may be published.
        """


class Runner(Protocol):
    """Where blocking work runs, so that the event loop stays free."""

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work elsewhere and return its result, or raise its error.

        Raises:
            BusyError: Too much is waiting already.
        """


class Clock(Protocol):
    """The time."""

    def __call__(self) -> datetime:
        """Return now, with a time zone."""
