"""The metadata database: connections, transactions, and what its trouble is called."""

from __future__ import annotations

import asyncio
import secrets as tokens
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from windrow_service.store import migrate, schema
from windrow_service.usecases.errors import OutcomeUnknownError, StoreUnavailableError

# Writers wait for each other this long before SQLite gives up.
SQLITE_BUSY_MS = 30_000
_RETRY_AFTER_S = 2
_CONNECT_TIMEOUT_S = 5
# What a small change writes, its log included.
_ROOM_BYTES = 64 * 2**10
# Longer than any statement here takes; a database that hangs must not hang callers for ever.
_STATEMENT_TIMEOUT_MS = 120_000
_POOL_SIZE = 10
_IDLE_S = 2.0


class Database:
    """Transactions on one database; every trouble is a `StoreUnavailableError`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        # To begin and to end a transaction around each look takes longer than the look.
        self._reader = engine.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def is_postgresql(self) -> bool:
        """Whether it is PostgreSQL; else SQLite."""
        return self._engine.dialect.name == "postgresql"

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection to read with; each statement sees what is there by then.

        Raises:
            StoreUnavailableError: The database does not answer.
        """
        try:
            async with _connected(self._reader) as connection:
                yield connection
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            raise_named(error)
            raise

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection in a transaction, which is committed if the body ends well.

        Raises:
            StoreUnavailableError: The database does not answer, or is full; nothing was changed.
            OutcomeUnknownError: The connection broke while the change was being committed.
        """
        try:
            async with _connected(self._engine) as connection, connection.begin() as transaction:
                yield connection
                try:
                    await transaction.commit()
                except sa.exc.DBAPIError as error:
                    if error.connection_invalidated:
                        raise OutcomeUnknownError from error
                    raise
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            raise_named(error)
            raise

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection on which each statement is a transaction by itself.

        Raises:
            StoreUnavailableError: The database does not answer, or is full; nothing was changed.
            OutcomeUnknownError: The connection broke while a statement ran.
        """
        try:
            async with _connected(self._reader) as connection:
                yield connection
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
                raise OutcomeUnknownError from error
            raise_named(error)
            raise

    async def ping(self) -> None:
        """Make sure that the database answers.

        Raises:
            StoreUnavailableError: It does not.
        """
        async with self.reading() as connection:
            await connection.scalar(sa.select(schema.secrets.c.name).limit(1))

    async def has_room(self) -> bool:
        """Tell whether the embedded database's disk takes more; of a server nobody can tell."""
        if self._engine.url.database is None or self.is_postgresql:
            return True
        return await asyncio.to_thread(_takes_more, Path(self._engine.url.database).parent)

    async def signing_key(self) -> str:
        """Return the key that signs page tokens; made once, then the same for all replicas."""
        async with self.writing() as connection:
            secret = {"name": "page-tokens", "value": tokens.token_urlsafe(32)}
            await insert_missing(connection, schema.secrets, secret)
            return str(
                await connection.scalar(
                    sa.select(schema.secrets.c.value).where(schema.secrets.c.name == "page-tokens")
                )
            )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


async def open_database(url: sa.URL) -> Database:
    """Open a database; one that is embedded is brought to the newest revision.

    Raises:
        RevisionError: It is not at the newest revision.
        StoreUnavailableError: It does not answer.
    """
    if url.get_backend_name() == "sqlite":
        await asyncio.to_thread(upgrade_database, url)
        return Database(_sqlite_engine(url))
    engine = _postgresql_engine(url)
    database = Database(engine)
    try:
        async with database.reading() as connection:
            await connection.run_sync(migrate.check)
    except BaseException:
        await engine.dispose()
        raise
    return database


def upgrade_database(url: sa.URL) -> migrate.Upgraded:
    """Bring a database to the newest revision.

    Raises:
        RevisionError: It is of a later version of Windrow, or not Windrow's.
        StoreUnavailableError: It does not answer, or is full; nothing was changed.
    """
    try:
        return migrate.upgrade(url)
    except sa.exc.DBAPIError as error:
        raise_named(error)
        raise


def database_path(state_dir: Path) -> Path:
    """Return where the embedded database lies."""
    return state_dir / "windrow.db"


def embedded_url(state_dir: Path) -> sa.URL:
    """Return the URL of the embedded database; its file is made, for this user alone.

    Raises:
        StoreUnavailableError: It cannot be made.
    """
    path = database_path(state_dir)
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        # The file holds the key that signs page tokens.
        path.touch(mode=0o600)
    except OSError as error:
        reason = f"state folder {state_dir}: {error.strerror}"
        raise StoreUnavailableError(reason, _RETRY_AFTER_S, passing=False) from error
    return sa.URL.create("sqlite+aiosqlite", database=str(path))


def server_url(text: str) -> sa.URL:
    """Return the URL of a PostgreSQL database, with the driver that is used here.

    Raises:
        ValueError: It is not one; the text is not repeated, since it may hold a password.
    """
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise ValueError("it is not a URL such as postgresql://user@host/database") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise ValueError(
            f"{url.get_backend_name()!r} is not supported: use postgresql://user@host/database"
        )
    return url.set(drivername="postgresql+psycopg")


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    connection = engine.connect()
    try:
        await _in_full(connection.start())
        yield connection
    finally:
        if connection.sync_connection is not None:
            await _in_full(connection.close())


async def _in_full(step: Awaitable[object]) -> None:
    # A caller may be cancelled at any moment. Cut short, a connection being taken from the pool
    # or given back to it is lost to it, and outlives the pool.
    task = asyncio.ensure_future(step)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


async def insert_missing(
    connection: AsyncConnection, table: sa.Table, row: Mapping[str, Any]
) -> bool:
    """Insert a row unless its key is there already; tell whether it was inserted.

    Of a key that another transaction is inserting, the end of that one is waited for.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).values(row).on_conflict_do_nothing()
    # Not every driver counts the rows of a statement that returns a key.
    inserted = await connection.execute(statement.returning(*table.primary_key))
    return inserted.first() is not None


def _takes_more(folder: Path) -> bool:
    # Not a write of the database's own: that would wait for those of others.
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM_BYTES))
            file.flush()
    except OSError:
        return False
    return True


def utc(stamp: datetime) -> datetime:
    """Return a time of a row with its time zone, which SQLite forgets."""
    return stamp if stamp.tzinfo else stamp.replace(tzinfo=timezone.utc)


def _until_free() -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(sqlite3.OperationalError),
        wait=wait_random(0.01, 0.05),
        stop=stop_after_delay(SQLITE_BUSY_MS / 1000),
        reraise=True,
    )


def _sqlite_engine(url: sa.URL) -> AsyncEngine:
    engine = create_async_engine(url)

    @sa.event.listens_for(engine.sync_engine, "connect")
    def set_pragmas(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_MS}")
        cursor.execute("PRAGMA foreign_keys = ON")
        # Whoever opens the file first switches it; SQLite does not let the others wait for that.
        for attempt in _until_free():
            with attempt:
                cursor.execute("PRAGMA journal_mode = WAL")
        cursor.close()

    return engine


class _BinaryCursor(psycopg.AsyncCursor[Any]):
    """Asks for results as bytes; as text, manifests and groups would be twice as long."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], **options: Any) -> None:
        super().__init__(connection, **options)
        self.format = psycopg.pq.Format.BINARY


def _postgresql_engine(url: sa.URL) -> AsyncEngine:
    engine = create_async_engine(
        url,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_timeout=_CONNECT_TIMEOUT_S,
        connect_args={
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "options": f"-c statement_timeout={_STATEMENT_TIMEOUT_MS} -c timezone=UTC",
            "keepalives_idle": 30,
            "cursor_factory": _BinaryCursor,
        },
    )

    @sa.event.listens_for(engine.sync_engine, "checkin")
    def note_use(_: object, record: sa.pool.ConnectionPoolEntry) -> None:
        record.info["used_at_s"] = time.monotonic()

    @sa.event.listens_for(engine.sync_engine, "checkout")
    def make_sure_it_lives(
        connection: sa.engine.interfaces.DBAPIConnection,
        record: sa.pool.ConnectionPoolEntry,
        _: object,
    ) -> None:
        # The server may have been restarted; of connections in use, their users find out.
        if time.monotonic() - record.info.get("used_at_s", 0.0) < _IDLE_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            # The pool opens another.
            raise sa.exc.DisconnectionError from error

    return engine


def raise_named(error: sa.exc.DBAPIError | sa.exc.TimeoutError) -> None:
    """Raise trouble with the database under its name; return for mistakes of this code.

    Raises:
        StoreUnavailableError: The database is gone, shutting down, full, locked or damaged.
    """
    if isinstance(error, sa.exc.TimeoutError):
        reason = "all of its connections are in use"
        raise StoreUnavailableError(reason, _RETRY_AFTER_S, passing=True) from error
    trouble = error.orig
    if type(trouble) is sqlite3.DatabaseError or isinstance(
        trouble, (sqlite3.OperationalError, psycopg.OperationalError, psycopg.InterfaceError)
    ):
        passing = isinstance(trouble, psycopg.Error)
        raise StoreUnavailableError(_reason(trouble), _RETRY_AFTER_S, passing) from error


def _reason(trouble: BaseException) -> str:
    if isinstance(trouble, psycopg.Error):
        # Without a state it is libpq's own, which names host, user and database.
        return "no connection" if trouble.sqlstate is None else _first_line(trouble)
    return str(trouble)


def _first_line(trouble: psycopg.Error) -> str:
    return (trouble.diag.message_primary or type(trouble).__name__).splitlines()[0]
