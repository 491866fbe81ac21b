"""Streams in a SQL database: the newest batch of each query that is in a table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import StreamBatch, StreamRecord
from windrow_service.store import schema
from windrow_service.store.database import Database, utc
from windrow_service.store.pages import fetch_page
from windrow_service.store.tables import require_row
from windrow_service.usecases.ports import Page
from windrow_service.usecases.writes.errors import BatchOrderError
from windrow_service.usecases.writes.ports import StoredStream

_streams = schema.streams


class SqlStreamStore:
    """`StreamStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, table: str, before: int, limit: int) -> Page[StoredStream]:
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            query = (
                sa.select(_streams)
                .where(_streams.c.table_id == table_id, _streams.c.number < before)
                .order_by(_streams.c.number.desc())
            )
            texts = (_streams.c.query_name, _streams.c.checkpoint)
            rows, more = await fetch_page(connection, query, _streams.c.number, texts, limit)
        return Page((StoredStream(number=row.number, info=_info(row)) for row in rows), more=more)


async def refuse_out_of_order(
    connection: AsyncConnection, table: str, table_id: int, batch: str | None
) -> None:
    """Refuse a write whose batches do not follow those that are in the table.

    The caller has locked the table's row in this transaction.

    Args:
        connection: A connection for writing.
        table: Name of the table.
        table_id: Its number.
        batch: The batches, as a write's row has them; None for writes that are of no stream.
    """
    if batch is None:
        return
    batches = StreamBatch.model_validate_json(batch)
    row = await _find(connection, table_id, batches.query_id)
    newest = None if row is None else row.batch_id
    if newest != batches.previous:
        raise BatchOrderError(table, batches.query_id, newest, batches.previous)


async def record_batch(
    connection: AsyncConnection, table_id: int, batch: str | None, now: datetime
) -> None:
    """Record that the batches of a write are in a table; see `refuse_out_of_order`."""
    if batch is None:
        return
    batches = StreamBatch.model_validate_json(batch)
    names = {"query_name": batches.query_name, "checkpoint": batches.checkpoint}
    values = {"batch_id": batches.batch_id, "updated_at": now} | names
    of_table = _streams.c.table_id == table_id
    result = await connection.execute(
        sa.update(_streams)
        .where(of_table, _streams.c.query_id == batches.query_id)
        .values(values)
        .returning(_streams.c.number)
    )
    if result.first() is not None:
        return
    last = await connection.scalar(sa.select(sa.func.max(_streams.c.number)).where(of_table))
    keys = {"table_id": table_id, "number": (last or 0) + 1, "query_id": batches.query_id}
    await connection.execute(sa.insert(_streams).values(values | keys | {"started_at": now}))


async def _find(connection: AsyncConnection, table_id: int, query_id: str) -> Any:
    query = sa.select(_streams).where(
        _streams.c.table_id == table_id, _streams.c.query_id == query_id
    )
    return (await connection.execute(query)).one_or_none()


def _info(row: Any) -> StreamRecord:
    return StreamRecord(
        query_id=row.query_id,
        batch_id=row.batch_id,
        query_name=row.query_name,
        checkpoint=row.checkpoint,
        started_at=utc(row.started_at),
        updated_at=utc(row.updated_at),
    )
