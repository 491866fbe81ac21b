"""Refuse changes to a table while a write moves files into it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.inventory.listing.locations import overlaps
from windrow_service.store import schema
from windrow_service.store.database import utc
from windrow_service.store.pages import without_nulls
from windrow_service.usecases.tables.errors import (
    FolderProtectedError,
    TableNotFoundError,
    TableProtectedError,
    WriteInProgressError,
)
from windrow_service.usecases.writes.errors import WriteNotFoundError, WriteStateError

_writes = schema.writes


async def lock_table(connection: AsyncConnection, table: str) -> int:
    """Lock a table's row until the transaction ends; return the table's number."""
    name = schema.tables.c.name
    # An update that changes nothing locks the row, in either database.
    result = await connection.execute(
        sa.update(schema.tables)
        .where(name == table)
        .values(name=name)
        .returning(schema.tables.c.table_id)
    )
    table_id = result.scalar_one_or_none()
    if table_id is None:
        raise TableNotFoundError(table)
    return int(table_id)


async def committing_write(connection: AsyncConnection, table_id: int) -> Any | None:
    """Return the row of the write that is moving files into a table, if any."""
    query = sa.select(_writes).where(
        _writes.c.table_id == table_id, _writes.c.state == "committing"
    )
    return (await connection.execute(query)).one_or_none()


async def refuse_others(
    connection: AsyncConnection, table_id: int, table: str, write_id: str | None = None
) -> None:
    """Refuse to change a table while a write moves files in, unless the write itself asks.

    The caller has locked the table's row in this transaction, so no write can begin to move files
    in meanwhile.
    """
    row = await committing_write(connection, table_id)
    if row is not None and row.write_id != write_id:
        raise in_progress(table, row)
    if row is None and write_id is not None:
        state = await connection.scalar(
            sa.select(_writes.c.state).where(
                _writes.c.table_id == table_id, _writes.c.write_id == write_id
            )
        )
        if state is None:
            raise WriteNotFoundError(table, write_id)
        raise WriteStateError(table, write_id, state, "published with a snapshot")


async def refuse_removal(connection: AsyncConnection, table_id: int, table: str) -> None:
    """Refuse to drop partitions of a table, whose row the caller has locked, if they are protected."""
    columns = schema.tables.c
    what = "its partitions cannot be dropped"
    query = sa.select(columns.deletion_protection).where(columns.table_id == table_id)
    if await connection.scalar(query):
        raise TableProtectedError(table, what)
    if await shares_protection(connection, table_id):
        raise FolderProtectedError(table, what)


async def shares_protection(connection: AsyncConnection, table_id: int) -> bool:
    """Return whether another table, which is protected, has a location that overlaps a table's own."""
    return bool(await sharing(connection, table_id, schema.tables.c.deletion_protection))


async def sharing(
    connection: AsyncConnection, table_id: int, which: sa.ColumnElement[bool] | None = None
) -> Sequence[str]:
    """Return the locations of other tables that overlap a table's own.

    Args:
        connection: A connection.
        table_id: The table.
        which: The only other tables that count; all by default.
    """
    columns = schema.tables.c
    location = location_in(columns.definition, connection.dialect.name)
    own = (await connection.scalars(sa.select(location).where(columns.table_id == table_id))).all()
    query = sa.select(location).where(columns.table_id != table_id)
    others = await connection.scalars(query if which is None else query.where(which))
    # There may be as many as there are tables.
    return await asyncio.to_thread(lambda: list(overlaps(others.all(), own)))


def location_in(definition: sa.ColumnElement[str], dialect: str) -> sa.ColumnElement[str]:
    """Return the location in a table's definition."""
    # SQLite has no type for JSON: a cast would make a number of the text.
    is_postgresql = dialect == "postgresql"
    tree = (
        sa.cast(without_nulls(definition), sa.JSON)
        if is_postgresql
        else sa.type_coerce(definition, sa.JSON)
    )
    location: sa.ColumnElement[str] = tree["location"].as_string()
    return location


def in_progress(table: str, row: Any) -> WriteInProgressError:
    """Return the error about a write in progress, given the write's row."""
    since, alive_until = utc(row.state_since), utc(row.lease_until)
    return WriteInProgressError(table, row.write_id, row.host, since, alive_until)
