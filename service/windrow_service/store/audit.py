"""The audit log in a SQL database: rows are added together with changes, and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.store import schema
from windrow_service.store.database import Database, after_commit, utc
from windrow_service.usecases.audit import actor

if TYPE_CHECKING:
    from windrow_core.models import AuditedKind, AuditedOutcome, AuditRecord

_audit = schema.audit.c


async def note(
    connection: AsyncConnection,
    at: datetime,
    kind: AuditedKind,
    outcome: AuditedOutcome,
    *,
    table: str | None = None,
    item: str | None = None,
    before: str | None = None,
    after: str | None = None,
) -> None:
    """Record a change in its transaction; once that is committed, write it to the log as well.

    Args:
        connection: A connection in the transaction.
        at: The time of the change.
        kind: The kind of thing that was changed.
        outcome: What was done to it.
        table: The table that it is or belongs to.
        item: Its name or id, unless it is a table.
        before: Its version or state before.
        after: Its version or state after.
    """
    row = {
        "at": at,
        "kind": kind,
        "outcome": outcome,
        "table_name": table,
        "item": item,
        "before": before,
        "after": after,
        **asdict(actor()),
    }
    await connection.execute(sa.insert(schema.audit).values(row))
    after_commit(connection, "change", {**row, "at": at.isoformat()})


class SqlAuditLog:
    """`AuditLog` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        before: int,
        limit: int,
        *,
        table: str | None = None,
        principal: str | None = None,
        since: datetime | None = None,
    ) -> Sequence[AuditRecord]:
        # Commands that only add records do not need the wire models, whose import takes long.
        from windrow_core.models import AuditRecord

        query = sa.select(schema.audit).where(_audit.number < before)
        if table is not None:
            query = query.where(_audit.table_name == table)
        if principal is not None:
            query = query.where(_audit.principal == principal)
        if since is not None:
            query = query.where(_audit.at >= since)
        query = query.order_by(_audit.number.desc()).limit(limit)
        async with self._database.reading() as connection:
            return [
                AuditRecord(
                    number=row.number,
                    at=utc(row.at),
                    principal=row.principal,
                    operation=row.operation,
                    request_id=row.request_id,
                    kind=row.kind,
                    outcome=row.outcome,
                    table=row.table_name,
                    item=row.item,
                    before=row.before,
                    after=row.after,
                )
                for row in await connection.execute(query)
            ]

    async def purge(self, created_before: datetime, max_records: int) -> int:
        newest = sa.select(sa.func.max(_audit.number)).scalar_subquery()
        old = (_audit.at < created_before) | (_audit.number <= newest - max_records)
        async with self._database.writing() as connection:
            gone = await connection.execute(sa.delete(schema.audit).where(old))
        return gone.rowcount
