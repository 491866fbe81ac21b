"""Refresh a table: list its files again and publish what changed."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from tenacity import (
    AsyncRetrying,
    retry_if_exception,
    stop_after_delay,
    stop_when_event_set,
    wait_random,
    wait_random_exponential,
)

from windrow_core.models import (
    ON_DISK,
    RefreshProgress,
    RefreshRequest,
    SnapshotInfo,
    TableDefinition,
    TableInfo,
)
from windrow_service.inventory.errors import InventoryCancelledError
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.usecases.errors import OutcomeUnknownError, StoreUnavailableError
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.snapshots.errors import (
    ColumnsNotDeclaredError,
    NotLoggedError,
    NotTransactionalError,
    PartitionsNotListedError,
    SnapshotNotFoundError,
    TableNotRefreshedError,
    VersionNotKnownError,
    WriteIdsNeededError,
)
from windrow_service.usecases.snapshots.ports import (
    Inventories,
    InventoryRequest,
    NextSnapshot,
    Snapshot,
    SnapshotStore,
    WriteCommits,
)
from windrow_service.usecases.tables.errors import TableChangedError, WriteInProgressError
from windrow_service.usecases.tables.ports import PartitionListStore, TableStore

P = ParamSpec("P")
T = TypeVar("T")

# Another coordinator may publish the same table meanwhile. Starting again is cheap then, because
# footers that the other one has read are not read again.
_ATTEMPTS = 3
# A restart of the database must not lose what was read from the files.
_PATIENCE_S = 300
# The same time for which a write waits for another write's commit.
_COMMIT_PATIENCE_S, _COMMIT_POLL_S = 60, (0.1, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The result of a refresh.

    Attributes:
        snapshot: The snapshot that the refresh made or confirmed.
        changed: Whether that snapshot is new.
        files_added: New or changed files.
        files_removed: Files that are gone or changed.
        manifests_reused: Manifests that stayed as they were.
    """

    snapshot: SnapshotInfo
    changed: bool
    files_added: int
    files_removed: int
    manifests_reused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTable:
    """List a table's location again; publish a snapshot if anything is new."""

    tables: TableStore
    partition_lists: PartitionListStore
    snapshots: SnapshotStore
    writes: WriteCommits
    inventories: Inventories
    runner: Runner
    clock: Clock

    async def __call__(
        self,
        name: str,
        full: bool,
        on_progress: Callable[[RefreshProgress], None],
        cancelled: threading.Event,
        request: RefreshRequest,
    ) -> Refreshed:
        """Refresh one table; nothing is published unless every file could be read.

        While a write moves files in, the refresh waits: for at most a minute, and only if the
        write's driver is alive.

        Args:
            name: The table.
            full: Whether to compare every file, also of a table that trusts the times of folders.
            on_progress: Called from another thread while the files are read.
            cancelled: Can be set to stop the refresh.
            request: The request: which version or write ids to see.

        Raises:
            TableNotFoundError: No table has this name.
            PartitionsNotListedError: A catalog must list the table's partitions first.
            ColumnsNotDeclaredError: Neither the files nor the definition state the columns.
            NotLoggedError: A version was requested, and the table has no log.
            NotTransactionalError: Write ids were given, and the table is not transactional.
            WriteIdsNeededError: No write ids were given, and the current snapshot was made with
                some.
            LocationNotAllowedError: The location is no longer under an allowed prefix.
            StoreUnavailableError: The database cannot be used, or was not back in time.
            TableChangedError: The table kept changing while its files were read.
            WriteInProgressError: A write has been moving files in for too long, or its driver died.
            windrow_service.inventory.errors.InventoryError: The files are not a table.
        """
        attempt = 1
        while True:
            try:
                return await self._retry_while_committing(
                    cancelled, partial(self._refresh, name, full, on_progress, cancelled, request)
                )
            except (TableChangedError, SnapshotNotFoundError, OutcomeUnknownError):
                if attempt == _ATTEMPTS:
                    raise
                attempt += 1

    async def _retry_while_committing(
        self, cancelled: threading.Event, refresh: Callable[[], Awaitable[Refreshed]]
    ) -> Refreshed:
        retrying = AsyncRetrying(
            retry=retry_if_exception(self._commit_is_alive),
            wait=wait_random(*_COMMIT_POLL_S),
            stop=stop_after_delay(_COMMIT_PATIENCE_S) | stop_when_event_set(cancelled),
            reraise=True,
        )
        try:
            done: Refreshed = await retrying(refresh)
        except WriteInProgressError as error:
            if cancelled.is_set():
                raise InventoryCancelledError from error
            raise
        return done

    def _commit_is_alive(self, error: BaseException) -> bool:
        return isinstance(error, WriteInProgressError) and self.clock() < error.alive_until

    async def _refresh(
        self,
        name: str,
        full: bool,
        on_progress: Callable[[RefreshProgress], None],
        cancelled: threading.Event,
        request: RefreshRequest,
    ) -> Refreshed:
        last_progress = RefreshProgress(phase="listing")

        def follow(progress: RefreshProgress) -> None:
            nonlocal last_progress
            last_progress = progress
            on_progress(progress)

        table = await _patiently(cancelled, self.tables.get, name)
        _refuse_unrefreshable(table.info, request)
        # Publishing would be refused, so there is no point in listing.
        await _patiently(cancelled, self.writes.refuse_while_committing, name)
        try:
            table, previous = await _patiently(cancelled, self.snapshots.get, name, None)
        except TableNotRefreshedError:
            previous = None
        write_ids = _wanted_ids(name, table.info.definition, previous, request.valid_write_ids)
        began = self.clock()
        bodies: list[bytes] = []
        listing, is_current = None, False
        if previous is not None:
            bodies = await _patiently(
                cancelled, self.snapshots.bodies, name, previous, previous.manifests
            )
            listing, is_current = await _patiently(cancelled, self.snapshots.listing, table)
        partitions = None
        if table.info.partition_count is not None:
            # If the list is newer than `table`, the version has changed and publishing will fail.
            _, partitions = await _patiently(cancelled, self.partition_lists.get, name)
        everything = full or not is_current
        inventory = InventoryRequest(
            definition=table.info.definition,
            previous=previous,
            previous_bodies=bodies,
            listing=listing,
            full=everything,
            on_progress=follow,
            cancelled=cancelled,
            write_ids=write_ids,
            partitions=partitions,
            version=request.version,
        )
        upcoming = await self.runner.run(lambda: self.inventories.take(inventory))
        if cancelled.is_set():
            raise InventoryCancelledError
        # Folders' times alone do not tell that the files are still those of the snapshot.
        trusts = table.info.definition.trust_folder_times
        looked_at = began if everything or not trusts else table.checked_at
        reused_count = len(upcoming.manifests) - len(upcoming.new_manifests(previous))
        if previous is not None and request.version is None and _same(previous, upcoming):
            await _patiently(cancelled, self.snapshots.confirm, table, looked_at, upcoming.listing)
            return _unchanged(previous, reused_count)
        on_progress(last_progress.model_copy(update={"phase": "publishing"}))
        if request.version is not None:
            snapshot = await self._snapshot_of(cancelled, name, request.version)
            if snapshot is not None and _same(snapshot, upcoming):
                return _unchanged(snapshot, reused_count)
            beside = await _patiently(
                cancelled, self.snapshots.publish_beside, table, upcoming, request.version
            )
            return _published(beside, upcoming, reused_count)
        after = await _patiently(cancelled, self.snapshots.publish, table, upcoming, looked_at)
        assert after.info.current_snapshot is not None
        return _published(after.info.current_snapshot, upcoming, reused_count)

    async def _snapshot_of(
        self, cancelled: threading.Event, name: str, version: str
    ) -> Snapshot | None:
        try:
            return (await _patiently(cancelled, self.snapshots.get, name, None, version))[1]
        except VersionNotKnownError:
            return None


def _published(snapshot: SnapshotInfo, upcoming: NextSnapshot, reused_count: int) -> Refreshed:
    return Refreshed(
        snapshot=snapshot,
        changed=True,
        files_added=upcoming.files_added,
        files_removed=upcoming.files_removed,
        manifests_reused=reused_count,
    )


def _unchanged(snapshot: Snapshot, reused_count: int) -> Refreshed:
    return Refreshed(
        snapshot=snapshot.info,
        changed=False,
        files_added=0,
        files_removed=0,
        manifests_reused=reused_count,
    )


async def _patiently(
    cancelled: threading.Event, ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Repeat a call to the store while the database is away, unless told to stop."""
    retrying = AsyncRetrying(
        retry=retry_if_exception(
            lambda error: isinstance(error, StoreUnavailableError) and error.passing
        ),
        wait=wait_random_exponential(multiplier=0.2, max=2),
        stop=stop_after_delay(_PATIENCE_S) | stop_when_event_set(cancelled),
        reraise=True,
    )
    answer: T = await retrying(ask, *args, **kwargs)
    return answer


def _wanted_ids(
    name: str, definition: TableDefinition, previous: Snapshot | None, write_ids: str | None
) -> str | None:
    """Return the write ids to see; None for all writes that are on disk."""
    if write_ids is not None and not definition.kind.takes_write_ids:
        raise NotTransactionalError(name)
    if write_ids is None and previous is not None and previous.info.valid_write_ids is not None:
        raise WriteIdsNeededError(name)
    return None if write_ids == ON_DISK else write_ids


def _same(previous: Snapshot, upcoming: NextSnapshot) -> bool:
    return (
        previous.info.valid_write_ids == upcoming.valid_write_ids
        and previous.info.table_version == upcoming.table_version
        and previous.delete_files == upcoming.delete_files
        and previous.data_schema.equals(upcoming.data_schema, check_metadata=True)
        and previous.partition_schema.equals(upcoming.partition_schema)
        and _rows(previous.manifests) == _rows(upcoming.manifests)
    )


def _rows(manifests: Sequence[Manifest]) -> list[tuple[str, bytes]]:
    return [(manifest.manifest_id, manifest.removed.tobytes()) for manifest in manifests]


def _refuse_unrefreshable(table: TableInfo, request: RefreshRequest) -> None:
    name, definition = table.name, table.definition
    if request.version is not None and not definition.kind.has_versions:
        raise NotLoggedError(name, definition.format)
    if definition.listed_partitions and table.partition_count is None:
        raise PartitionsNotListedError(name)
    is_told = definition.columns is not None
    if not is_told and definition.kind.files.must_be_told(definition.format_options):
        raise ColumnsNotDeclaredError(name, definition.format)
