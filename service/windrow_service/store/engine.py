"""Open the metadata database."""

from __future__ import annotations

import secrets as tokens
import sqlite3
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from windrow_service.store import schema
from windrow_service.usecases.errors import StoreUnavailableError

# Writers wait for each other this long before SQLite gives up.
SQLITE_BUSY_MS = 30_000
_RETRY_AFTER_S = 5


class OutdatedDatabaseError(Exception):
    """A database file has the tables of another version of Windrow."""

    def __init__(self, path: Path, table: str) -> None:
        super().__init__(path, table)
        self.path = path
        self.table = table

    def __str__(self) -> str:
        return (
            f"{self.path} was made by another version of Windrow (its table {self.table!r} has "
            "other columns): move it away or choose another state folder, then register and "
            "refresh the tables again"
        )


async def open_sqlite(path: Path) -> AsyncEngine:
    """Open a SQLite database file, and make the file and its tables where they are missing.

    Raises:
        OutdatedDatabaseError: It has tables of another version.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file holds the key that signs page tokens.
    path.touch(mode=0o600)
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")

    @sa.event.listens_for(engine.sync_engine, "connect")
    def set_pragmas(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_MS}")
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "handle_error")
    def name_trouble(context: sa.engine.ExceptionContext) -> None:
        trouble = context.original_exception
        # Disk full, locked, damaged; what is left over are mistakes of this code.
        if isinstance(trouble, sqlite3.OperationalError) or type(trouble) is sqlite3.DatabaseError:
            raise StoreUnavailableError(str(trouble), _RETRY_AFTER_S) from trouble

    async with engine.begin() as connection:
        outdated = await connection.run_sync(_outdated_table)
        if outdated is None:
            await connection.run_sync(schema.metadata.create_all)
    if outdated is not None:
        await engine.dispose()
        raise OutdatedDatabaseError(path, outdated)
    return engine


def _outdated_table(connection: sa.Connection) -> str | None:
    inspector = sa.inspect(connection)
    existing = set(inspector.get_table_names())
    for table in schema.metadata.sorted_tables:
        if table.name not in existing:
            continue
        found = {column["name"] for column in inspector.get_columns(table.name)}
        if found != {column.name for column in table.columns}:
            return table.name
    return None


async def ping(engine: AsyncEngine) -> None:
    """Make sure that the database answers, and from its file.

    Raises:
        StoreUnavailableError: It does not.
    """
    async with engine.connect() as connection:
        await connection.scalar(sa.select(schema.secrets.c.name).limit(1))


async def signing_key(engine: AsyncEngine) -> str:
    """Return the key that signs page tokens; made once, then the same for all replicas."""
    async with engine.begin() as connection:
        await connection.execute(
            insert(schema.secrets)
            .values(name="page-tokens", value=tokens.token_urlsafe(32))
            .on_conflict_do_nothing()
        )
        return str(
            await connection.scalar(
                sa.select(schema.secrets.c.value).where(schema.secrets.c.name == "page-tokens")
            )
        )
