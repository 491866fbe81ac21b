"""Connections to PostgreSQL, which end once the server has fallen silent.

The kernel tells of packets that get lost (`_LIMITS`). It does not tell of a server that is frozen, or
of a proxy that passes nothing on: their machines still acknowledge every packet. So a connection
whose answer is late lets another one ask whether there is anybody to answer.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.abc import PQGen
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

_CONNECT_TIMEOUT_S = 5
# How libpq waits.
_LIMITS: dict[str, int] = {
    "connect_timeout": _CONNECT_TIMEOUT_S,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# Longer than any statement here takes; a hanging database must not block callers for ever.
_STATEMENT_TIMEOUT_S = 120
# An answer is late after so long: most take milliseconds.
_LATE_S = 5.0
# The same for connections that were not in use, of which the server may know nothing any more.
_LATE_PING_S = 2.0
_POOL_SIZE = 10
_IDLE_S = 2.0


def limits_of(url: sa.URL) -> dict[str, int]:
    """Return limits of libpq on waiting for a server, except for those in its URL."""
    return {name: limit for name, limit in _LIMITS.items() if name not in url.query}


def postgresql_engine(url: sa.URL) -> AsyncEngine:
    """Return an engine for a server, whose connections end once it is silent."""
    engine = create_async_engine(
        url,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_timeout=_CONNECT_TIMEOUT_S,
        connect_args={
            **limits_of(url),
            "options": f"-c statement_timeout={_STATEMENT_TIMEOUT_S}s -c timezone=UTC",
            "cursor_factory": _BinaryCursor,
            "async_creator_fn": _Server().connect,
        },
    )

    @sa.event.listens_for(engine.sync_engine, "checkin")
    def note_use(_: object, record: sa.pool.ConnectionPoolEntry) -> None:
        record.info["used_at_s"] = time.monotonic()

    @sa.event.listens_for(engine.sync_engine, "checkout")
    def ping_idle(connection: Any, record: sa.pool.ConnectionPoolEntry, _: object) -> None:
        # The server may have been restarted. Busy connections need no ping: their users notice.
        if time.monotonic() - record.info.get("used_at_s", 0.0) < _IDLE_S:
            return
        driver: _Connection = connection.driver_connection
        driver.is_at_work = False
        try:
            engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            # This makes the pool open another connection.
            raise sa.exc.DisconnectionError from error
        driver.is_at_work = True

    return engine


class _BinaryCursor(psycopg.AsyncCursor[Any]):
    """Requests results in binary form; as text, manifests and groups would be twice as long."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], **options: Any) -> None:
        super().__init__(connection, **options)
        self.format = psycopg.pq.Format.BINARY


class _Connection(psycopg.AsyncConnection[Any]):
    """A connection that is cut if its server is silent.

    Attributes:
        is_at_work: Whether a statement may take long; otherwise a late answer does not come.
        has_witness: Tells whether the server answers another connection.
    """

    is_at_work = False
    has_witness: Callable[[], Awaitable[bool]]

    async def wait(self, gen: PQGen[Any], *limits: Any, **more: Any) -> Any:
        doubts: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        late_s = _LATE_S if self.is_at_work else _LATE_PING_S
        late = loop.call_later(late_s, lambda: doubts.append(loop.create_task(self._doubt())))
        try:
            return await super().wait(gen, *limits, **more)
        finally:
            late.cancel()
            for doubt in doubts:
                doubt.cancel()

    async def _doubt(self) -> None:
        """Cut this connection once nobody can be expected to answer."""
        for _ in range(int(_STATEMENT_TIMEOUT_S / _LATE_S) if self.is_at_work else 0):
            if not await self.has_witness():
                break
            await asyncio.sleep(_LATE_S)
        # Cancelled instead, it would wait for the server to cancel the statement.
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as one:
            one.shutdown(socket.SHUT_RDWR)


class _Server:
    """Opens connections, and asks on a new one whether the server answers, once for all."""

    def __init__(self) -> None:
        self._asking: asyncio.Task[bool] | None = None

    async def connect(self, *place: Any, **options: Any) -> _Connection:
        """Open a connection that is watched."""
        connection = await _Connection.connect(*place, **options)
        connection.is_at_work = True
        connection.has_witness = partial(self._answers, *place, **options)
        return connection

    async def _answers(self, *place: Any, **options: Any) -> bool:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(_answers(*place, **options))
        return await asyncio.shield(self._asking)


async def _answers(*place: Any, **options: Any) -> bool:
    try:
        async with await _Connection.connect(*place, **options) as connection:
            await connection.execute("SELECT 1")
    except psycopg.Error as error:
        # A refusal, such as of too many connections, is an answer.
        return error.sqlstate is not None
    return True
