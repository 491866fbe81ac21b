"""Drop old snapshots in a SQL database, and manifests that no snapshot uses any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.database import Database
from windrow_service.store.idempotency import claim, settle
from windrow_service.usecases.ports import Once
from windrow_service.usecases.tables.ports import StoredTable

_MAX_ITEM = 256


class SqlSnapshotKeeping:
    """`SnapshotKeeping` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        snapshots, plans = schema.snapshots.c, schema.plans.c
        newer = (
            sa.func.row_number()
            .over(partition_by=snapshots.table_id, order_by=snapshots.snapshot_id.desc())
            .label("newer")
        )
        ranking = sa.select(snapshots.table_id, snapshots.snapshot_id, snapshots.created_at, newer)
        if table is not None:
            ranking = ranking.where(snapshots.table_id == table.table_id)
        old = ranking.subquery()
        is_current = sa.exists().where(
            schema.tables.c.table_id == old.c.table_id,
            schema.tables.c.current_snapshot_id == old.c.snapshot_id,
        )
        is_pinned = sa.exists().where(
            plans.table_id == old.c.table_id,
            plans.snapshot_id == old.c.snapshot_id,
            plans.expires_at > now,
        )
        is_protected = sa.exists().where(
            schema.tables.c.table_id == old.c.table_id, schema.tables.c.deletion_protection
        )
        candidates = sa.select(old.c.table_id, old.c.snapshot_id).where(
            sa.or_(
                old.c.newer > max_count,
                (old.c.newer > keep_last) & (old.c.created_at < created_before),
            ),
            ~is_current,
            ~is_pinned,
            ~is_protected,
        )
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            rows = await connection.execute(
                sa.delete(schema.snapshots)
                .where(sa.tuple_(snapshots.table_id, snapshots.snapshot_id).in_(candidates))
                .returning(snapshots.table_id, snapshots.snapshot_id)
            )
            keys = sorted(map(tuple, rows))
            snapshot_ids = [snapshot_id for _, snapshot_id in keys]
            await _note_dropped(connection, now, keys)
            await settle(connection, once, snapshot_ids)
        return snapshot_ids

    async def collect(self, limit: int) -> int:
        """Drop manifests, but none that a publisher is about to use.

        A publisher locks the manifests it uses, or inserts them again. This method skips manifests
        that a publisher has locked, and a publisher waits for those that are locked here. If a
        publisher has used a manifest and committed since the statement here began, the foreign key
        refuses the deletion: then nothing is deleted until the next call.
        """
        uses = schema.snapshot_manifests.c.manifest_id
        query = (
            sa.select(schema.manifests.c.manifest_id)
            .where(~sa.exists().where(uses == schema.manifests.c.manifest_id))
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        try:
            async with self._database.writing() as connection:
                # A separate query: as a subquery it could run, and lock rows, more than once.
                manifest_ids = (await connection.scalars(query)).all()
                result = await connection.execute(
                    sa.delete(schema.manifests).where(
                        schema.manifests.c.manifest_id.in_(manifest_ids)
                    )
                )
        except IntegrityError:
            return 0
        return result.rowcount


async def _note_dropped(
    connection: AsyncConnection, now: datetime, keys: Sequence[tuple[int, int]]
) -> None:
    if not keys:
        return
    tables = schema.tables.c
    table_ids = {table_id for table_id, _ in keys}
    rows = await connection.execute(
        sa.select(tables.table_id, tables.name).where(tables.table_id.in_(table_ids))
    )
    for table_id, name in sorted(map(tuple, rows)):
        snapshots = [snapshot_id for of_table, snapshot_id in keys if of_table == table_id]
        await note(connection, now, "snapshot", "deleted", table=name, item=_as_ranges(snapshots))


def _as_ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text such as `1-5, 8`."""
    firsts = [at for at in numbers if at - 1 not in numbers]
    lasts = [at for at in numbers if at + 1 not in numbers]
    ranges = (str(a) if a == b else f"{a}-{b}" for a, b in zip(firsts, lasts, strict=True))
    return ", ".join(ranges)[:_MAX_ITEM]
