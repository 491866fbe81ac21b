"""The audit log in a SQL database: rows are added together with changes, and never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.store import schema
from windrow_service.store.database import Database, after_commit, utc
from windrow_service.store.pages import fetch_page
from windrow_service.usecases.audit import actor
from windrow_service.usecases.field_changes import field_changes
from windrow_service.usecases.ports import Page

if TYPE_CHECKING:
    from pydantic import BaseModel

    from windrow_core.models import AuditedKind, AuditedOutcome, AuditRecord

    Definition: TypeAlias = BaseModel | Mapping[str, object]

_audit = schema.audit.c
_AS_SHOWN = [column.name for column in _audit if column.name != "table_name"]


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
    old: Definition | None = None,
    new: Definition | None = None,
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
        old: Its definition before.
        new: Its definition after.
    """
    # Of a new definition, or of the last one, only what it sets is worth a look.
    defaults = old is not None and new is not None
    fields = field_changes(_as_json(old, defaults), _as_json(new, defaults))
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
    values = {"fields": json.dumps([asdict(one) for one in fields]) if fields else None}
    await connection.execute(sa.insert(schema.audit).values(row | values))
    # Definitions may be long, and filters have values of rows: the log names the fields alone.
    names = {"fields": [one.name for one in fields]} if fields else {}
    after_commit(connection, "change", {**row, **names, "at": at.isoformat()})


def _as_json(definition: Definition | None, defaults: bool) -> Mapping[str, object] | None:
    if definition is None or isinstance(definition, Mapping):
        return definition
    return definition.model_dump(mode="json", exclude_defaults=not defaults)


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
    ) -> Page[AuditRecord]:
        # Commands that only add records do not need the wire models, whose import takes long.
        from windrow_core.models import AuditRecord

        columns = [_audit.table_name.label("table"), *(_audit[name] for name in _AS_SHOWN)]
        query = sa.select(*columns).where(_audit.number < before)
        if table is not None:
            query = query.where(_audit.table_name == table)
        if principal is not None:
            query = query.where(_audit.principal == principal)
        if since is not None:
            query = query.where(_audit.at >= since)
        query = query.order_by(_audit.number.desc())
        async with self._database.reading() as connection:
            texts = (_audit.fields,)
            rows, more = await fetch_page(connection, query, _audit.number, texts, limit)
        records = [
            AuditRecord(
                **{**row._mapping, "at": utc(row.at), "fields": json.loads(row.fields or "[]")}
            )
            for row in rows
        ]
        return Page(records, more=more)

    async def purge(self, created_before: datetime, max_records: int) -> int:
        newest = sa.select(sa.func.max(_audit.number)).scalar_subquery()
        old = (_audit.at < created_before) | (_audit.number <= newest - max_records)
        return await self._database.delete(schema.audit, old)
