"""Snapshots and their manifests in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from windrow.models import SnapshotInfo
from windrow_service.store import schema
from windrow_service.store.tables import new_version, require_row
from windrow_service.usecases.errors import (
    SnapshotNotFoundError,
    TableChangedError,
    TableNotRefreshedError,
)
from windrow_service.usecases.ports import (
    Clock,
    ManifestEntry,
    Snapshot,
    StoredTable,
    TakenInventory,
)
from windrow_service.usecases.types import wire_columns

_BODIES_PER_QUERY = 500


class SqlSnapshotStore:
    """`SnapshotStore` in a SQL database."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def get(self, table: str, snapshot_id: int | None) -> Snapshot:
        """See `SnapshotStore.get`."""
        async with self._engine.connect() as connection:
            table_row = await require_row(connection, table)
            wanted = table_row.current_snapshot_id if snapshot_id is None else snapshot_id
            if wanted is None:
                raise TableNotRefreshedError(table)
            key = (schema.snapshots.c.table_id == table_row.table_id) & (
                schema.snapshots.c.snapshot_id == wanted
            )
            row = (await connection.execute(sa.select(schema.snapshots).where(key))).one_or_none()
            if row is None:
                raise SnapshotNotFoundError(table, wanted)
            entries = await connection.execute(
                sa.select(
                    schema.snapshot_manifests.c.manifest_id, schema.snapshot_manifests.c.first_path
                )
                .where(
                    schema.snapshot_manifests.c.table_id == table_row.table_id,
                    schema.snapshot_manifests.c.snapshot_id == wanted,
                )
                .order_by(schema.snapshot_manifests.c.position)
            )
            return Snapshot(
                info=SnapshotInfo.model_validate_json(row.info),
                data_schema=_schema_of(row.data_schema),
                partition_schema=_schema_of(row.partition_schema),
                manifests=tuple(
                    ManifestEntry(manifest_id=manifest_id, first_path=first_path)
                    for manifest_id, first_path in entries
                ),
                ranges=_ranges_of(row.ranges),
            )

    async def page(self, table: str, before: int, limit: int) -> Sequence[SnapshotInfo]:
        """See `SnapshotStore.page`."""
        async with self._engine.connect() as connection:
            table_row = await require_row(connection, table)
            rows = await connection.execute(
                sa.select(schema.snapshots.c.info)
                .where(
                    schema.snapshots.c.table_id == table_row.table_id,
                    schema.snapshots.c.snapshot_id < before,
                )
                .order_by(schema.snapshots.c.snapshot_id.desc())
                .limit(limit)
            )
            return [SnapshotInfo.model_validate_json(info) for (info,) in rows]

    async def bodies(
        self, table: str, snapshot: Snapshot, manifests: Sequence[ManifestEntry]
    ) -> list[bytes]:
        """See `SnapshotStore.bodies`."""
        manifest_ids = [entry.manifest_id for entry in manifests]
        found: dict[str, bytes] = {}
        async with self._engine.connect() as connection:
            for begin in range(0, len(manifest_ids), _BODIES_PER_QUERY):
                wanted = manifest_ids[begin : begin + _BODIES_PER_QUERY]
                query = sa.select(schema.manifests.c.manifest_id, schema.manifests.c.body)
                rows = await connection.execute(
                    query.where(schema.manifests.c.manifest_id.in_(wanted))
                )
                found.update((manifest_id, body) for manifest_id, body in rows)
        if not found.keys() >= set(manifest_ids):
            raise SnapshotNotFoundError(table, snapshot.info.snapshot_id)
        return [found[manifest_id] for manifest_id in manifest_ids]

    async def publish(self, table: StoredTable, inventory: TakenInventory) -> SnapshotInfo:
        """See `SnapshotStore.publish`."""
        async with self._engine.begin() as connection:
            row = await require_row(connection, table.info.name)
            # The version moves with definition and snapshot: this is the compare-and-set.
            moved = await connection.execute(
                sa.update(schema.tables)
                .where(
                    schema.tables.c.table_id == row.table_id,
                    schema.tables.c.version == table.version,
                )
                .values(
                    version=new_version(),
                    updated_at=self._clock(),
                    last_snapshot_id=row.last_snapshot_id + 1,
                    current_snapshot_id=row.last_snapshot_id + 1,
                )
            )
            if moved.rowcount != 1:
                raise TableChangedError(table.info.name, table.version, row.version)
            info = SnapshotInfo(
                snapshot_id=row.last_snapshot_id + 1,
                created_at=self._clock(),
                file_count=inventory.file_count,
                row_count=inventory.row_count,
                size_bytes=inventory.size_bytes,
                manifest_count=len(inventory.manifests),
                columns=wire_columns(inventory.data_schema),
                partition_columns=wire_columns(inventory.partition_schema),
            )
            await _insert(connection, row.table_id, info, inventory)
            return info


async def _insert(
    connection: AsyncConnection, table_id: int, info: SnapshotInfo, inventory: TakenInventory
) -> None:
    await connection.execute(
        sa.insert(schema.snapshots).values(
            table_id=table_id,
            snapshot_id=info.snapshot_id,
            info=info.model_dump_json(),
            data_schema=inventory.data_schema.serialize().to_pybytes(),
            partition_schema=inventory.partition_schema.serialize().to_pybytes(),
            ranges=_bytes_of(inventory.ranges),
        )
    )
    new = {entry.manifest_id: entry.body for entry in inventory.manifests if entry.body is not None}
    for manifest_id, body in new.items():
        known = sa.select(schema.manifests.c.manifest_id).where(
            schema.manifests.c.manifest_id == manifest_id
        )
        if await connection.scalar(known) is None:
            await connection.execute(
                sa.insert(schema.manifests).values(manifest_id=manifest_id, body=body)
            )
    rows: list[dict[str, Any]] = [
        {
            "table_id": table_id,
            "snapshot_id": info.snapshot_id,
            "position": position,
            "manifest_id": entry.manifest_id,
            "first_path": entry.first_path,
        }
        for position, entry in enumerate(inventory.manifests)
    ]
    if rows:
        await connection.execute(sa.insert(schema.snapshot_manifests), rows)


def _schema_of(raw: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(raw))


def _ranges_of(raw: bytes) -> pa.Table:
    with pa.ipc.open_stream(raw) as stream:
        return stream.read_all()


def _bytes_of(ranges: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ranges.schema) as stream:
        stream.write_table(ranges)
    return bytes(sink.getvalue())
