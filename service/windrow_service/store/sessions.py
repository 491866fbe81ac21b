"""Browser sessions in a SQL database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from windrow_service.store import schema
from windrow_service.store.database import Database, utc
from windrow_service.usecases.access.ports import Identity, Session

_SESSIONS = schema.browser_sessions


class SqlSessionStore:
    """`SessionStore` in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session: Session, digest: str, most: int) -> None:
        proof = session.proof
        row = {
            "digest": digest,
            "principal": session.principal,
            "created_at": session.created_at,
            "expires_at": session.expires_at,
        }
        if isinstance(proof, Identity):
            row |= {"issuer": proof.issuer, "claims": json.dumps(dict(proof.claims))}
        else:
            row["token_digest"] = proof
        of_caller = _SESSIONS.c.principal == session.principal
        newest = (
            sa.select(_SESSIONS.c.digest)
            .where(of_caller)
            .order_by(_SESSIONS.c.created_at.desc(), _SESSIONS.c.digest)
            .limit(most)
        )
        async with self._database.writing() as connection:
            await connection.execute(sa.insert(_SESSIONS).values(row))
            await connection.execute(
                sa.delete(_SESSIONS).where(of_caller, _SESSIONS.c.digest.not_in(newest))
            )

    async def find(self, digest: str) -> Session | None:
        row = await self._database.row(sa.select(_SESSIONS).where(_SESSIONS.c.digest == digest))
        return None if row is None else _session(row)

    async def current(self, now: datetime, limit: int) -> Sequence[Session]:
        query = (
            sa.select(_SESSIONS)
            .where(_SESSIONS.c.expires_at > now)
            .order_by(_SESSIONS.c.created_at.desc(), _SESSIONS.c.digest)
            .limit(limit)
        )
        return [_session(row) for row in await self._database.rows(query)]

    async def remove(self, digest: str) -> None:
        await self._database.delete(_SESSIONS, _SESSIONS.c.digest == digest)

    async def remove_all_of(self, principal: str) -> int:
        return await self._database.delete(_SESSIONS, _SESSIONS.c.principal == principal)

    async def purge(self, now: datetime) -> int:
        return await self._database.delete(_SESSIONS, _SESSIONS.c.expires_at <= now)


def _session(row: Any) -> Session:
    expires_at = utc(row.expires_at)
    return Session(
        principal=row.principal,
        proof=row.token_digest
        or Identity(issuer=row.issuer, claims=json.loads(row.claims), expires_at=expires_at),
        created_at=utc(row.created_at),
        expires_at=expires_at,
    )
