"""Snapshots and their manifests in a SQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import SnapshotInfo
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.commit_guard import refuse_others
from windrow_service.store.database import Database, insert_missing
from windrow_service.store.figures import snapshot_without_columns, without_columns
from windrow_service.store.idempotency import claim, settle
from windrow_service.store.pages import fetch_page
from windrow_service.store.streams import record_batch
from windrow_service.store.tables import advance, find_row, new_version, require_row, stored
from windrow_service.usecases.ports import Clock, Once, Page
from windrow_service.usecases.snapshots.errors import (
    SnapshotNotFoundError,
    TableNotRefreshedError,
    VersionNotKnownError,
)
from windrow_service.usecases.snapshots.ports import NextSnapshot, Snapshot
from windrow_service.usecases.tables.columns import wire_columns
from windrow_service.usecases.tables.ports import StoredTable

_BODIES_PER_QUERY = 500
# Bytes of the snapshots that are cached, by estimate; snapshots never change.
_MAX_KEPT_BYTES = 128 * 2**20
# What is longer, or has more columns, is encoded and decoded in a thread: with 10,000 columns that
# takes half a second.
_SHORT_BYTES = 2**16
_FEW_COLUMNS = 200
# Memory of a parsed column, and of a manifest's entry.
_COLUMN_BYTES, _ENTRY_BYTES = 2_000, 1_000


class SqlSnapshotStore:
    """`SnapshotStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._read: LRUCache[tuple[int, int], Snapshot] = LRUCache(
            _MAX_KEPT_BYTES, getsizeof=_memory_of
        )

    async def get(
        self, table: str, snapshot_id: int | None, version: str | None = None
    ) -> tuple[StoredTable, Snapshot]:
        async with self._database.reading() as connection:
            table_row = await require_row(connection, table)
            target = table_row.current_snapshot_id if snapshot_id is None else snapshot_id
            if version is not None:
                target = await _newest_of(connection, table, table_row.table_id, version)
            if target is None:
                raise TableNotRefreshedError(table)
            key = (table_row.table_id, target)
            # The current snapshot is never dropped: no need to check that it still exists.
            is_current = target == table_row.current_snapshot_id
            snapshot = self._read.get(key) if is_current else None
            if snapshot is None:
                snapshot = await _load(connection, table, *key)
                if _memory_of(snapshot) <= _MAX_KEPT_BYTES:
                    self._read[key] = snapshot
            return stored(table_row), snapshot

    async def page(self, table: str, before: int, limit: int) -> Page[SnapshotInfo]:
        key, info = schema.snapshots.c.snapshot_id, schema.snapshots.c.info
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            query = _newest_first(table_id, info).where(key < before)
            rows, more = await fetch_page(connection, query, key, (info,), limit)
        infos = (SnapshotInfo.model_validate_json(row.info) for row in rows)
        return Page(infos, more=more)

    async def newest(self, table: str, limit: int) -> Sequence[SnapshotInfo]:
        figures = without_columns(schema.snapshots.c.info, self._database.is_postgresql)
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            rows = await connection.scalars(_newest_first(table_id, figures).limit(limit))
            return [snapshot_without_columns(text) for text in rows]

    async def bodies(
        self, table: str, snapshot: Snapshot, manifests: Sequence[Manifest]
    ) -> list[bytes]:
        manifest_ids = [manifest.manifest_id for manifest in manifests]
        by_id: dict[str, bytes] = {}
        async with self._database.reading() as connection:
            for begin in range(0, len(manifest_ids), _BODIES_PER_QUERY):
                ids = manifest_ids[begin : begin + _BODIES_PER_QUERY]
                query = sa.select(schema.manifests.c.manifest_id, schema.manifests.c.body)
                rows = await connection.execute(
                    query.where(schema.manifests.c.manifest_id.in_(ids))
                )
                by_id.update((manifest_id, body) for manifest_id, body in rows)
        if not by_id.keys() >= set(manifest_ids):
            raise SnapshotNotFoundError(table, snapshot.info.snapshot_id)
        return [by_id[manifest_id] for manifest_id in manifest_ids]

    async def listing(self, table: StoredTable) -> tuple[bytes | None, bool]:
        current = table.info.current_snapshot
        async with self._database.reading() as connection:
            result = await connection.execute(
                sa.select(schema.listings.c.body, schema.listings.c.snapshot_id).where(
                    schema.listings.c.table_id == table.table_id
                )
            )
            row = result.one_or_none()
        if row is None:
            return None, False
        return row.body, current is not None and row.snapshot_id == current.snapshot_id

    async def publish(
        self,
        table: StoredTable,
        inventory: NextSnapshot,
        checked_at: datetime | None,
        once: Once | None = None,
        write_id: str | None = None,
    ) -> StoredTable:
        now = self._clock()
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            row = await require_row(connection, table.info.name)
            snapshot_id = row.last_snapshot_id + 1
            await advance(
                connection,
                table,
                sa.true() if checked_at is None else _not_checked_since(table),
                version=new_version(),
                updated_at=now,
                last_snapshot_id=snapshot_id,
                current_snapshot_id=snapshot_id,
                checked_at=checked_at,
            )
            await refuse_others(connection, row.table_id, table.info.name, write_id)
            info = _info_of(inventory, snapshot_id, now)
            await _insert(connection, row.table_id, info, inventory)
            await _keep_listing(connection, row.table_id, snapshot_id, inventory.listing)
            if write_id is not None:
                batch = await connection.scalar(
                    sa.update(schema.writes)
                    .where(
                        schema.writes.c.table_id == row.table_id,
                        schema.writes.c.write_id == write_id,
                    )
                    .values(snapshot_id=snapshot_id)
                    .returning(schema.writes.c.batch)
                )
                await record_batch(connection, row.table_id, batch, now)
            result = stored(await find_row(connection, table.info.name))
            await _note(connection, now, table, info, result.version)
            await settle(connection, once, result)
            return result

    async def publish_beside(
        self, table: StoredTable, inventory: NextSnapshot, version: str
    ) -> SnapshotInfo:
        now = self._clock()
        async with self._database.writing() as connection:
            row = await require_row(connection, table.info.name)
            info = _info_of(inventory, row.last_snapshot_id + 1, now)
            changes = {"updated_at": now, "last_snapshot_id": info.snapshot_id}
            version_after = new_version()
            await advance(connection, table, version=version_after, **changes)
            await _insert(connection, row.table_id, info, inventory, version)
            await _note(connection, now, table, info, version_after)
            return info

    async def confirm(
        self, table: StoredTable, checked_at: datetime | None, listing: bytes | None
    ) -> None:
        current = table.info.current_snapshot
        assert current is not None
        async with self._database.writing() as connection:
            await advance(connection, table, _not_checked_since(table), checked_at=checked_at)
            await refuse_others(connection, table.table_id, table.info.name)
            await _keep_listing(connection, table.table_id, current.snapshot_id, listing)


async def _note(
    connection: AsyncConnection, now: datetime, table: StoredTable, info: SnapshotInfo, after: str
) -> None:
    older = table.info.current_snapshot
    fields = {"file_count", "row_count", "size_bytes"}
    # Tables may have thousands of columns, which hardly ever change.
    if older is None or older.columns != info.columns:
        fields.add("columns")
    await note(
        connection,
        now,
        "snapshot",
        "created",
        table=table.info.name,
        item=str(info.snapshot_id),
        before=table.version,
        after=after,
        old=None if older is None else older.model_dump(include=fields),
        new=info.model_dump(include=fields),
    )


def _not_checked_since(table: StoredTable) -> sa.ColumnElement[bool]:
    # A listing that began before another one ended knows less about the same snapshot.
    return schema.tables.c.checked_at.is_not_distinct_from(table.checked_at)


async def _newest_of(connection: AsyncConnection, table: str, table_id: int, version: str) -> int:
    """Return the newest snapshot of a version, named as in the log or as a refresh named it."""
    of = schema.snapshots.c
    newest = await connection.scalar(
        sa.select(sa.func.max(of.snapshot_id)).where(
            of.table_id == table_id,
            sa.or_(of.asked_version == version, of.table_version == version),
        )
    )
    if newest is None:
        raise VersionNotKnownError(table, version)
    return int(newest)


def _info_of(inventory: NextSnapshot, snapshot_id: int, now: datetime) -> SnapshotInfo:
    return SnapshotInfo(
        snapshot_id=snapshot_id,
        created_at=now,
        file_count=inventory.file_count,
        row_count=inventory.row_count,
        size_bytes=inventory.size_bytes,
        file_sizes=None if inventory.file_sizes is None else list(inventory.file_sizes),
        fewest_files=inventory.fewest_files,
        manifest_count=len(inventory.manifests),
        columns=wire_columns(inventory.data_schema),
        partition_columns=wire_columns(inventory.partition_schema),
        valid_write_ids=inventory.valid_write_ids,
        table_version=inventory.table_version,
        log=inventory.log,
    )


def _memory_of(snapshot: Snapshot) -> int:
    tables = snapshot.ranges.nbytes
    if snapshot.delete_files is not None:
        tables += snapshot.delete_files.nbytes
    columns, manifests = len(snapshot.info.columns), snapshot.manifests
    removed_bytes = sum(manifest.removed.nbytes for manifest in manifests)
    return int(_COLUMN_BYTES * columns + _ENTRY_BYTES * len(manifests) + removed_bytes + tables)


def _newest_first(table_id: int, column: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return (
        sa.select(column)
        .where(schema.snapshots.c.table_id == table_id)
        .order_by(schema.snapshots.c.snapshot_id.desc())
    )


async def _load(
    connection: AsyncConnection, table: str, table_id: int, snapshot_id: int
) -> Snapshot:
    row = (
        await connection.execute(sa.select(schema.snapshots).where(_is(table_id, snapshot_id)))
    ).one_or_none()
    if row is None:
        raise SnapshotNotFoundError(table, snapshot_id)
    columns = schema.snapshot_manifests.c
    entries = await connection.execute(
        sa.select(columns.manifest_id, columns.first_path, columns.last_path, columns.removed)
        .where(columns.table_id == table_id, columns.snapshot_id == snapshot_id)
        .order_by(columns.position)
    )
    if len(row.info) + len(row.ranges) <= _SHORT_BYTES:
        return _snapshot_of(row, entries.all())
    return await asyncio.to_thread(_snapshot_of, row, entries.all())


def _snapshot_of(row: Any, entries: Sequence[Any]) -> Snapshot:
    ranges = _table_of(row.ranges)
    return Snapshot(
        info=SnapshotInfo.model_validate_json(row.info),
        data_schema=_schema_of(row.data_schema),
        partition_schema=_schema_of(row.partition_schema),
        bloom_columns=tuple(json.loads(row.bloom_columns)),
        manifests=tuple(
            Manifest(
                manifest_id=manifest_id,
                first_path=first_path,
                last_path=last_path,
                ranges=ranges,
                row=at,
                removed=np.frombuffer(removed_rows or b"", np.dtype("<i4")),
            )
            for at, (manifest_id, first_path, last_path, removed_rows) in enumerate(entries)
        ),
        ranges=ranges,
        delete_files=_table_of(row.delete_files) if row.delete_files is not None else None,
    )


async def _insert(
    connection: AsyncConnection,
    table_id: int,
    info: SnapshotInfo,
    inventory: NextSnapshot,
    asked_version: str | None = None,
) -> None:
    if len(info.columns) <= _FEW_COLUMNS and inventory.delete_files is None:
        values = _values_of(info, inventory)
    else:
        values = await asyncio.to_thread(_values_of, info, inventory)
    names = {"table_id": table_id, "asked_version": asked_version}
    await connection.execute(sa.insert(schema.snapshots).values(values | names))
    # Always in the same order, or two publishers of the same manifests could deadlock.
    for manifest in sorted(inventory.manifests, key=lambda manifest: manifest.manifest_id):
        if manifest.data is not None:
            await _keep_manifest(connection, manifest.manifest_id, manifest.data)
    rows: list[dict[str, Any]] = [
        {
            "table_id": table_id,
            "snapshot_id": info.snapshot_id,
            "position": position,
            "manifest_id": manifest.manifest_id,
            "first_path": manifest.first_path,
            "last_path": manifest.last_path,
            "removed": manifest.removed.astype("<i4").tobytes() if len(manifest.removed) else None,
        }
        for position, manifest in enumerate(inventory.manifests)
    ]
    if rows:
        await connection.execute(sa.insert(schema.snapshot_manifests), rows)


async def _keep_manifest(connection: AsyncConnection, manifest_id: str, body: bytes) -> None:
    """Make sure that a manifest exists, and stays until the transaction ends.

    An existing manifest may be in no snapshot, and may be collected at this moment. So this
    locks it, as the foreign key of a row that names it would do; if it is gone by then, this
    inserts it again. Manifests without a body need no lock: the current snapshot has them, and
    stays current while the table's row is locked.
    """
    keys = schema.manifests.c.manifest_id
    lock = sa.select(keys).where(keys == manifest_id)
    while not await insert_missing(
        connection, schema.manifests, {"manifest_id": manifest_id, "body": body}
    ):
        if await connection.scalar(lock.with_for_update(read=True, key_share=True)):
            return


async def _keep_listing(
    connection: AsyncConnection, table_id: int, snapshot_id: int, body: bytes | None
) -> None:
    if body is None:
        return
    await connection.execute(
        sa.delete(schema.listings).where(schema.listings.c.table_id == table_id)
    )
    row = {"table_id": table_id, "snapshot_id": snapshot_id, "body": body}
    await connection.execute(sa.insert(schema.listings).values(row))


def _values_of(info: SnapshotInfo, inventory: NextSnapshot) -> dict[str, Any]:
    deletes = inventory.delete_files
    return {
        "snapshot_id": info.snapshot_id,
        "created_at": info.created_at,
        "info": info.model_dump_json(),
        "data_schema": inventory.data_schema.serialize().to_pybytes(),
        "partition_schema": inventory.partition_schema.serialize().to_pybytes(),
        "bloom_columns": json.dumps(inventory.bloom_columns),
        "ranges": _bytes_of(inventory.ranges),
        "delete_files": None if deletes is None else _bytes_of(deletes),
        "table_version": inventory.table_version,
    }


def _is(table_id: int, snapshot_id: int) -> sa.ColumnElement[bool]:
    keys = schema.snapshots.c
    return (keys.table_id == table_id) & (keys.snapshot_id == snapshot_id)


def _schema_of(raw: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(raw))


def _table_of(raw: bytes) -> pa.Table:
    with pa.ipc.open_stream(raw) as stream:
        return stream.read_all()


def _bytes_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
