"""Publish an inventory, or a delta, that a caller sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from windrow_core.files.places import place_of
from windrow_core.files.rows import inventory_schema
from windrow_core.kinds.kind import REFRESH_IT
from windrow_core.models import InventoryChange, PublishedSnapshot, PublishMode
from windrow_service.inventory.footers.blooms import chosen_columns
from windrow_service.inventory.listing.partition_lists import ListedPartitions, refuse_unlisted
from windrow_service.inventory.manifests.changes import apply_change, plan_change
from windrow_service.inventory.manifests.encoding import Manifest, decode_manifest
from windrow_service.inventory.published.accepting import accept_change, accept_inventory
from windrow_service.inventory.published.arrow_streams import read_stream
from windrow_service.inventory.published.json_changes import table_of
from windrow_service.inventory.published.schema import published_columns
from windrow_service.planner.folders import folders_of
from windrow_service.usecases.ports import Clock, Once, Runner
from windrow_service.usecases.snapshots.errors import (
    BloomColumnsChangedError,
    InventoryOutdatedError,
    SnapshotNotFoundError,
    TableContendedError,
    TableNotRefreshedError,
)
from windrow_service.usecases.snapshots.next_snapshot import (
    next_after_delta,
    next_after_inventory,
    previous_inventory,
)
from windrow_service.usecases.snapshots.ports import (
    NextSnapshot,
    Snapshot,
    SnapshotStore,
    Turns,
    WriteCommits,
)
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.columns import schema_of
from windrow_service.usecases.tables.errors import (
    ListedPartitionsError,
    TableChangedError,
    unsupported,
)
from windrow_service.usecases.tables.ports import (
    PartitionListStore,
    StoredTable,
    TableStore,
)

# Other replicas may publish the same table meanwhile, each for one caller at a time.
_ATTEMPTS = 32
_RETRY_AFTER_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SentInventory:
    """An inventory as a caller sends it.

    Attributes:
        content: An Arrow IPC stream, or a body in JSON.
        mode: Whether it is a whole inventory, or a delta.
        listed_at: When the listing of the files began; None if unknown.
        write_id: The write that moved the files in; None if there was none. Files that its delta
            removes need not be in the current snapshot.
    """

    content: bytes | InventoryChange
    mode: PublishMode
    listed_at: datetime | None
    write_id: str | None = None

    def read(self, max_bytes: int) -> pa.Table:
        """Return the inventory as a table."""
        if isinstance(self.content, InventoryChange):
            return table_of(self.content, self.mode, max_bytes)
        return read_stream(self.content, max_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The answer to a publish: the table's new version, and the snapshot."""

    version: str
    snapshot: PublishedSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishInventory:
    """Publish a caller's inventory or delta as the table's current snapshot.

    It may take at most `max_decoded_bytes` of memory, and have at most `max_fields` in columns.
    """

    tables: TableStore
    partition_lists: PartitionListStore
    snapshots: SnapshotStore
    manifests: ManifestReader
    writes: WriteCommits
    turns: Turns
    runner: Runner
    clock: Clock
    max_decoded_bytes: int
    max_fields: int

    async def __call__(
        self, name: str, inventory: SentInventory, if_match: str | None, once: Once | None = None
    ) -> Published:
        """Return the new snapshot; nothing is published unless every row can be accepted.

        Without `if_match`, a delta is applied to whichever snapshot is current: if another caller
        was faster, to that caller's snapshot.

        Args:
            name: The table.
            inventory: All of its files, or a delta.
            if_match: The version that the table must be at, or `snapshot-N` for the snapshot.
            once: The caller's key; its answer is made from a `Published`.

        Raises:
            TableNotFoundError: No table has this name.
            TableChangedError: The table is not as `if_match` says, or was changed meanwhile.
            TableContendedError: Other callers were faster every time.
            TableNotRefreshedError: There is no snapshot yet to apply a delta to.
            BloomColumnsChangedError: A delta cannot be applied, because the table now has
                other Bloom columns.
            WriteInProgressError: A write other than `sent.write_id` is moving files in.
            WriteNotFoundError: The table has no write `sent.write_id`.
            WriteStateError: The write `sent.write_id` is not moving files in.
            ListedPartitionsError: A catalog lists the table's partitions, and this is not the
                delta of a write.
            TransactionalTableError: Only refreshes publish files of a transactional table.
            LoggedTableError: Only refreshes publish files of a table with a log.
            InventoryOutdatedError: The files were listed before a write had moved all of its files
                in.
            windrow_service.inventory.errors.InventoryError: The content cannot be accepted.
        """
        files: pa.Table | None = None
        # One caller at a time; otherwise each of n callers could do the work n times.
        async with self.turns.take(name):
            for _ in range(_ATTEMPTS):
                table, previous = await self._current(name)
                if not _matches(if_match, table):
                    raise TableChangedError(name, str(if_match), table.version)
                kind = table.info.definition.kind
                if kind.publishing is not None:
                    raise unsupported(table.info, "published inventories", kind.publishing)
                is_write = inventory.write_id is not None and inventory.mode == "delta"
                is_listed = table.info.definition.listed_partitions
                if (is_listed or table.info.partition_count is not None) and not is_write:
                    raise ListedPartitionsError(name, "published inventories", REFRESH_IT)
                if files is None:
                    files = await self.runner.run(lambda: inventory.read(self.max_decoded_bytes))
                try:
                    return await self._publish(table, previous, files, inventory, once)
                except TableChangedError:
                    if if_match not in (None, "*"):
                        raise
                except SnapshotNotFoundError:
                    # A change of the table's definition has dropped the snapshot: look again.
                    continue
        raise TableContendedError(name, _ATTEMPTS, _RETRY_AFTER_S)

    async def _current(self, name: str) -> tuple[StoredTable, Snapshot | None]:
        try:
            return await self.snapshots.get(name, None)
        except TableNotRefreshedError:
            return await self.tables.get(name), None

    async def _publish(
        self,
        table: StoredTable,
        previous: Snapshot | None,
        files: pa.Table,
        inventory: SentInventory,
        once: Once | None,
    ) -> Published:
        checked_at = (
            min(inventory.listed_at, self.clock()) if inventory.listed_at is not None else None
        )
        if inventory.mode == "full":
            await self._refuse_outdated(table, inventory)
            upcoming = await self._next_of_inventory(table, previous, files)
        elif previous is None:
            raise TableNotRefreshedError(table.info.name)
        else:
            may_miss = inventory.write_id is not None
            upcoming = await self._next_of_delta(table, previous, files, may_miss=may_miss)
            # A delta that was not listed leaves the time of the last listing as it is.
            checked_at = checked_at or table.checked_at

        def result(after: StoredTable) -> Published:
            return _published(after, previous, upcoming)

        if once is not None:
            answer = once.answer
            once = replace(once, answer=lambda after: answer(result(after)))
        return result(
            await self.snapshots.publish(table, upcoming, checked_at, once, inventory.write_id)
        )

    async def _refuse_outdated(self, table: StoredTable, inventory: SentInventory) -> None:
        written_at = await self.writes.last_committed_at(table.table_id)
        if inventory.listed_at is None or written_at is None or inventory.listed_at > written_at:
            return
        raise InventoryOutdatedError(
            table.info.name, inventory.listed_at.isoformat(), written_at.isoformat()
        )

    async def _next_of_inventory(
        self, table: StoredTable, previous: Snapshot | None, files: pa.Table
    ) -> NextSnapshot:
        name, definition = table.info.name, table.info.definition
        bodies = await self.snapshots.bodies(name, previous, previous.manifests) if previous else []

        def work() -> NextSnapshot:
            tables = [decode_manifest(body) for body in bodies]
            inventory = accept_inventory(
                files,
                columns=published_columns(
                    files,
                    schema_of(definition.columns),
                    previous.data_schema if previous else None,
                    self.max_fields,
                ),
                partition_types=schema_of(definition.partition_columns),
                bucket_count=definition.bucket_spec.count if definition.bucket_spec else None,
                previous=previous_inventory(previous, tables) if previous else None,
                bloom=definition.bloom_columns,
                max_bytes=self.max_decoded_bytes,
                unknown_rows=not definition.kind.files.is_grouped,
            )
            return next_after_inventory(inventory, previous, tables)

        return await self.runner.run(work)

    async def _next_of_delta(
        self, table: StoredTable, previous: Snapshot, files: pa.Table, *, may_miss: bool
    ) -> NextSnapshot:
        name, definition = table.info.name, table.info.definition
        bloom = tuple(chosen_columns(definition.bloom_columns, previous.data_schema))
        if previous.manifests and previous.bloom_columns != bloom:
            raise BloomColumnsChangedError(name)
        schema = inventory_schema(previous.data_schema, previous.partition_schema, bloom)
        buckets = definition.bucket_spec.count if definition.bucket_spec else None
        manifests = previous.manifests
        partition_list = None
        if table.info.partition_count is not None:
            _, partition_list = await self.partition_lists.get(name)

        def look() -> Any:
            delta = accept_change(
                files,
                schema=schema,
                bucket_count=buckets,
                max_bytes=self.max_decoded_bytes,
                unknown_rows=not definition.kind.files.is_grouped,
            )
            if partition_list is not None:
                refuse_unlisted(
                    ListedPartitions.decoded(partition_list), folders_of(delta.added["path"])
                )
            return delta, plan_change(manifests, delta)

        delta, plan = await self.runner.run(look)
        entries = [previous.manifests[at] for at in plan.read]
        excerpts = place_of(definition.location).has_excerpts
        at_hand = self.manifests.at_hand(previous, entries, bloom=True, excerpts=excerpts)
        missing = [manifest for manifest in entries if manifest.manifest_id not in at_hand]
        contents = await self.snapshots.bodies(name, previous, missing)
        bodies = {
            manifest.manifest_id: body for manifest, body in zip(missing, contents, strict=True)
        }

        def decode(one: Manifest, columns: Sequence[str] | None) -> pa.Table:
            rows = at_hand.get(one.manifest_id)
            return (
                decode_manifest(bodies[one.manifest_id], columns=columns) if rows is None else rows
            )

        result = await self.runner.run(
            lambda: apply_change(manifests, delta, plan, decode, may_miss=may_miss)
        )
        return next_after_delta(previous, result, bloom)


def _matches(if_match: str | None, table: StoredTable) -> bool:
    if if_match in (None, "*", table.version):
        return True
    current = table.info.current_snapshot
    return current is not None and if_match == f"snapshot-{current.snapshot_id}"


def _published(after: StoredTable, previous: Snapshot | None, upcoming: NextSnapshot) -> Published:
    snapshot = after.info.current_snapshot
    assert snapshot is not None
    new_manifests = upcoming.new_manifests(previous)
    noted_bytes = sum(manifest.removed.nbytes for manifest in upcoming.manifests)
    return Published(
        version=after.version,
        snapshot=PublishedSnapshot(
            **dict(snapshot),
            files_added=upcoming.files_added,
            files_removed=upcoming.files_removed,
            manifests_written=len(new_manifests),
            manifests_reused=len(upcoming.manifests) - len(new_manifests),
            bytes_written=noted_bytes
            + sum(len(manifest.data or b"") for manifest in new_manifests),
        ),
    )
