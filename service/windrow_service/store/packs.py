"""Packs in a SQL database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models.packs import LONGEST_LEASE_S, Pack, PackDescription
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.store.tables import require_row
from windrow_service.usecases.packs.errors import InvalidPackError, PackingRunOverError
from windrow_service.usecases.packs.ports import PackRun, StoredPack
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable

_PACKS, _RUNS = schema.packs.c, schema.pack_runs.c
_SHOWN = [column for column in _PACKS if column.name not in ("sources", "figures")]
_NEWEST = (_PACKS.made_at.desc(), _PACKS.pack_id)
# A longer lease is one from before the clock was set back.
_LONGEST_LEASE = timedelta(seconds=LONGEST_LEASE_S)


class SqlPackStore:
    """`PackStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def renew_run(self, table: StoredTable, run: PackRun, snapshot_id: int) -> None:
        row = {name: getattr(run, name) for name in PackRun.__dataclass_fields__}
        async with self._database.writing() as connection:
            if await insert_missing(connection, schema.pack_runs, row):
                snapshots = schema.snapshots.c
                query = sa.select(snapshots.snapshot_id).where(
                    snapshots.table_id == table.table_id, snapshots.snapshot_id == snapshot_id
                )
                # So that it is dropped before the run begins, or after, and then the run lapses.
                query = query.with_for_update(read=True, key_share=True)
                if await connection.scalar(query) is None:
                    raise PackingRunOverError(table.info.name, run.run_id)
            await self._renew(connection, table, run.run_id, run.lease_until)

    async def _renew(
        self,
        connection: AsyncConnection,
        table: StoredTable,
        run_id: str,
        lease_until: datetime | None = None,
    ) -> None:
        """Make sure that a run may publish packs until the transaction ends, and renew its lease."""
        renewal = sa.update(schema.pack_runs).where(
            _RUNS.run_id == run_id,
            _RUNS.table_id == table.table_id,
            _RUNS.lapsed_at.is_(None),
            _RUNS.lease_until > self._clock(),
        )
        until = _RUNS.lease_until if lease_until is None else lease_until
        if (await connection.execute(renewal.values(lease_until=until))).rowcount != 1:
            raise PackingRunOverError(table.info.name, run_id)

    async def end_run(self, table_id: int, run_id: str) -> None:
        async with self._database.writing() as connection:
            is_it = (_RUNS.run_id == run_id) & (_RUNS.table_id == table_id)
            await connection.execute(sa.delete(schema.pack_runs).where(is_it))

    async def lapsed_runs(self, table_id: int | None = None) -> Sequence[PackRun]:
        of_table = sa.true() if table_id is None else _RUNS.table_id == table_id
        query = sa.select(schema.pack_runs).where(of_table)
        # Without any, which is the rule, nothing is locked.
        if not await self._database.rows(query):
            return []
        now = self._clock()
        is_over = of_table
        if table_id is None:
            is_over = (_RUNS.lease_until <= now) | (_RUNS.lease_until > now + 2 * _LONGEST_LEASE)
        async with self._database.writing() as connection:
            await connection.execute(
                sa.update(schema.pack_runs)
                .where(_RUNS.lapsed_at.is_(None), is_over)
                .values(lapsed_at=now)
            )
            rows = await connection.execute(query.where(_RUNS.lapsed_at.is_not(None)))
            return [
                PackRun(
                    run_id=row.run_id,
                    table_id=row.table_id,
                    home=row.home,
                    lease_until=utc(row.lease_until),
                    lapsed_at=utc(row.lapsed_at),
                )
                for row in rows
            ]

    async def paths(self, table_id: int) -> Collection[str]:
        query = sa.select(_PACKS.path).where(_PACKS.table_id == table_id, _PACKS.state != "removed")
        return frozenset(row.path for row in await self._database.rows(query))

    async def add(
        self,
        table: StoredTable,
        run_id: str,
        description: PackDescription,
        source_count: int,
        sources: bytes,
        figures: bytes | None = None,
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
                    f"pack {pack_id[:32]!r} is {old.state}, or of another table: pack the files again"
                )
            await self._renew(connection, table, run_id)
            values = {
                "pack_id": pack_id,
                "table_id": table.table_id,
                "source_count": source_count,
                "sources": sources,
                "figures": figures,
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

    async def figures(self, pack_ids: Sequence[str]) -> Mapping[str, bytes]:
        query = sa.select(_PACKS.pack_id, _PACKS.figures).where(
            _PACKS.pack_id.in_(pack_ids), _PACKS.figures.is_not(None)
        )
        return {row.pack_id: row.figures for row in await self._database.rows(query)}

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
        await self._set(
            pack_id, state="removed", sources=None, figures=None, removed_at=self._clock()
        )

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
            await connection.execute(sa.delete(schema.pack_runs).where(_RUNS.lapsed_at < before))
            return result.rowcount


def _pack(row: Any) -> Pack:
    times = ("made_at", "gone_since", "withdrawn_at", "removed_at")
    fields = {name: getattr(row, name) for name in Pack.model_fields}
    moments = {name: fields[name] and utc(fields[name]) for name in times}
    return Pack(**fields | moments)
