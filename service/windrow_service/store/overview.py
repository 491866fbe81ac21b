"""Figures of all tables together in a SQL database, now and by the hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from windrow_service.planner.upkeep.health import FAIR_DAILY, FAIR_EACH
from windrow_service.store import schema
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.store.figures import (
    current_figures,
    is_worthwhile,
    reads_of_tables,
    surplus_of,
)
from windrow_service.store.pages import as_json
from windrow_service.store.table_names import is_among
from windrow_service.usecases.names import Names
from windrow_service.usecases.upkeep.overview import (
    Candidate,
    Gain,
    HourFigures,
    Overview,
    Totals,
)

_hours, _history = schema.hours.c, schema.plan_history.c
_HOUR = timedelta(hours=1)
# Plans of an hour whose times are looked at, the latest.
_PLANS = 5_000


class SqlOverview:
    """`OverviewStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def now(self, since: datetime, limit: int, among: Names) -> Overview:
        state = self._state(since, among)
        sums = _sums(state)
        excess, reads = state.c.excess, state.c.reads
        is_first = is_worthwhile(excess, reads, FAIR_EACH, FAIR_DAILY)
        first = sa.select(state).where(is_first).order_by(*_rank(state)).limit(limit)
        few = first.cte("first")
        # One statement, so that each snapshot is looked at once.
        query = (
            sa.select(sums, few).select_from(sums.outerjoin(few, sa.true())).order_by(*_rank(few))
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).all()
            oldest = (await connection.execute(_oldest(among))).one_or_none()
        row = rows[0]
        return Overview(
            totals=Totals(
                tables=row.tables,
                files=int(row.files),
                size_bytes=int(row.bytes),
                excess_files=int(row.excess_files),
                without_snapshot=row.without_snapshot,
            ),
            gain=Gain(
                tables=row.gaining,
                files=int(row.gaining_files),
                excess=int(row.excess_files),
                reads=int(row.gaining_reads),
                spared_files=int(row.spared_files),
            ),
            first=[
                Candidate(
                    name=one.name,
                    files=one.file_count,
                    size_bytes=one.size_bytes,
                    excess=one.excess,
                    reads=one.reads,
                )
                for one in rows
                if one.name is not None
            ],
            oldest=None if oldest is None else (oldest.name, utc(oldest.checked_at)),
        )

    async def database_bytes(self) -> int:
        on_server = "pg_database_size(current_database())"
        here = "page_count * page_size FROM pragma_page_count, pragma_page_size"
        query = sa.text(f"SELECT {on_server if self._database.is_postgresql else here}")
        async with self._database.reading() as connection:
            return int(await connection.scalar(query) or 0)

    async def hours(self, since: datetime) -> Sequence[HourFigures]:
        query = sa.select(_hours.body).where(_hours.began_at >= since).order_by(_hours.began_at)
        rows = await self._database.rows(query)
        return [HourFigures.model_validate_json(row.body) for row in rows]

    async def record(self, now: datetime) -> None:
        began_at = now.replace(minute=0, second=0, microsecond=0)
        query = sa.select(_hours.began_at).where(_hours.began_at == began_at)
        if await self._database.row(query) is not None:
            return
        sums = (await self.now(began_at, 0, Names(every=True))).totals
        if not sums.tables:
            return
        seconds = await self._planning_seconds(began_at - _HOUR, began_at)
        figures = HourFigures(
            began_at=began_at,
            tables=sums.tables,
            files=sums.files,
            size_bytes=sums.size_bytes,
            excess_files=sums.excess_files,
            plans=len(seconds),
            planning_seconds=float(np.median(seconds)) if seconds else None,
            slow_planning_seconds=float(np.quantile(seconds, 0.95)) if seconds else None,
        )
        row = {"began_at": began_at, "body": figures.model_dump_json()}
        async with self._database.writing() as connection:
            await insert_missing(connection, schema.hours, row)

    async def purge(self, began_before: datetime) -> int:
        return await self._database.delete(schema.hours, _hours.began_at < began_before)

    def _state(self, since: datetime, among: Names) -> sa.CTE:
        """Return figures of tables: those of their snapshots, their excess, and their reads."""
        tables = schema.tables.c
        figures = current_figures([is_among(among)], tables.name)
        of = figures.c
        reads = reads_of_tables(since)
        surplus = surplus_of(of.file_count, of.size_bytes, of.fewest_files)
        return (
            sa.select(
                of.name,
                of.file_count,
                of.size_bytes,
                # Also 0 for tables without a snapshot, whose surplus is null.
                sa.case((surplus > 0, surplus), else_=0).label("excess"),
                sa.func.coalesce(reads.c.count, 0).label("reads"),
            )
            .outerjoin_from(figures, reads, reads.c.table_name == of.name)
            .cte("state")
        )

    async def _planning_seconds(self, since: datetime, until: datetime) -> Sequence[float]:
        body = as_json(_history.body, self._database.is_postgresql)
        query = (
            sa.select(body[("summary", "planning_seconds")].as_float().label("seconds"))
            .where(_history.created_at >= since, _history.created_at < until)
            .order_by(_history.number.desc())
            .limit(_PLANS)
        )
        rows = await self._database.rows(query)
        return [row.seconds for row in rows if row.seconds is not None]


def _sums(state: sa.CTE) -> sa.CTE:
    """Return figures of tables added up, in one row."""
    of, gains = state.c, state.c.excess > 0
    return sa.select(
        sa.func.count().label("tables"),
        _sum(of.file_count).label("files"),
        _sum(of.size_bytes).label("bytes"),
        _sum(of.excess).label("excess_files"),
        _count(of.file_count.is_(None)).label("without_snapshot"),
        _count(gains).label("gaining"),
        _sum(sa.case((gains, of.file_count), else_=0)).label("gaining_files"),
        _sum(sa.case((gains, of.reads), else_=0)).label("gaining_reads"),
        _sum(of.excess * of.reads).label("spared_files"),
    ).cte("sums")


def _rank(state: sa.CTE) -> Sequence[sa.ColumnElement[Any]]:
    """Return the order of tables by what their reads would save, then by what one would."""
    of = state.c
    return (of.excess * of.reads).desc(), of.excess.desc(), of.name.asc()


def _oldest(among: Names) -> sa.Select[Any]:
    tables = schema.tables.c
    return (
        sa.select(tables.name, tables.checked_at)
        .where(is_among(among), tables.checked_at.is_not(None))
        .order_by(tables.checked_at, tables.name)
        .limit(1)
    )


def _sum(value: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(value), 0)


def _count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.count(sa.case((condition, 1)))
