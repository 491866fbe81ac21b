"""Find names of tables: those in a set, and those that are similar to a name."""

from __future__ import annotations

import difflib
from collections import defaultdict

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.store import schema
from windrow_service.usecases.names import Names

_NAME = schema.tables.c.name
# Most names to compare, those of the most similar length; comparing them takes some milliseconds.
_COMPARED = 300


def is_among(
    names: Names, name: sa.ColumnElement[str] | sa.Column[str] = _NAME
) -> sa.ColumnElement[bool]:
    """Return the condition that a table's name is in a set.

    It avoids LIKE, which ignores case in SQLite.
    """
    if names.every:
        return sa.true()
    by_length: dict[int, list[str]] = defaultdict(list)
    for prefix in names.below:
        by_length[len(prefix)].append(prefix)
    begins = (
        sa.func.substr(name, 1, length).in_(prefixes) for length, prefixes in by_length.items()
    )
    return sa.or_(sa.false(), name.in_(names.exact), *begins)


async def similar_names(connection: AsyncConnection, name: str, among: Names) -> tuple[str, ...]:
    """Return the names that are similar to one, best first."""
    distance = sa.func.abs(sa.func.length(_NAME) - len(name))
    query = sa.select(_NAME).where(is_among(among)).order_by(distance, _NAME).limit(_COMPARED)
    by_lower = {original.lower(): original for original in await connection.scalars(query)}
    near = difflib.get_close_matches(name.lower(), by_lower, n=3)
    return tuple(by_lower[one] for one in near)
