"""Packs in a SQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from windrow_core.models.packs import Pack, PackDescription
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.database import Database, utc
from windrow_service.store.tables import require_row
from windrow_service.usecases.packs.errors import InvalidPackError
from windrow_service.usecases.packs.ports import StoredPack
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable

_PACKS = schema.packs.c
_SHOWN = [column for column in _PACKS if column is not _PACKS.sources]
_NEWEST = (_PACKS.made_at.desc(), _PACKS.pack_id)


class SqlPackStore:
    """`PackStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(
        self, table: StoredTable, description: PackDescription, source_count: int, sources: bytes
    ) -> Pack:
        now, pack_id = self._clock(), description.digest
        async with self._database.writing() as connection:
            row = await require_row(connection, table.info.name)
            if row.table_id != table.table_id:
                raise TableNotFoundError(table.info.name)
            query = sa.select(*_SHOWN).where(_PACKS.pack_id == pack_id)
            old = (await connection.execute(query)).one_or_none()
            if old is not None and (old.state, old.table_id) == ("published", table.table_id):
                return _pack(old)
            if old is not None:
                raise InvalidPackError(
                    f"pack {pack_id[:32]!r} is {old.state}, or of another table: pack the files anew"
                )
            values = {
                "pack_id": pack_id,
                "table_id": table.table_id,
                "source_count": source_count,
                "sources": sources,
                "state": "published",
                "made_at": now,
                **description.model_dump(exclude={"digest", "kind"}),
            }
            await connection.execute(sa.insert(schema.packs).values(values))
            await note(connection, now, "pack", "created", table=table.info.name, item=pack_id[:32])
            return _pack((await connection.execute(query)).one())

    async def published(self, table_id: int, definition: str) -> Sequence[Pack]:
        is_usable = (_PACKS.state == "published") & (_PACKS.definition == definition)
        query = sa.select(*_SHOWN).where(_PACKS.table_id == table_id, is_usable)
        return [_pack(row) for row in await self._database.rows(query.order_by(*_NEWEST))]

    async def sources(self, pack_ids: Sequence[str]) -> Mapping[str, bytes]:
        query = sa.select(_PACKS.pack_id, _PACKS.sources).where(
            _PACKS.pack_id.in_(pack_ids), _PACKS.sources.is_not(None)
        )
        return {row.pack_id: row.sources for row in await self._database.rows(query)}

    async def of_table(self, table_id: int, limit: int) -> Sequence[Pack]:
        query = sa.select(*_SHOWN).where(_PACKS.table_id == table_id)
        rows = await self._database.rows(query.order_by(*_NEWEST).limit(limit))
        return [_pack(row) for row in rows]

    async def everywhere(self) -> Sequence[StoredPack]:
        names = schema.tables.c
        query = (
            sa.select(*_SHOWN, names.name.label("table_name"))
            .outerjoin(schema.tables, names.table_id == _PACKS.table_id)
            .where(_PACKS.state != "removed")
            .order_by(_PACKS.table_id, *_NEWEST)
        )
        return [
            StoredPack(row.table_id, row.table_name, row.definition, _pack(row))
            for row in await self._database.rows(query)
        ]

    async def withdraw(self, pack_id: str, table: str | None, because: str) -> bool:
        now = self._clock()
        async with self._database.writing() as connection:
            result = await connection.execute(
                sa.update(schema.packs)
                .where(_PACKS.pack_id == pack_id, _PACKS.state == "published")
                .values(state="withdrawn", withdrawn_at=now, withdrawn_because=because)
            )
            if result.rowcount:
                await note(connection, now, "pack", "deleted", table=table, item=pack_id[:32])
            return result.rowcount == 1

    async def note_gone(self, pack_id: str, since: datetime | None) -> None:
        await self._set(pack_id, gone_since=since)

    async def note_removed(self, pack_id: str) -> None:
        await self._set(pack_id, state="removed", sources=None, removed_at=self._clock())

    async def _set(self, pack_id: str, **values: object) -> None:
        async with self._database.writing() as connection:
            await connection.execute(
                sa.update(schema.packs).where(_PACKS.pack_id == pack_id).values(values)
            )

    async def purge(self, before: datetime) -> int:
        async with self._database.writing() as connection:
            result = await connection.execute(
                sa.delete(schema.packs).where(_PACKS.state == "removed", _PACKS.removed_at < before)
            )
            return result.rowcount


def _pack(row: Any) -> Pack:
    times = ("made_at", "gone_since", "withdrawn_at", "removed_at")
    fields = {name: getattr(row, name) for name in Pack.model_fields}
    moments = {name: fields[name] and utc(fields[name]) for name in times}
    return Pack(**fields | moments)
