"""Names of tables that may be meant by one that is none."""

from __future__ import annotations

import difflib

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.store import schema
from windrow_service.usecases.tables.errors import TableNotFoundError

# Those of about the same length; comparing them takes some milliseconds.
_COMPARED = 300


async def no_table(connection: AsyncConnection, name: str) -> TableNotFoundError:
    """Return the error for a table that is not there, with the names that are like its."""
    column = schema.tables.c.name
    distance = sa.func.abs(sa.func.length(column) - len(name))
    names = await connection.scalars(sa.select(column).order_by(distance, column).limit(_COMPARED))
    folded = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.lower(), folded, n=3)
    return TableNotFoundError(name, tuple(folded[one] for one in near))
