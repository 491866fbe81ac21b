"""Bearer tokens in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.database import Database, utc
from windrow_service.store.idempotency import claim, settle
from windrow_service.store.pages import fetch_page
from windrow_service.usecases.access.errors import TokenNotFoundError
from windrow_service.usecases.access.grants import SCOPES, grants_on
from windrow_service.usecases.access.ports import Token
from windrow_service.usecases.ports import Once, Page

# How long expired and revoked tokens are still listed.
_KEPT = timedelta(days=30)


class SqlTokenStore:
    """`TokenStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, token: Token, digest: str, once: Once | None = None) -> None:
        row = {
            "token_id": token.token_id,
            "name": token.name,
            "digest": digest,
            "scopes": " ".join(token.scopes),
            "grants": " ".join(token.grants),
            "created_at": token.created_at,
            "expires_at": token.expires_at,
        }
        async with self._database.writing() as connection:
            await claim(connection, once, token.created_at)
            await connection.execute(sa.insert(schema.tokens).values(row))
            await note(
                connection,
                token.created_at,
                "token",
                "created",
                item=_named(token),
                new=_rights(token),
            )
            await settle(connection, once, token)

    async def find(self, digest: str) -> Token | None:
        query = sa.select(schema.tokens).where(schema.tokens.c.digest == digest)
        row = await self._database.row(query)
        return None if row is None else _token(row)

    async def list(self) -> Sequence[Token]:
        query = sa.select(schema.tokens).order_by(
            schema.tokens.c.name, schema.tokens.c.created_at, schema.tokens.c.token_id
        )
        return [_token(row) for row in await self._database.rows(query)]

    async def page(self, after: str, limit: int) -> Page[Token]:
        return await self._page(after, limit, sa.true())

    async def reaching(self, table: str, now: datetime, after: str, limit: int) -> Page[Token]:
        columns = schema.tokens.c
        is_valid = columns.revoked_at.is_(None) & (
            columns.expires_at.is_(None) | (columns.expires_at > now)
        )
        scopes = [scope for scope in SCOPES if "read" in SCOPES[scope]]
        has_one = [_has_word(columns.scopes, scope) for scope in scopes]
        has_one += [_has_word(columns.grants, grant) for grant in grants_on(table)]
        return await self._page(after, limit, is_valid & sa.or_(*has_one))

    async def _page(self, after: str, limit: int, condition: sa.ColumnElement[bool]) -> Page[Token]:
        order = (schema.tokens.c.name, schema.tokens.c.token_id)
        name, _, token_id = after.partition(" ")
        follows = sa.tuple_(*order) > sa.tuple_(sa.literal(name), sa.literal(token_id))
        query = sa.select(schema.tokens).where(follows, condition).order_by(*order)
        key, grants = schema.tokens.c.token_id, schema.tokens.c.grants
        async with self._database.reading() as connection:
            rows, more = await fetch_page(connection, query, key, (grants,), limit)
        return Page(map(_token, rows), more=more)

    async def revoke(self, token_id: str, now: datetime) -> Token:
        is_it = schema.tokens.c.token_id == token_id
        async with self._database.writing() as connection:
            result = await connection.execute(
                sa.update(schema.tokens)
                .where(is_it, schema.tokens.c.revoked_at.is_(None))
                .values(revoked_at=now)
            )
            rows = await connection.execute(sa.select(schema.tokens).where(is_it))
            row = rows.one_or_none()
            if row is None:
                raise TokenNotFoundError(token_id)
            token = _token(row)
            if result.rowcount:
                await note(
                    connection, now, "token", "deleted", item=_named(token), old=_rights(token)
                )
            return token

    async def purge(self, now: datetime) -> int:
        ended_at = sa.func.coalesce(schema.tokens.c.revoked_at, schema.tokens.c.expires_at)
        return await self._database.delete(schema.tokens, ended_at <= now - _KEPT)


def _has_word(text: sa.Column[str], word: str) -> sa.ColumnElement[bool]:
    """Return the condition that a text of words has one; LIKE would ignore case in SQLite."""
    words = sa.literal(" ") + sa.func.coalesce(text, "") + sa.literal(" ")
    return sa.func.replace(words, f" {word} ", "") != words


def _named(token: Token) -> str:
    return f"{token.name} ({token.token_id})"


def _rights(token: Token) -> dict[str, object]:
    ends = token.expires_at
    return {
        "scopes": token.scopes,
        "grants": token.grants,
        "expires_at": None if ends is None else ends.isoformat(),
    }


def _token(row: Any) -> Token:
    return Token(
        token_id=row.token_id,
        name=row.name,
        scopes=tuple(row.scopes.split()),
        grants=tuple((row.grants or "").split()),
        created_at=utc(row.created_at),
        expires_at=row.expires_at and utc(row.expires_at),
        revoked_at=row.revoked_at and utc(row.revoked_at),
    )
