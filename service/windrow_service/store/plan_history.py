"""Plan history in a SQL database: rows are added together with plans, and changed by reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import PastPlan, ScanReport
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.pages import fetch_page
from windrow_service.store.table_names import is_among
from windrow_service.usecases.plans.history import PlanConditions, past_of
from windrow_service.usecases.plans.ports import Mine, PlanRecord
from windrow_service.usecases.ports import Page

_history = schema.plan_history.c
_FORGOTTEN_AT_ONCE = 1_000


def row_of(plan: PlanRecord, now: datetime) -> dict[str, Any] | None:
    """Return the history's row for a plan that is stored at `now`; None if it has none (yet)."""
    if plan.state == "completed" and not plan.is_listed:
        return None
    past = past_of(plan, now)
    return None if past is None else _row_of_past(past)


def _row_of_past(past: PastPlan) -> dict[str, Any]:
    return {
        "plan_id": past.plan_id,
        "table_name": past.table,
        "principal": past.principal,
        "created_at": past.created_at,
        "is_failed": past.status == "failed",
        "body": past.model_dump_json(exclude={"number", "scan"}, exclude_defaults=True),
    }


async def forget_filters(connection: AsyncConnection, table: str) -> None:
    """Forget the filters of a table's past plans, and those that failed, whose reasons may quote them.

    Those of tables that are gone go, too: one may have had the same files.
    """
    is_gone = _history.table_name.not_in(sa.select(schema.tables.c.name))
    which = (_history.table_name == table) | is_gone
    await connection.execute(sa.delete(schema.plan_history).where(which, _history.is_failed))
    after = 0
    while True:
        query = sa.select(_history.number, _history.body).where(which, _history.number > after)
        rows = (
            await connection.execute(query.order_by(_history.number).limit(_FORGOTTEN_AT_ONCE))
        ).all()
        if not rows:
            return
        for number, body in rows:
            fields = json.loads(body)
            if fields.pop("filter", None) is not None:
                update = sa.update(schema.plan_history).where(_history.number == number)
                await connection.execute(update.values(body=json.dumps(fields)))
        after = rows[-1].number


class SqlPlanHistory:
    """`PlanHistory` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, mine: Mine, conditions: PlanConditions, limit: int) -> Page[PastPlan]:
        table = _history.table_name
        own = (_history.principal == mine.maker) & is_among(mine.readable, table)
        query = (
            sa.select(_history.number, _history.body, _history.scan)
            .where(_history.number < conditions.before, own | is_among(mine.administrable, table))
            .order_by(_history.number.desc())
        )
        if conditions.plan_id is not None:
            # Any digit sorts before a `g`, and an index helps with ranges.
            first, end = conditions.plan_id, f"{conditions.plan_id}g"
            query = query.where(_history.plan_id >= first, _history.plan_id < end)
        if conditions.table is not None:
            query = query.where(table == conditions.table)
        if conditions.since is not None:
            query = query.where(_history.created_at >= conditions.since)
        if conditions.until is not None:
            query = query.where(_history.created_at < conditions.until)
        if conditions.principal is not None:
            query = query.where(_history.principal == conditions.principal)
        if conditions.status is not None:
            query = query.where(_history.is_failed.is_(conditions.status == "failed"))
        if conditions.least_seconds is not None:
            query = query.where(_history.scan_seconds >= conditions.least_seconds)
        async with self._database.reading() as connection:
            rows, more = await fetch_page(
                connection, query, _history.number, (_history.body,), limit
            )
        return Page(map(_past_of, rows), more=more)

    async def report(self, principal: str, scans: Sequence[ScanReport]) -> None:
        if not scans:
            return
        change = (
            sa.update(schema.plan_history)
            .where(
                _history.plan_id == sa.bindparam("of_plan"),
                _history.principal == sa.bindparam("of_caller"),
            )
            .values(scan=sa.bindparam("report"), scan_seconds=sa.bindparam("took"))
        )
        rows = [
            {
                "of_plan": one.plan_id,
                "of_caller": principal,
                "report": one.model_dump_json(exclude_defaults=True),
                "took": one.seconds,
            }
            for one in scans
        ]
        async with self._database.writing() as connection:
            await connection.execute(change, rows)

    async def add(self, plan: PastPlan) -> None:
        async with self._database.writing() as connection:
            await connection.execute(sa.insert(schema.plan_history).values(_row_of_past(plan)))

    async def purge(self, created_before: datetime, max_plans: int) -> int:
        newest = sa.select(sa.func.max(_history.number)).scalar_subquery()
        old = (_history.created_at < created_before) | (_history.number <= newest - max_plans)
        return await self._database.delete(schema.plan_history, old)


def _past_of(row: Any) -> PastPlan:
    further = {"number": row.number}
    if row.scan is not None:
        further["scan"] = json.loads(row.scan)
    return PastPlan.model_validate(json.loads(row.body) | further)
