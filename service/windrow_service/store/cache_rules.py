"""Cache rules in a SQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import AuditedOutcome, CacheRule, CacheRuleDefinition
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.commit_guard import lock_table
from windrow_service.store.database import Database, utc
from windrow_service.store.idempotency import claim, settle
from windrow_service.store.pages import MAX_PAGE_CHARACTERS, ParsedTexts
from windrow_service.store.table_names import is_among
from windrow_service.store.tables import new_version, require_row
from windrow_service.usecases.caches.errors import (
    CacheRuleChangedError,
    CacheRuleNotFoundError,
    CacheRulesTooLongError,
    TooManyCacheRulesError,
)
from windrow_service.usecases.caches.ports import MAX_CACHE_RULES, StoredCacheRule
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import NO_VERSION, Clock, Once, is_expected

# An expired rule can be looked up, and extended, for this long.
_KEPT = timedelta(days=1)
_RULES = schema.cache_rules.c
# Longer definitions are not shown in the list of all rules.
_MAX_SHOWN = 2_000
_TOO_LONG = '{"filter":"… (too long to be shown here)"}'
_SELECT = sa.select(schema.cache_rules, schema.tables.c.name.label("table_name")).join(
    schema.tables, schema.tables.c.table_id == _RULES.table_id
)


class SqlCacheRuleStore:
    """`CacheRuleStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(
        self,
        table: str,
        rule: str,
        definition: CacheRuleDefinition,
        if_match: str | None,
        once: Once | None = None,
    ) -> tuple[StoredCacheRule, bool]:
        """Make or replace a rule; repeating the same definition changes nothing."""
        now = self._clock()
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            table_id = await lock_table(connection, table)
            row = await _find(connection, table_id, rule)
            _check_version(table, rule, row, if_match)
            ends = definition.expires_at
            values: dict[str, object] = {
                "version": new_version(),
                "definition": definition.model_dump_json(),
                # SQLite does not store time zones.
                "expires_at": None if ends is None else ends.astimezone(timezone.utc),
            }
            if row is None:
                await _check_room(connection, table, table_id, rule, definition)
                values |= {"table_id": table_id, "name": rule, "created_at": now}
                await connection.execute(sa.insert(schema.cache_rules).values(values))
                await self._note(connection, "created", table, rule, None, values, definition)
            elif _definition(row.definition) != definition:
                await _check_length(connection, table, table_id, rule, definition)
                await connection.execute(
                    sa.update(schema.cache_rules).where(_is(table_id, rule)).values(values)
                )
                await self._note(connection, "changed", table, rule, row, values, definition)
            result = _stored(await _find(connection, table_id, rule)), row is None
            await settle(connection, once, result)
            return result

    async def everywhere(
        self, now: datetime, limit: int, among: Names
    ) -> Sequence[StoredCacheRule]:
        definition = schema.cache_rules.c.definition
        # Together, long ones would take too much memory.
        text = sa.case((sa.func.length(definition) <= _MAX_SHOWN, definition), else_=_TOO_LONG)
        others = [column for column in schema.cache_rules.c if column is not definition]
        query = (
            sa.select(*others, schema.tables.c.name.label("table_name"), text.label("definition"))
            .join(schema.tables, schema.tables.c.table_id == _RULES.table_id)
            .where(is_among(among), _RULES.expires_at.is_(None) | (_RULES.expires_at > now))
            .order_by(schema.tables.c.name, _RULES.name)
            .limit(limit)
        )
        rows = await self._database.rows(query)
        return [_stored(row, utc(row.expires_at) if row.expires_at else None) for row in rows]

    async def get(self, table: str, rule: str) -> StoredCacheRule:
        async with self._database.reading() as connection:
            table_row = await require_row(connection, table)
            return _stored(await _require(connection, table, table_row.table_id, rule))

    async def delete(
        self, table: str, rule: str, if_match: str | None, once: Once | None = None
    ) -> None:
        async with self._database.writing() as connection:
            await claim(connection, once, self._clock())
            table_id = await lock_table(connection, table)
            row = await _require(connection, table, table_id, rule)
            _check_version(table, rule, row, if_match)
            await connection.execute(sa.delete(schema.cache_rules).where(_is(table_id, rule)))
            await self._note(connection, "deleted", table, rule, row, {})
            await settle(connection, once, None)

    async def list(self, table: str) -> Sequence[StoredCacheRule]:
        async with self._database.reading() as connection:
            table_row = await require_row(connection, table)
            return await _by_name(connection, _RULES.table_id == table_row.table_id)

    async def active(self, table_id: int, now: datetime) -> Sequence[StoredCacheRule]:
        is_active = _RULES.expires_at.is_(None) | (_RULES.expires_at > now)
        async with self._database.reading() as connection:
            return await _by_name(connection, (_RULES.table_id == table_id) & is_active)

    async def purge(self, now: datetime) -> int:
        return await self._database.delete(schema.cache_rules, _RULES.expires_at <= now - _KEPT)

    async def _note(
        self,
        connection: AsyncConnection,
        outcome: AuditedOutcome,
        table: str,
        rule: str,
        row: Any,
        after: Mapping[str, Any],
        new: CacheRuleDefinition | None = None,
    ) -> None:
        await note(
            connection,
            self._clock(),
            "cache_rule",
            outcome,
            table=table,
            item=rule,
            before=None if row is None else row.version,
            after=after.get("version"),
            old=None if row is None else _definition(row.definition),
            new=new,
        )


async def _find(connection: AsyncConnection, table_id: int, rule: str) -> Any:
    return (await connection.execute(_SELECT.where(_is(table_id, rule)))).one_or_none()


async def _require(connection: AsyncConnection, table: str, table_id: int, rule: str) -> Any:
    row = await _find(connection, table_id, rule)
    if row is None:
        raise CacheRuleNotFoundError(table, rule)
    return row


async def _by_name(
    connection: AsyncConnection, condition: sa.ColumnElement[bool]
) -> list[StoredCacheRule]:
    rows = (await connection.execute(_SELECT.where(condition))).all()
    # Databases differ in the order of names.
    return [_stored(row) for row in sorted(rows, key=lambda row: row.name)]


def _is(table_id: int, rule: str) -> sa.ColumnElement[bool]:
    return (_RULES.table_id == table_id) & (_RULES.name == rule)


def _check_version(table: str, rule: str, row: Any, if_match: str | None) -> None:
    version = NO_VERSION if row is None else row.version
    if not is_expected(version, if_match):
        raise CacheRuleChangedError(table, rule, str(if_match), version)


async def _check_room(
    connection: AsyncConnection,
    table: str,
    table_id: int,
    rule: str,
    definition: CacheRuleDefinition,
) -> None:
    count = sa.select(sa.func.count()).where(_RULES.table_id == table_id)
    if (await connection.execute(count)).scalar_one() >= MAX_CACHE_RULES:
        raise TooManyCacheRulesError(table, MAX_CACHE_RULES)
    await _check_length(connection, table, table_id, rule, definition)


async def _check_length(
    connection: AsyncConnection,
    table: str,
    table_id: int,
    rule: str,
    definition: CacheRuleDefinition,
) -> None:
    # All rules are read for each plan, and listed in one answer.
    others = sa.select(sa.func.sum(sa.func.length(_RULES.definition))).where(
        _RULES.table_id == table_id, _RULES.name != rule
    )
    length = len(definition.model_dump_json())
    if length + ((await connection.execute(others)).scalar_one() or 0) > MAX_PAGE_CHARACTERS:
        raise CacheRulesTooLongError(table, MAX_PAGE_CHARACTERS)


@ParsedTexts
def _definition(text: str) -> CacheRuleDefinition:
    # Cached, because every plan reads all rules of its table.
    return CacheRuleDefinition.model_validate_json(text)


def _stored(row: Any, expires_at: datetime | None = None) -> StoredCacheRule:
    definition = _definition(row.definition)
    info = CacheRule(
        table=row.table_name,
        rule=row.name,
        filter=definition.filter,
        expires_at=expires_at or definition.expires_at,
        max_bytes=definition.max_bytes,
        created_at=utc(row.created_at),
    )
    return StoredCacheRule(table_id=row.table_id, info=info, version=row.version)
