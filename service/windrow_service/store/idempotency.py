"""Changes that a caller may request again, but that are made only once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.store import schema
from windrow_service.store.database import Database, insert_missing
from windrow_service.usecases.errors import IdempotencyKeyReusedError, RepeatedRequestError
from windrow_service.usecases.ports import Once

# Longer than any caller keeps retrying.
_KEPT = timedelta(hours=24)


async def claim(connection: AsyncConnection, once: Once | None, now: datetime) -> None:
    """Claim the caller's key, before the change and in its transaction."""
    if once is None:
        return
    row = {
        "principal": once.principal,
        "key": once.key,
        "fingerprint": once.fingerprint,
        "expires_at": now + _KEPT,
    }
    if not await insert_missing(connection, schema.idempotency_keys, row):
        raise_known(await _row(connection, once), once)


async def settle(connection: AsyncConnection, once: Once | None, result: object) -> None:
    """Record the answer to the caller, after the change and in its transaction."""
    if once is None:
        return
    await connection.execute(
        sa.update(schema.idempotency_keys).where(_is(once)).values(answer=once.answer(result))
    )


def raise_known(row: Any | None, once: Once) -> None:
    """Raise the error for a change that was requested before; return if it was not."""
    if row is None:
        return
    if row.fingerprint != once.fingerprint:
        raise IdempotencyKeyReusedError(once.key)
    raise RepeatedRequestError(row.answer)


async def _row(connection: AsyncConnection, once: Once) -> Any | None:
    query = sa.select(schema.idempotency_keys.c.fingerprint, schema.idempotency_keys.c.answer)
    return (await connection.execute(query.where(_is(once)))).one_or_none()


def _is(once: Once) -> sa.ColumnElement[bool]:
    keys = schema.idempotency_keys.c
    return (keys.principal == once.principal) & (keys.key == once.key)


class SqlOnceStore:
    """`OnceStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def refuse_repeated(self, once: Once) -> None:
        async with self._database.reading() as connection:
            raise_known(await _row(connection, once), once)

    async def purge(self, now: datetime) -> int:
        keys = schema.idempotency_keys
        return await self._database.delete(keys, keys.c.expires_at <= now)
