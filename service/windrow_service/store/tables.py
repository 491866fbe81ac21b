"""Registered tables in a SQL database."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import SnapshotInfo, TableDefinition, TableInfo
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.commit_guard import (
    location_in,
    lock_table,
    refuse_others,
    shares_protection,
)
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.store.idempotency import claim, settle
from windrow_service.store.pages import ParsedTexts, fetch_page
from windrow_service.store.table_names import is_among, similar_names
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import NO_VERSION, Clock, Once, Page, is_expected
from windrow_service.usecases.tables.errors import (
    TableChangedError,
    TableNotFoundError,
    TableProtectedError,
    UnconfirmedReplacementError,
)
from windrow_service.usecases.tables.ports import StoredTable

# As the audit log has them.
_PROTECTION = {True: "protected", False: "not protected"}
_SELECT = sa.select(
    schema.tables,
    schema.snapshots.c.info.label("snapshot"),
    sa.exists()
    .where(schema.cache_rules.c.table_id == schema.tables.c.table_id)
    .label("has_cache_rules"),
).outerjoin(
    schema.snapshots,
    (schema.snapshots.c.table_id == schema.tables.c.table_id)
    & (schema.snapshots.c.snapshot_id == schema.tables.c.current_snapshot_id),
)


class SqlTableStore:
    """`TableStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(
        self,
        name: str,
        definition: TableDefinition,
        if_match: str | None,
        once: Once | None = None,
        *,
        replace: bool = False,
    ) -> tuple[StoredTable, bool]:
        # `*` fits any table, so whoever sends it has not looked at this one.
        consent = replace or if_match not in (None, "*")
        while True:
            try:
                return await self._put(name, definition, if_match, once, consent)
            except _OvertakenError:
                # Another caller has just registered or changed the same name: try again.
                continue

    async def _put(
        self,
        name: str,
        definition: TableDefinition,
        if_match: str | None,
        once: Once | None,
        consent: bool,
    ) -> tuple[StoredTable, bool]:
        now = self._clock()
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            row = await find_row(connection, name)
            check_version(name, row, if_match)
            if row is None:
                new = {
                    "name": name,
                    "version": new_version(),
                    "definition": definition.model_dump_json(),
                    "created_at": now,
                    "updated_at": now,
                    "last_snapshot_id": 0,
                }
                if not await insert_missing(connection, schema.tables, new):
                    raise _OvertakenError
                await note(
                    connection,
                    now,
                    "table",
                    "created",
                    table=name,
                    after=str(new["version"]),
                    new=definition,
                )
            elif (before := TableDefinition.model_validate_json(row.definition)) != definition:
                await _change(connection, row, before, definition, now, consent=consent)
            result = stored(await find_row(connection, name)), row is None
            await settle(connection, once, result)
            return result

    async def protect(
        self, name: str, deletion_protection: bool, if_match: str | None, once: Once | None = None
    ) -> StoredTable:
        now = self._clock()
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            await lock_table(connection, name)
            row = await require_row(connection, name)
            check_version(name, row, if_match)
            if row.deletion_protection != deletion_protection:
                await connection.execute(
                    sa.update(schema.tables)
                    .where(schema.tables.c.table_id == row.table_id)
                    .values(
                        deletion_protection=deletion_protection,
                        version=new_version(),
                        updated_at=now,
                    )
                )
                before, after = (
                    _PROTECTION[not deletion_protection],
                    _PROTECTION[deletion_protection],
                )
                await note(
                    connection, now, "protection", "changed", table=name, before=before, after=after
                )
            result = stored(await require_row(connection, name))
            await settle(connection, once, result)
            return result

    async def get(self, name: str) -> StoredTable:
        async with self._database.reading() as connection:
            return stored(await require_row(connection, name))

    async def page(self, after: str, limit: int, among: Names) -> Page[StoredTable]:
        name = schema.tables.c.name
        query = _SELECT.where(name > after, is_among(among)).order_by(name)
        texts = (schema.tables.c.definition, schema.snapshots.c.info)
        async with self._database.reading() as connection:
            rows, more = await fetch_page(connection, query, schema.tables.c.table_id, texts, limit)
        return Page(map(stored, rows), more=more)

    async def locations(self, among: Names) -> Sequence[str]:
        async with self._database.reading() as connection:
            location = location_in(schema.tables.c.definition, connection.dialect.name)
            return (await connection.scalars(sa.select(location).where(~is_among(among)))).all()

    async def shares_protection(self, table_id: int) -> bool:
        async with self._database.reading() as connection:
            return await shares_protection(connection, table_id)

    async def similar(self, name: str, among: Names) -> Sequence[str]:
        async with self._database.reading() as connection:
            return await similar_names(connection, name, among)

    async def delete(self, name: str, if_match: str | None, once: Once | None = None) -> None:
        async with self._database.writing() as connection:
            now = self._clock()
            await claim(connection, once, now)
            await lock_table(connection, name)
            row = await require_row(connection, name)
            check_version(name, row, if_match)
            if row.deletion_protection:
                raise TableProtectedError(name, "it cannot be deleted")
            await refuse_others(connection, row.table_id, name)
            await connection.execute(
                sa.delete(schema.tables).where(schema.tables.c.table_id == row.table_id)
            )
            await note(
                connection,
                now,
                "table",
                "deleted",
                table=name,
                before=row.version,
                old=TableDefinition.model_validate_json(row.definition),
            )
            await settle(connection, once, None)


async def _change(
    connection: AsyncConnection,
    row: Any,
    before: TableDefinition,
    after: TableDefinition,
    now: datetime,
    *,
    consent: bool,
) -> None:
    changes: dict[str, object] = {
        "definition": after.model_dump_json(),
        "version": new_version(),
        "updated_at": now,
    }
    drops_snapshots = _reads_files_differently(before, after)
    if drops_snapshots:
        changes |= {"current_snapshot_id": None, "checked_at": None}
    drops_partitions = _has_other_partitions(before, after)
    if drops_partitions:
        changes["partition_count"] = None
    # This comes first: it takes the lock, and checks that `row` is still up to date.
    result = await connection.execute(
        sa.update(schema.tables)
        .where(schema.tables.c.table_id == row.table_id, schema.tables.c.version == row.version)
        .values(version=changes["version"])
    )
    if result.rowcount != 1:
        raise _OvertakenError
    await refuse_others(connection, row.table_id, row.name)
    if not consent or row.deletion_protection:
        await _refuse_losses(connection, row, before, after, consent=consent)
    await connection.execute(
        sa.update(schema.tables).where(schema.tables.c.table_id == row.table_id).values(changes)
    )
    await note(
        connection,
        now,
        "table",
        "changed",
        table=row.name,
        before=row.version,
        after=str(changes["version"]),
        old=before,
        new=after,
    )
    if drops_snapshots:
        await connection.execute(
            sa.delete(schema.snapshots).where(schema.snapshots.c.table_id == row.table_id)
        )
    if drops_partitions:
        lists = schema.partition_lists
        await connection.execute(sa.delete(lists).where(lists.c.table_id == row.table_id))


async def _refuse_losses(
    connection: AsyncConnection,
    row: Any,
    before: TableDefinition,
    after: TableDefinition,
    *,
    consent: bool,
) -> None:
    """Refuse a change of the location, or one that drops snapshots or the list of partitions.

    Another location may be a mistake of somebody who does not know that the name is taken, even
    if there is nothing to drop. Nobody can consent to losses of a protected table. The caller has
    locked the table's row in this transaction, so nothing can be added meanwhile.
    """
    count = 0
    if _reads_files_differently(before, after):
        of_table = schema.snapshots.c.table_id == row.table_id
        query = sa.select(sa.func.count()).select_from(schema.snapshots).where(of_table)
        count = (await connection.execute(query)).scalar_one()
    partitions = row.partition_count if _has_other_partitions(before, after) else None
    fields = TableDefinition.model_fields
    names = tuple(name for name in fields if getattr(before, name) != getattr(after, name))
    is_loss = count > 0 or partitions is not None
    if is_loss and row.deletion_protection:
        what = f"its snapshots and its list of partitions cannot be dropped by a new {names[0]}"
        raise TableProtectedError(row.name, what)
    if not consent and (is_loss or before.location != after.location):
        raise UnconfirmedReplacementError(row.name, before.location, names, count, partitions)


async def find_row(connection: AsyncConnection, name: str) -> Any:
    """Return the row of a table joined with its current snapshot; None if there is no table."""
    return (await connection.execute(_SELECT.where(schema.tables.c.name == name))).one_or_none()


async def require_row(connection: AsyncConnection, name: str) -> Any:
    """Return the row of a table joined with its current snapshot."""
    row = await find_row(connection, name)
    if row is None:
        raise TableNotFoundError(name)
    return row


async def advance(
    connection: AsyncConnection,
    table: StoredTable,
    *conditions: sa.ColumnElement[bool],
    **values: object,
) -> None:
    """Change the row of a table, unless it has changed since the caller read it.

    The version changes with definition and snapshot: this is the compare-and-set.
    """
    tables = schema.tables.c
    is_same = (tables.table_id == table.table_id) & (tables.version == table.version)
    result = await connection.execute(
        sa.update(schema.tables).where(is_same, *conditions).values(values)
    )
    if result.rowcount != 1:
        row = await require_row(connection, table.info.name)
        raise TableChangedError(table.info.name, table.version, row.version)


def new_version() -> str:
    """Return a version that was never used, so that a re-created table has a new one."""
    return secrets.token_hex(8)


class _OvertakenError(Exception):
    """The row has changed since it was read."""


def check_version(name: str, row: Any, if_match: str | None) -> None:
    """Check that a table's row has the version that a caller expects; `*` means any version."""
    version = NO_VERSION if row is None else row.version
    if not is_expected(version, if_match):
        raise TableChangedError(name, str(if_match), version)


def _reads_files_differently(before: TableDefinition, after: TableDefinition) -> bool:
    # Columns of Bloom filters may differ: a refresh builds missing filters, and until then plans
    # do without them.
    same = {
        name: getattr(after, name)
        for name in (
            "sort_columns",
            "bloom_columns",
            "plan_options",
            "trust_folder_times",
            "imported_from",
        )
    }
    if before.kind is after.kind:
        passing = after.kind.passing_options
        older = {name: text for name, text in before.format_options.items() if name not in passing}
        newer = {name: text for name, text in after.format_options.items() if name in passing}
        same["format_options"] = {**older, **newer}
    return before.model_copy(update=same) != after


def _has_other_partitions(before: TableDefinition, after: TableDefinition) -> bool:
    return (before.location, before.partition_columns) != (after.location, after.partition_columns)


@ParsedTexts
def _info(
    name: str,
    definition: str,
    created_at: datetime,
    updated_at: datetime,
    snapshot: str | None,
    partition_count: int | None,
    deletion_protection: bool,
) -> TableInfo:
    return TableInfo(
        name=name,
        definition=TableDefinition.model_validate_json(definition),
        created_at=utc(created_at),
        updated_at=utc(updated_at),
        current_snapshot=SnapshotInfo.model_validate_json(snapshot) if snapshot else None,
        partition_count=partition_count,
        deletion_protection=deletion_protection,
    )


def stored(row: Any) -> StoredTable:
    """Return the table in a row of `find_row`."""
    return StoredTable(
        table_id=row.table_id,
        info=_info(
            row.name,
            row.definition,
            row.created_at,
            row.updated_at,
            row.snapshot,
            row.partition_count,
            row.deletion_protection,
        ),
        version=row.version,
        checked_at=utc(row.checked_at) if row.checked_at is not None else None,
        has_cache_rules=row.has_cache_rules,
    )
