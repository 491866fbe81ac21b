"""Figures of maintenance's work: the database counts and adds up, so that no receipt is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

import sqlalchemy as sa

from windrow_core.models import ReceiptState
from windrow_service.store import schema
from windrow_service.store.database import Database, utc
from windrow_service.store.pages import as_json
from windrow_service.store.table_names import is_among
from windrow_service.usecases.maintenance.work import WorkEvent, WorkSums
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Page

_receipts = schema.receipts.c
_ENDED = ("done", "gave_up", "failed")


def of_tables(among: Names, table: str | None) -> sa.ColumnElement[bool]:
    """Return the condition that a receipt is of some tables, and of one of them if it is named."""
    is_of_one = sa.true() if table is None else _receipts.table_name == table
    return is_among(among, _receipts.table_name) & is_of_one


async def count_receipts(
    database: Database, condition: sa.ColumnElement[bool]
) -> Mapping[ReceiptState, int]:
    """Return the number of receipts in each state that meet a condition."""
    query = sa.select(_receipts.state, sa.func.count().label("number")).where(condition)
    rows = await database.rows(query.group_by(_receipts.state))
    return dict.fromkeys(get_args(ReceiptState), 0) | {row.state: row.number for row in rows}


async def sum_work(
    database: Database, since: datetime, condition: sa.ColumnElement[bool]
) -> WorkSums:
    """Add up the work that has ended since then and meets a condition."""
    work = _ended(database, since, condition).cte("work")
    # Each text is parsed once.
    work = work.prefix_with("MATERIALIZED", dialect="postgresql")
    state, is_done = work.c.state, work.c.state == "done"
    cost, gain = _number(work, "outcome", "core_seconds"), _number(work, "gain", "gain_seconds")
    of_reads = sa.func.coalesce(gain, _number(work, "prediction", "gain_seconds"))
    forecast = _number(work, "prediction", "cost_seconds")
    query = sa.select(
        *(_sum(state == one, 1).label(one) for one in _ENDED),
        *(
            _sum(cost.is_not(None), _number(work, "outcome", one)).label(one)
            for one in ("files_before", "files_after", "bytes_before", "core_seconds")
        ),
        _sum(cost.is_not(None), forecast).label("predicted_seconds"),
        _sum(is_done, of_reads).label("gain_seconds"),
        _sum(is_done & gain.is_not(None), 1).label("measurements"),
    )
    row = await database.row(query)
    assert row is not None
    return WorkSums(
        done=row.done,
        gave_up=row.gave_up,
        failed=row.failed,
        files_before=int(row.files_before),
        files_after=int(row.files_after),
        bytes_before=int(row.bytes_before),
        core_seconds=float(row.core_seconds),
        predicted_seconds=float(row.predicted_seconds),
        gain_seconds=float(row.gain_seconds),
        measurements=row.measurements,
    )


async def find_events(
    database: Database, since: datetime, limit: int, condition: sa.ColumnElement[bool]
) -> Page[WorkEvent]:
    """Return the work that has ended since then and meets a condition, the latest first."""
    query = _ended(database, since, condition).add_columns(_receipts.table_name, _receipts.last_at)
    latest = query.order_by(_receipts.last_at.desc(), _receipts.number.desc()).limit(limit + 1)
    work = latest.cte("work")
    rows = await database.rows(
        sa.select(
            work.c.table_name,
            work.c.state,
            work.c.last_at,
            work.c.body["text"].as_string().label("text"),
            _number(work, "outcome", "core_seconds").label("core_seconds"),
        ).order_by(work.c.last_at.desc())
    )
    events = [
        WorkEvent(
            at=utc(row.last_at),
            table=row.table_name,
            state=row.state,
            text=row.text,
            core_seconds=row.core_seconds or 0.0,
        )
        for row in rows
    ]
    return Page.of(events, limit)


def _ended(
    database: Database, since: datetime, condition: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    body = as_json(_receipts.body, database.is_postgresql).label("body")
    has_ended = _receipts.state.in_(_ENDED) & (_receipts.last_at >= since)
    return sa.select(_receipts.state, body).where(has_ended, condition)


def _number(work: sa.CTE, *path: str) -> sa.ColumnElement[Any]:
    number: sa.ColumnElement[Any] = work.c.body[path].as_float()
    return number


def _sum(condition: sa.ColumnElement[bool], value: Any) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(sa.func.sum(sa.case((condition, value), else_=0)), 0)
