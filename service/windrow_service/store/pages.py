"""Pages of lists, which are limited in bytes: a row may take megabytes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from cachetools import LRUCache
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

# Most characters of the rows of a page, unless a single row takes more.
MAX_PAGE_CHARACTERS = 4 * 2**20
# Rows whose sizes are looked at together.
_AT_A_TIME = 128
# Parsed models take some ten times as many bytes.
_MAX_KEPT_CHARACTERS = 8 * 2**20
_LEAST_CHARACTERS = 1_000
Parsed = TypeVar("Parsed")


async def fetch_page(
    connection: AsyncConnection,
    query: sa.Select[Any],
    key: sa.ColumnElement[Any],
    texts: tuple[sa.ColumnElement[Any], ...],
    limit: int,
) -> tuple[list[Any], bool]:
    """Return the first rows of a query, and whether more follow.

    Args:
        connection: A connection for reading.
        query: Selects all rows, in order.
        key: Column that tells the rows apart.
        texts: Columns that may be long.
        limit: Most rows to return.
    """
    size = sum((sa.func.coalesce(sa.func.length(text), 0) for text in texts), sa.literal(0))
    sizes = query.with_only_columns(key, size, maintain_column_froms=True)
    keys: list[Any] = []
    characters = 0
    more = False
    while not more:
        some = sizes.offset(len(keys)).limit(min(_AT_A_TIME, limit - len(keys) + 1))
        looked_at = (await connection.execute(some)).all()
        for one, length in looked_at:
            characters += length
            if len(keys) == limit or (keys and characters > MAX_PAGE_CHARACTERS):
                more = True
                break
            keys.append(one)
        if len(looked_at) < _AT_A_TIME:
            break
    if not keys:
        return [], False
    return list((await connection.execute(query.where(key.in_(keys)))).all()), more


def without_nulls(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a text of JSON in which null characters are replaced.

    PostgreSQL reads no field of a document that has one, such as in the name of a column.
    """
    return sa.func.replace(text, r"\u0000", r"\ufffd")


def as_json(text: sa.ColumnElement[Any], on_server: bool) -> sa.ColumnElement[Any]:
    """Return a text of JSON as a document whose fields can be named."""
    if on_server:
        return sa.cast(
            without_nulls(text), sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
        )
    # SQLite has no type for JSON: a cast would make a number of the text.
    return sa.type_coerce(text, sa.JSON)


def without_fields(
    text: sa.ColumnElement[Any], fields: tuple[str, ...], on_server: bool
) -> sa.ColumnElement[Any]:
    """Return a text of JSON without some fields of its object."""
    if not on_server:
        return sa.func.json_remove(text, *(f"$.{field}" for field in fields))
    result: sa.ColumnElement[Any] = sa.cast(without_nulls(text), postgresql.JSONB)
    for field in fields:
        result = result.op("-")(sa.cast(field, sa.Text))
    return sa.cast(result, sa.Text)


class ParsedTexts(Generic[Parsed]):
    """A function that parses texts, and keeps its latest results within bounds of memory."""

    def __init__(self, parse: Callable[..., Parsed]) -> None:
        self._parse = parse
        self._cache: LRUCache[Any, tuple[int, Parsed]] = LRUCache(
            _MAX_KEPT_CHARACTERS, getsizeof=lambda entry: entry[0]
        )
        # Embedded coordinators of one process have event loops in several threads.
        self._lock = threading.Lock()

    def __call__(self, *parts: Any) -> Parsed:
        """Return the result for some texts and other values."""
        with self._lock:
            entry = self._cache.get(parts)
        if entry is not None:
            return entry[1]
        parsed = self._parse(*parts)
        size = _LEAST_CHARACTERS + sum(len(part) for part in parts if isinstance(part, str))
        if size <= _MAX_KEPT_CHARACTERS:
            with self._lock:
                self._cache[parts] = size, parsed
        return parsed
