"""What erasures change in a SQL database."""

from __future__ import annotations

import sqlalchemy as sa

from windrow_core.models.erasures import ErasureReceipt
from windrow_service.store.audit import note
from windrow_service.store.commit_guard import sharing
from windrow_service.store.database import Database
from windrow_service.store.plan_history import forget_filters
from windrow_service.store.plans import forget_plans
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.ports import StoredTable

_VACUUM = (
    "PostgreSQL keeps deleted rows until it vacuums: VACUUM (FULL) manifests, snapshots, plans, "
    "plan_bodies, plan_chunks"
)
_BUSY = "others read the coordinator's database, whose log (windrow.db-wal) may hold deleted rows"


class SqlErasureStore:
    """`ErasureStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def forget_plans(self, table: StoredTable) -> int:
        """See `ErasureStore.forget_plans`."""
        async with self._database.writing() as connection:
            await forget_filters(connection, table.info.name)
            return await forget_plans(connection, table.table_id)

    async def sharing(self, table: StoredTable) -> int:
        """See `ErasureStore.sharing`."""
        async with self._database.reading() as connection:
            return len(await sharing(connection, table.table_id))

    async def scrub(self) -> str | None:
        """See `ErasureStore.scrub`."""
        if self._database.is_postgresql:
            return _VACUUM
        async with self._database.changing() as connection:
            await connection.execute(sa.text("VACUUM"))
            row = (await connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))).one()
        return _BUSY if row[0] else None

    async def note(self, table: StoredTable, receipt: ErasureReceipt) -> None:
        """See `ErasureStore.note`."""
        now = self._clock()
        async with self._database.writing() as connection:
            name, item = table.info.name, receipt.receipt_id
            facts = {"rule", "keys", "rows_removed", "files_rewritten", "files_removed"}
            new = receipt.model_dump(mode="json", include=facts | {"last_byte_at", "signature"})
            await note(connection, now, "erasure", "created", table=name, item=item, new=new)
