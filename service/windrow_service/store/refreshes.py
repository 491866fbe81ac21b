"""Refreshes in a SQL database: one row per table, held by a lease."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import RefreshStatus
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.store.pages import without_fields, without_nulls
from windrow_service.store.table_names import is_among
from windrow_service.usecases.names import Names
from windrow_service.usecases.snapshots.errors import RefreshNotFoundError, RefreshNotRunningError
from windrow_service.usecases.snapshots.ports import RefreshRecord, Standing
from windrow_service.usecases.tables.errors import TableNotFoundError

_refreshes, _tables = schema.refreshes, schema.tables


class SqlRefreshStore:
    """`RefreshStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, status: RefreshStatus, *, full: bool, now: datetime, lease_until: datetime
    ) -> RefreshRecord:
        row = {
            "refresh_id": status.refresh_id,
            "full_listing": full,
            "lease_until": lease_until,
            "cancelled": False,
            "status": status.model_dump_json(),
        }
        last_status = sa.case(
            (_refreshes.c.lease_until.is_(None), _refreshes.c.status), else_=sa.null()
        )
        try:
            async with self._database.writing() as connection:
                table_id = await _table_id(connection, status.table)
                first = {"table_id": table_id} | row
                if not await insert_missing(connection, _refreshes, first):
                    await connection.execute(
                        sa.update(_refreshes)
                        .where(
                            _refreshes.c.table_id == table_id,
                            _refreshes.c.lease_until.is_(None) | (_refreshes.c.lease_until < now),
                        )
                        .values(row | {"previous": last_status})
                    )
                return _record_of(await _row(connection, status.table))
        except IntegrityError as error:
            # The table was deleted in the meantime.
            raise TableNotFoundError(status.table) from error

    async def renew(self, table_id: int, status: RefreshStatus, lease_until: datetime) -> Standing:
        async with self._database.writing() as connection:
            cancelled = await connection.scalar(
                sa.update(_refreshes)
                .where(_runs(table_id, status))
                .values(lease_until=lease_until, status=status.model_dump_json())
                .returning(_refreshes.c.cancelled)
            )
        if cancelled is None:
            return "lost"
        return "cancelled" if cancelled else "wanted"

    async def finish(self, table_id: int, status: RefreshStatus) -> bool:
        async with self._database.writing() as connection:
            done = await connection.execute(
                sa.update(_refreshes)
                .where(_runs(table_id, status))
                .values(lease_until=None, status=status.model_dump_json())
            )
        return done.rowcount == 1

    async def get(self, table: str) -> RefreshRecord:
        async with self._database.reading() as connection:
            row = await _row(connection, table)
            if row is None:
                await _table_id(connection, table)
                raise RefreshNotFoundError(table)
        return _record_of(row)

    async def recent(
        self, limit: int, among: Names, failed_by: datetime | None = None
    ) -> Sequence[RefreshRecord]:
        text = _refreshes.c.status
        # SQLite has no type for JSON: a cast would make a number of the text.
        on_server = self._database.is_postgresql
        status = (
            sa.cast(without_nulls(text), sa.JSON) if on_server else sa.type_coerce(text, sa.JSON)
        )
        figures = without_fields(text, ("snapshot", "valid_write_ids"), on_server)
        others = [column for column in _refreshes.c if column.name not in ("status", "previous")]
        query = (
            sa.select(*others, figures.label("status"), sa.null().label("previous"))
            .join(_tables, _tables.c.table_id == _refreshes.c.table_id)
            .where(is_among(among))
            .order_by(_refreshes.c.lease_until.is_(None), status["started_at"].as_string().desc())
        )
        if failed_by is not None:
            has_failed = status["status"].as_string() == "failed"
            query = query.where(has_failed | (_refreshes.c.lease_until < failed_by))
        return [_record_of(row) for row in await self._database.rows(query.limit(limit))]

    async def cancel(self, table: str, now: datetime) -> RefreshRecord:
        async with self._database.writing() as connection:
            table_id = await _table_id(connection, table)
            cancelled = await connection.execute(
                sa.update(_refreshes)
                .where(_refreshes.c.table_id == table_id, _refreshes.c.lease_until >= now)
                .values(cancelled=True)
            )
            if cancelled.rowcount != 1:
                raise RefreshNotRunningError(table)
            record = _record_of(await _row(connection, table))
            await note(
                connection,
                now,
                "refresh",
                "cancelled",
                table=table,
                item=record.status.refresh_id,
            )
            return record


def _runs(table_id: int, status: RefreshStatus) -> sa.ColumnElement[bool]:
    # A lease that has run out still belongs to its runner, until another takes over.
    return (
        (_refreshes.c.table_id == table_id)
        & (_refreshes.c.refresh_id == status.refresh_id)
        & _refreshes.c.lease_until.is_not(None)
    )


async def _table_id(connection: AsyncConnection, table: str) -> int:
    table_id = await connection.scalar(sa.select(_tables.c.table_id).where(_tables.c.name == table))
    if table_id is None:
        raise TableNotFoundError(table)
    return int(table_id)


async def _row(connection: AsyncConnection, table: str) -> Any | None:
    query = sa.select(_refreshes).join(_tables, _tables.c.table_id == _refreshes.c.table_id)
    return (await connection.execute(query.where(_tables.c.name == table))).one_or_none()


def _record_of(row: Any) -> RefreshRecord:
    return RefreshRecord(
        table_id=row.table_id,
        full=row.full_listing,
        lease_until=None if row.lease_until is None else utc(row.lease_until),
        status=RefreshStatus.model_validate_json(row.status),
        previous=None if row.previous is None else RefreshStatus.model_validate_json(row.previous),
    )
