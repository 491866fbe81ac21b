"""Figures of all tables together in a SQL database, now and by the hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from windrow_service.store import schema
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.store.figures import WITH_SNAPSHOTS, number_of, surplus_files
from windrow_service.store.pages import without_nulls
from windrow_service.store.table_names import is_among
from windrow_service.usecases.names import Names
from windrow_service.usecases.upkeep.overview import HourFigures, TableState, totals

_hours, _history = schema.hours.c, schema.plan_history.c
_HOUR = timedelta(hours=1)
# Plans of an hour whose times are looked at, the latest.
_PLANS = 5_000


class SqlOverview:
    """`OverviewStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tables(self, among: Names) -> Sequence[TableState]:
        on_server, tables = self._database.is_postgresql, schema.tables.c
        query = (
            sa.select(
                tables.name,
                number_of("file_count", on_server),
                number_of("size_bytes", on_server),
                surplus_files(on_server),
                tables.checked_at,
            )
            .select_from(WITH_SNAPSHOTS)
            .where(is_among(among))
        )
        return [
            TableState(
                name, files, size_bytes, max(surplus or 0, 0), None if at is None else utc(at)
            )
            for name, files, size_bytes, surplus, at in await self._database.rows(query)
        ]

    async def reads(self, since: datetime) -> Mapping[str, int]:
        query = (
            sa.select(_history.table_name, sa.func.count())
            .where(_history.created_at >= since)
            .group_by(_history.table_name)
        )
        return dict(map(tuple, await self._database.rows(query)))

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
        sums = totals(await self.tables(Names(every=True)))
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

    async def _planning_seconds(self, since: datetime, until: datetime) -> Sequence[float]:
        text = _history.body
        # SQLite has no type for JSON: a cast would make a number of the text.
        body: sa.ColumnElement[Any] = (
            sa.cast(without_nulls(text), sa.JSON)
            if self._database.is_postgresql
            else sa.type_coerce(text, sa.JSON)
        )
        query = (
            sa.select(body[("summary", "planning_seconds")].as_float().label("seconds"))
            .where(_history.created_at >= since, _history.created_at < until)
            .order_by(_history.number.desc())
            .limit(_PLANS)
        )
        rows = await self._database.rows(query)
        return [row.seconds for row in rows if row.seconds is not None]
