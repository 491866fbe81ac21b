"""Suggestions for a table name that does not exist."""

from __future__ import annotations

import difflib

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.store import schema
from windrow_service.usecases.tables.errors import TableNotFoundError

# Most names to compare, those of similar length; comparing them takes some milliseconds.
_COMPARED = 300


async def no_table(connection: AsyncConnection, name: str) -> TableNotFoundError:
    """Return the error for a missing table, with the names of tables that are similar."""
    column = schema.tables.c.name
    distance = sa.func.abs(sa.func.length(column) - len(name))
    names = await connection.scalars(sa.select(column).order_by(distance, column).limit(_COMPARED))
    folded = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.lower(), folded, n=3)
    return TableNotFoundError(name, tuple(folded[one] for one in near))
