"""The replicas that are there, in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import sqlalchemy as sa

from windrow_service.store import schema
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.usecases.replicas import SILENT_AFTER, Replica

_replicas = schema.replicas


class SqlReplicaStore:
    """`ReplicaStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, replica: Replica) -> None:
        async with self._database.writing() as connection:
            if not await insert_missing(connection, _replicas, asdict(replica)):
                await connection.execute(
                    sa.update(_replicas)
                    .where(_replicas.c.replica_id == replica.replica_id)
                    .values(seen_at=replica.seen_at)
                )
            await connection.execute(
                sa.delete(_replicas).where(_replicas.c.seen_at <= replica.seen_at - SILENT_AFTER)
            )

    async def leave(self, replica_id: str) -> None:
        await self._database.delete(_replicas, _replicas.c.replica_id == replica_id)

    async def present(self, now: datetime) -> Sequence[Replica]:
        query = (
            sa.select(_replicas)
            .where(_replicas.c.seen_at > now - SILENT_AFTER)
            .order_by(_replicas.c.host, _replicas.c.process)
        )
        return [
            Replica(
                replica_id=row.replica_id,
                host=row.host,
                process=row.process,
                version=row.version,
                started_at=utc(row.started_at),
                seen_at=utc(row.seen_at),
            )
            for row in await self._database.rows(query)
        ]
