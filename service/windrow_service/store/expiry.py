"""Drop old snapshots in a SQL database, and manifests that no snapshot uses any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.once import claim, settle
from windrow_service.usecases.ports import Once
from windrow_service.usecases.tables.ports import StoredTable


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
        """See `SnapshotKeeping.expire`."""
        snapshots, plans = schema.snapshots.c, schema.plans.c
        newer = (
            sa.func.row_number()
            .over(partition_by=snapshots.table_id, order_by=snapshots.snapshot_id.desc())
            .label("newer")
        )
        ranked = sa.select(snapshots.table_id, snapshots.snapshot_id, snapshots.created_at, newer)
        if table is not None:
            ranked = ranked.where(snapshots.table_id == table.table_id)
        old = ranked.subquery()
        is_current = sa.exists().where(
            schema.tables.c.table_id == old.c.table_id,
            schema.tables.c.current_snapshot_id == old.c.snapshot_id,
        )
        is_pinned = sa.exists().where(
            plans.table_id == old.c.table_id,
            plans.snapshot_id == old.c.snapshot_id,
            plans.expires_at > now,
        )
        wanted = sa.select(old.c.table_id, old.c.snapshot_id).where(
            sa.or_(
                old.c.newer > max_count,
                (old.c.newer > keep_last) & (old.c.created_at < created_before),
            ),
            ~is_current,
            ~is_pinned,
        )
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            rows = await connection.execute(
                sa.delete(schema.snapshots)
                .where(sa.tuple_(snapshots.table_id, snapshots.snapshot_id).in_(wanted))
                .returning(snapshots.table_id, snapshots.snapshot_id)
            )
            gone = [snapshot_id for _, snapshot_id in sorted(map(tuple, rows))]
            await settle(connection, once, gone)
        return gone

    async def collect(self, limit: int) -> int:
        """See `SnapshotKeeping.collect`.

        A publisher locks the manifests it uses, or inserts them again. Manifests that it has locked
        are skipped here; it waits for those that are locked here. If it has used one and committed
        since this statement began, the foreign key refuses the deletion: then nothing is deleted
        until the next time.
        """
        listed = schema.snapshot_manifests.c.manifest_id
        unused = (
            sa.select(schema.manifests.c.manifest_id)
            .where(~sa.exists().where(listed == schema.manifests.c.manifest_id))
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        try:
            async with self._database.writing() as connection:
                # A separate query: as a subquery it could run, and lock rows, more than once.
                found = (await connection.scalars(unused)).all()
                gone = await connection.execute(
                    sa.delete(schema.manifests).where(schema.manifests.c.manifest_id.in_(found))
                )
        except IntegrityError:
            return 0
        return gone.rowcount
