"""Lists of partitions in a SQL database."""

from __future__ import annotations

import sqlalchemy as sa

from windrow_core.models import PartitionListChange
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.commit_guard import refuse_others
from windrow_service.store.database import Database
from windrow_service.store.idempotency import claim, settle
from windrow_service.store.tables import advance, find_row, new_version, require_row, stored
from windrow_service.usecases.ports import Clock, Once
from windrow_service.usecases.tables.ports import StoredTable

_lists = schema.partition_lists


class SqlPartitionListStore:
    """`PartitionListStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, name: str) -> tuple[StoredTable, bytes | None]:
        async with self._database.reading() as connection:
            row = await require_row(connection, name)
            body = await connection.scalar(
                sa.select(_lists.c.body).where(_lists.c.table_id == row.table_id)
            )
        return stored(row), body

    async def put(
        self,
        table: StoredTable,
        body: bytes | None,
        change: PartitionListChange,
        once: Once | None = None,
    ) -> StoredTable:
        now = self._clock()
        name = table.info.name
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            await advance(
                connection,
                table,
                version=new_version(),
                updated_at=now,
                partition_count=change.partition_count,
            )
            await refuse_others(connection, table.table_id, name)
            await connection.execute(sa.delete(_lists).where(_lists.c.table_id == table.table_id))
            if body is not None:
                row = {"table_id": table.table_id, "body": body}
                await connection.execute(sa.insert(_lists).values(row))
            result = stored(await find_row(connection, name))
            await note(
                connection,
                now,
                "partitions",
                "deleted" if body is None else "changed",
                table=name,
                before=table.version,
                after=result.version,
            )
            await settle(connection, once, (result, change))
            return result

    async def confirm(
        self, table: StoredTable, change: PartitionListChange, once: Once | None = None
    ) -> None:
        if once is None:
            return
        async with self._database.writing() as connection:
            await claim(connection, once, self._clock())
            await settle(connection, once, (table, change))
