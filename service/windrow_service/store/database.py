"""The metadata database: connections, transactions, and the errors for its failures."""

from __future__ import annotations

import asyncio
import secrets as tokens
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from windrow_service.logs import get_logger
from windrow_service.store import migrate, schema
from windrow_service.store.clock import (
    DatabaseClock,
    Moment,
    Note,
    believed,
    is_worth_noting,
    machine_clock,
    machine_run,
    read_note,
    steady_s,
    write_note,
)
from windrow_service.store.failures import FOLDER, RETRY_AFTER_S, raise_named
from windrow_service.store.postgresql import postgresql_engine
from windrow_service.usecases.errors import OutcomeUnknownError, StoreUnavailableError
from windrow_service.usecases.ports import Clock

# Writers wait for each other this long before SQLite gives up.
SQLITE_BUSY_MS = 30_000
# Bytes that a small change writes, including its log.
_ROOM_BYTES = 64 * 2**10
_SET_CLOCK = "set the one that is wrong"
_TRUST_CLOCK = "set it, or, if it is right, run `windrow db trust-clock` on that machine"
_AFTER_COMMIT = "lines to log after the commit"
_log = get_logger(__name__)


class Database:
    """Transactions on one database.

    Every failure is a `StoreUnavailableError`, and nothing was changed; or an
    `OutcomeUnknownError`, if the connection broke while a change was being committed.

    Attributes:
        clock: Tells the time by the database.
    """

    def __init__(
        self, engine: AsyncEngine, reader: AsyncEngine, machine: Clock = machine_clock
    ) -> None:
        self._engine = engine
        # Beginning and ending a transaction around each read takes longer than the read.
        self._reader = reader
        self._machine = machine
        on_server = self.is_postgresql
        ask = self._time_of_server if on_server else self._time_of_machine
        self.clock = DatabaseClock(ask, machine, _SET_CLOCK if on_server else _TRUST_CLOCK)

    @property
    def is_postgresql(self) -> bool:
        """Whether this is PostgreSQL; otherwise it is SQLite."""
        return self._engine.dialect.name == "postgresql"

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection for reading; each statement sees the data committed by then."""
        try:
            async with _connected(self._reader) as connection:
                yield connection
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            raise_named(error)
            raise

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection in a transaction, which is committed if the body succeeds."""
        try:
            async with _connected(self._engine) as connection, connection.begin() as transaction:
                connection.info.pop(_AFTER_COMMIT, None)
                yield connection
                try:
                    await transaction.commit()
                except sa.exc.DBAPIError as error:
                    if error.connection_invalidated:
                        raise OutcomeUnknownError from error
                    raise
                for event, fields in connection.info.pop(_AFTER_COMMIT, ()):
                    _log.info(event, **fields)
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            raise_named(error)
            raise

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection on which each statement is its own transaction."""
        try:
            async with _connected(self._reader) as connection:
                yield connection
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
                raise OutcomeUnknownError from error
            raise_named(error)
            raise

    async def rows(self, query: sa.Executable) -> Sequence[Any]:
        """Return all rows of a query."""
        async with self.reading() as connection:
            return (await connection.execute(query)).all()

    async def row(self, query: sa.Executable) -> Any | None:
        """Return the row of a query that has one at most."""
        async with self.reading() as connection:
            return (await connection.execute(query)).one_or_none()

    async def delete(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> int:
        """Delete rows of a table; return how many."""
        async with self.writing() as connection:
            return (await connection.execute(sa.delete(table).where(condition))).rowcount

    async def ping(self) -> None:
        """Check that the database answers."""
        async with self.reading() as connection:
            await connection.scalar(sa.select(schema.secrets.c.name).limit(1))

    async def trust_machine(self) -> None:
        """Note that this machine's clock is right; PostgreSQL has a clock of its own."""
        if not self.is_postgresql:
            async with self.writing() as connection:
                await write_note(connection, Note(machine_run(), self._machine()))

    async def _time_of_server(self) -> Moment:
        async with self.reading() as connection:
            began_s = steady_s()
            at = await connection.scalar(sa.select(sa.func.clock_timestamp()))
            assert isinstance(at, datetime)
            return Moment(at, (began_s + steady_s()) / 2)

    async def _time_of_machine(self) -> Moment:
        async with self.reading() as connection:
            note = await read_note(connection)
        run, machine, began_s = machine_run(), self._machine(), steady_s()
        at = believed(note, run, machine)
        if is_worth_noting(note, run, at):
            # Without the note, this look is as good as one with it.
            with suppress(StoreUnavailableError):
                async with self.writing() as connection:
                    await write_note(connection, Note(run, at))
        return Moment(at, began_s)

    async def has_room(self) -> bool:
        """Return whether the embedded database's disk has room; always true for a database server."""
        if self._engine.url.database is None or self.is_postgresql:
            return True
        return await asyncio.to_thread(_has_room_in, Path(self._engine.url.database).parent)

    async def signing_key(self) -> str:
        """Return the key that signs page tokens; created once, then the same for all replicas."""
        return await self._made_once("page-tokens", tokens.token_urlsafe(32))

    async def installation(self) -> str:
        """Return the id of this database, which its copies have too."""
        return await self._made_once("installation", tokens.token_hex(16))

    async def _made_once(self, name: str, value: str) -> str:
        """Return what is stored under a name; store the value if there is nothing yet."""
        async with self.writing() as connection:
            secret = {"name": name, "value": value}
            await insert_missing(connection, schema.secrets, secret)
            query = sa.select(schema.secrets.c.value).where(schema.secrets.c.name == name)
            return str(await connection.scalar(query))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._reader.dispose()
        await self._engine.dispose()


async def open_database(url: sa.URL, machine: Clock = machine_clock) -> Database:
    """Open a database, and ask it for the time; upgrade an embedded one to the newest revision.

    Args:
        url: Where it is.
        machine: The clock of this machine.
    """
    if url.get_backend_name() == "sqlite":
        await asyncio.to_thread(upgrade_database, url)
        # Two engines: switching a connection between modes takes as long as a small statement.
        reader = _sqlite_engine(url, isolation_level="AUTOCOMMIT")
        writer = _sqlite_engine(url)
        _begin_as_writer(writer.sync_engine)
        database = Database(writer, reader, machine)
    else:
        engine = postgresql_engine(url)
        reader = engine.execution_options(isolation_level="AUTOCOMMIT")
        database = Database(engine, reader, machine)
    try:
        if database.is_postgresql:
            async with database.reading() as connection:
                await connection.run_sync(migrate.check)
        await database.clock.look()
    except BaseException:
        await database.aclose()
        raise
    return database


def upgrade_database(url: sa.URL) -> migrate.Upgraded:
    """Upgrade a database to the newest revision."""
    try:
        return migrate.upgrade(url)
    except sa.exc.DBAPIError as error:
        raise_named(error)
        raise


def database_path(state_dir: Path) -> Path:
    """Return the path of the embedded database."""
    return state_dir / "windrow.db"


def embedded_url(state_dir: Path) -> sa.URL:
    """Return the URL of the embedded database; create its file, readable only by this user."""
    path = database_path(state_dir)
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        # The database holds the key that signs page tokens.
        path.touch(mode=0o600)
    except OSError as error:
        reason = f"state folder {state_dir}: {error.strerror}"
        raise StoreUnavailableError(reason, RETRY_AFTER_S, False, FOLDER) from error
    return sa.URL.create("sqlite+aiosqlite", database=str(path))


def server_url(text: str) -> sa.URL:
    """Return the URL of a PostgreSQL database, with the driver used here."""
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
    # A caller may be cancelled at any moment. If cancelled while a connection is taken from or
    # returned to the pool, the pool would lose the connection, which would stay open.
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
    """Insert a row unless its key exists already; tell whether it was inserted.

    If another transaction is inserting the same key, this waits for that transaction to end.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).values(row).on_conflict_do_nothing()
    # Not every driver counts the rows of a statement with RETURNING.
    result = await connection.execute(statement.returning(*table.primary_key))
    return result.first() is not None


def after_commit(connection: AsyncConnection, event: str, fields: Mapping[str, Any]) -> None:
    """Write a line to the log once the transaction of `Database.writing` is committed."""
    connection.info.setdefault(_AFTER_COMMIT, []).append((event, fields))


def _has_room_in(folder: Path) -> bool:
    # Do not write to the database: that would wait for other writers.
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM_BYTES))
            file.flush()
    except OSError:
        return False
    return True


def utc(stamp: datetime) -> datetime:
    """Return a time from a row with its time zone, which SQLite drops."""
    return stamp if stamp.tzinfo else stamp.replace(tzinfo=timezone.utc)


def _until_free() -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(sqlite3.OperationalError),
        wait=wait_random(0.01, 0.05),
        stop=stop_after_delay(SQLITE_BUSY_MS / 1000),
        reraise=True,
    )


def _begin_as_writer(engine: sa.Engine) -> None:
    """Let one transaction after the other read and write.

    The driver would begin a transaction at its first change: what another one commits between a query
    and that change would be overwritten.
    """

    @sa.event.listens_for(engine, "connect")
    def begin_nothing(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _sqlite_engine(url: sa.URL, **options: Any) -> AsyncEngine:
    engine = create_async_engine(url, **options)
    rollbacks: set[asyncio.Future[None]] = set()

    def forget(task: asyncio.Future[None]) -> None:
        rollbacks.discard(task)
        if not task.cancelled():
            # Of a connection that is closed already.
            task.exception()

    @sa.event.listens_for(engine.sync_engine, "connect")
    def set_pragmas(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_MS}")
        cursor.execute("PRAGMA foreign_keys = ON")
        # The first to open the file switches the mode; others fail meanwhile instead of waiting.
        for attempt in _until_free():
            with attempt:
                cursor.execute("PRAGMA journal_mode = WAL")
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "invalidate")
    def roll_back(connection: Any, _: object, error: BaseException | None) -> None:
        if not isinstance(error, asyncio.CancelledError):
            return
        # The connection is closed next, which ends its transaction only if no statement has rows
        # left: others would wait for the garbage collector until they may write.
        task = asyncio.ensure_future(connection.driver_connection.rollback())
        rollbacks.add(task)
        task.add_done_callback(forget)

    return engine
