"""Plans in a SQL database, until they expire."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from windrow.models import Plan
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.usecases.errors import PlanNotFoundError
from windrow_service.usecases.ports import StoredPlan


class SqlPlanStore:
    """`PlanStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, plan: StoredPlan) -> None:
        """See `PlanStore.put`."""
        async with self._database.writing() as connection:
            await connection.execute(
                sa.insert(schema.plan_bodies).values(
                    body_id=plan.info.plan_id, size_bytes=len(plan.body), head=b"", tail=b""
                )
            )
            await connection.execute(
                sa.insert(schema.plan_chunks).values(
                    body_id=plan.info.plan_id, first_group=0, body=plan.body
                )
            )
            await connection.execute(
                sa.insert(schema.plans).values(
                    plan_id=plan.info.plan_id,
                    principal="",
                    table_id=0,
                    snapshot_id=plan.info.snapshot_id,
                    status=plan.info.status,
                    created_at=plan.info.created_at,
                    expires_at=plan.info.expires_at,
                    request="",
                    request_key="",
                    info=plan.info.model_dump_json(),
                    body_id=plan.info.plan_id,
                )
            )

    async def get(self, plan_id: str, now: datetime) -> StoredPlan:
        """See `PlanStore.get`."""
        query = (
            sa.select(schema.plans.c.info, schema.plan_chunks.c.body)
            .join(schema.plan_chunks, schema.plan_chunks.c.body_id == schema.plans.c.body_id)
            .where(schema.plans.c.plan_id == plan_id, schema.plans.c.expires_at > now)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise PlanNotFoundError(plan_id)
        return StoredPlan(info=Plan.model_validate_json(row.info), body=row.body)

    async def delete(self, plan_id: str) -> None:
        """See `PlanStore.delete`."""
        async with self._database.writing() as connection:
            gone = await connection.execute(
                sa.delete(schema.plans).where(schema.plans.c.plan_id == plan_id)
            )
        if gone.rowcount == 0:
            raise PlanNotFoundError(plan_id)

    async def purge(self, now: datetime) -> int:
        """See `PlanStore.purge`."""
        async with self._database.writing() as connection:
            gone = await connection.execute(
                sa.delete(schema.plans).where(schema.plans.c.expires_at <= now)
            )
        return gone.rowcount
