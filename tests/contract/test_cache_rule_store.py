"""Behaviour of the store of cache rules on every database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
import sqlalchemy as sa

from tests.support.servers.databases import on_database
from windrow_core.models import CacheRuleDefinition, TableDefinition
from windrow_service.store.cache_rules import SqlCacheRuleStore
from windrow_service.store.database import Database
from windrow_service.store.idempotency import SqlOnceStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.usecases.caches.errors import (
    CacheRuleChangedError,
    CacheRuleNotFoundError,
    TooManyCacheRulesError,
)
from windrow_service.usecases.caches.ports import MAX_CACHE_RULES
from windrow_service.usecases.errors import RepeatedRequestError
from windrow_service.usecases.ports import Once
from windrow_service.usecases.tables.errors import TableNotFoundError

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
DAY = timedelta(days=1)
RECENT = CacheRuleDefinition(filter="ds >= '2026-11-02'")
OLD = CacheRuleDefinition(filter="ds < '2026-11-02'")

Law = Callable[[SqlCacheRuleStore, SqlTableStore, SqlOnceStore], Awaitable[None]]


@pytest.fixture
def holds(database_url: sa.URL) -> Callable[[Law], None]:
    """Run a law on a database with the tables `t` and `u`."""

    async def run(law: Law, database: Database) -> None:
        tables = SqlTableStore(database, lambda: NOW)
        for name in ("t", "u"):
            await tables.put(name, TableDefinition(location=f"/{name}"), None)
        await law(SqlCacheRuleStore(database, lambda: NOW), tables, SqlOnceStore(database))

    return lambda law: on_database(database_url, partial(run, law))


def until(ends: datetime) -> CacheRuleDefinition:
    return CacheRuleDefinition(filter=RECENT.filter, expires_at=ends)


Holds = Callable[[Law], None]


def test_a_rule_exists_until_it_is_deleted(holds: Holds) -> None:
    async def law(rules: SqlCacheRuleStore, tables: SqlTableStore, _: SqlOnceStore) -> None:
        made, is_new = await rules.put("t", "r", RECENT, None)
        again, is_new_again = await rules.put("t", "r", RECENT, made.version)
        changed, _ = await rules.put("t", "r", OLD, "*")

        assert (is_new, is_new_again, again) == (True, False, made)
        assert made.table_id == (await tables.get("t")).table_id
        assert changed == await rules.get("t", "r")
        assert (changed.info.filter, changed.info.created_at) == (OLD.filter, NOW)
        assert changed.version != made.version
        for stale in (made.version, "other"):
            with pytest.raises(CacheRuleChangedError):
                await rules.put("t", "r", RECENT, stale)
            with pytest.raises(CacheRuleChangedError):
                await rules.delete("t", "r", stale)
        await rules.delete("t", "r", changed.version)
        with pytest.raises(CacheRuleNotFoundError):
            await rules.get("t", "r")
        with pytest.raises(CacheRuleNotFoundError):
            await rules.delete("t", "r", None)
        with pytest.raises(CacheRuleChangedError):
            await rules.put("t", "r", RECENT, "*")

    holds(law)


def test_each_table_has_its_own_rules_by_name(holds: Holds) -> None:
    async def law(rules: SqlCacheRuleStore, tables: SqlTableStore, _: SqlOnceStore) -> None:
        for name in ("b", "a-1", "A", "_"):
            await rules.put("t", name, RECENT, None)
        await rules.put("u", "b", OLD, None)
        table = await tables.get("t")

        assert [one.info.rule for one in await rules.list("t")] == ["A", "_", "a-1", "b"]
        assert list(await rules.active(table.table_id, NOW)) == list(await rules.list("t"))
        await tables.delete("t", None)
        assert [one.info.filter for one in await rules.list("u")] == [OLD.filter]
        assert await rules.active(table.table_id, NOW) == []
        for refused in (rules.list("t"), rules.get("t", "b"), rules.delete("t", "b", None)):
            with pytest.raises(TableNotFoundError):
                await refused
        with pytest.raises(TableNotFoundError):
            await rules.put("t", "b", RECENT, None)
        await tables.put("t", TableDefinition(location="/t"), None)
        assert await rules.list("t") == []

    holds(law)


def test_a_rule_expires_on_time_in_any_time_zone_and_is_removed_a_day_later(
    holds: Holds,
) -> None:
    ends = NOW + timedelta(hours=1)

    async def law(rules: SqlCacheRuleStore, tables: SqlTableStore, _: SqlOnceStore) -> None:
        table_id = (await tables.get("t")).table_id
        for hours in (-12, 0, 14):
            there = ends.astimezone(timezone(timedelta(hours=hours)))
            await rules.put("t", f"at{hours}", until(there), None)
        await rules.put("t", "for-ever", RECENT, None)

        async def active(at: datetime) -> int:
            return len(await rules.active(table_id, at))

        assert (await active(ends - timedelta(seconds=1)), await active(ends)) == (4, 1)
        assert [one.info.expires_at for one in await rules.list("t")] == [ends] * 3 + [None]
        assert await rules.purge(ends + DAY - timedelta(seconds=1)) == 0
        assert await rules.purge(ends + DAY) == 3
        assert [one.info.rule for one in await rules.list("t")] == ["for-ever"]

    holds(law)


@pytest.mark.slow
def test_rules_created_concurrently_do_not_exceed_the_limit(holds: Holds) -> None:
    async def law(rules: SqlCacheRuleStore, _: SqlTableStore, __: SqlOnceStore) -> None:
        for number in range(MAX_CACHE_RULES - 2):
            await rules.put("t", f"r{number}", RECENT, None)

        made = await asyncio.gather(
            *(rules.put("t", f"new{number}", RECENT, None) for number in range(6)),
            return_exceptions=True,
        )

        assert sum(isinstance(one, TooManyCacheRulesError) for one in made) == 4
        assert len(await rules.list("t")) == MAX_CACHE_RULES
        assert not (await rules.put("t", "r0", OLD, None))[1]
        assert (await rules.put("u", "r0", OLD, None))[1]

    holds(law)


def test_a_change_is_made_once_per_key_and_a_refused_one_leaves_no_key(
    holds: Holds,
) -> None:
    def once(key: str) -> Once:
        return Once(principal="me", key=key, fingerprint="f", answer=lambda result: f"{result!r}")

    async def law(rules: SqlCacheRuleStore, _: SqlTableStore, keys: SqlOnceStore) -> None:
        made = await rules.put("t", "r", RECENT, None, once("put"))
        await rules.put("t", "r", OLD, None)

        with pytest.raises(RepeatedRequestError) as repeated:
            await rules.put("t", "r", RECENT, None, once("put"))
        assert repeated.value.answer == repr(made)
        assert (await rules.get("t", "r")).info.filter == OLD.filter
        await rules.delete("t", "r", None, once("delete"))
        await rules.put("t", "r", RECENT, None)
        with pytest.raises(RepeatedRequestError):
            await rules.delete("t", "r", None, once("delete"))
        assert (await rules.get("t", "r")).info.filter == RECENT.filter
        with pytest.raises(CacheRuleChangedError):
            await rules.put("t", "r", OLD, "other", once("refused"))
        await keys.refuse_repeated(once("refused"))

    holds(law)
