"""`RefreshStore`: one refresh of a table at a time, held by a lease, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.support.servers.databases import on_database
from windrow_core.models import RefreshProgress, RefreshStatus, TableDefinition
from windrow_service.store.database import Database
from windrow_service.store.refreshes import SqlRefreshStore
from windrow_service.store.snapshots import SqlSnapshotStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.usecases.snapshots.errors import RefreshNotFoundError, RefreshNotRunningError
from windrow_service.usecases.snapshots.ports import NextSnapshot
from windrow_service.usecases.tables.errors import TableChangedError, TableNotFoundError

T = TypeVar("T")
NOW = datetime(2026, 11, 21, 10, 0, 0, 123456, tzinfo=timezone.utc)
LEASE = timedelta(seconds=5)
TABLE = "sales.events"


def trying(url: sa.URL, work: Callable[[SqlRefreshStore, SqlTableStore], Awaitable[T]]) -> T:
    """Run work on a store that knows one table."""

    async def run(database: Database, tables: SqlTableStore) -> T:
        return await work(SqlRefreshStore(database), tables)

    return opened(url, run)


def opened(url: sa.URL, work: Callable[[Database, SqlTableStore], Awaitable[T]]) -> T:
    async def run(database: Database) -> T:
        tables = SqlTableStore(database, lambda: NOW)
        await tables.put(TABLE, TableDefinition(location="/data/events"), None)
        return await work(database, tables)

    return on_database(url, run)


def running(refresh_id: str, **fields: Any) -> RefreshStatus:
    values: dict[str, Any] = {
        "refresh_id": refresh_id,
        "table": TABLE,
        "status": "running",
        "started_at": NOW,
        "seconds": 0.0,
        "progress": RefreshProgress(phase="listing"),
    }
    return RefreshStatus(**values | fields)


async def begin(
    store: SqlRefreshStore, refresh_id: str, now: datetime = NOW, *, full: bool = False
) -> Any:
    return await store.begin(running(refresh_id), full=full, now=now, lease_until=now + LEASE)


def test_the_second_caller_gets_the_running_refresh(database_url: sa.URL) -> None:
    async def work(store: SqlRefreshStore, _: SqlTableStore) -> None:
        first = await begin(store, "a", full=True)
        second = await begin(store, "b", NOW + LEASE)

        assert first.status.refresh_id == "a"
        assert second == first
        assert (second.full, second.lease_until) == (True, NOW + LEASE)

    trying(database_url, work)


def test_only_one_of_many_simultaneous_callers_begins(database_url: sa.URL) -> None:
    async def work(store: SqlRefreshStore, _: SqlTableStore) -> None:
        for round_ in range(3):
            now = NOW + 2 * round_ * LEASE
            begun = await asyncio.gather(*(begin(store, f"{round_}-{n}", now) for n in range(8)))

            assert len({record.status.refresh_id for record in begun}) == 1
            assert begun[0].status.refresh_id.startswith(f"{round_}-")

    trying(database_url, work)


def test_an_expired_lease_can_be_taken_over_and_its_former_owner_learns_of_it(
    database_url: sa.URL,
) -> None:
    async def work(store: SqlRefreshStore, _: SqlTableStore) -> None:
        table_id = (await begin(store, "late")).table_id
        later = NOW + LEASE + timedelta(microseconds=1)
        taken = await begin(store, "next", later)
        failed = running("late", status="failed", problem={"detail": "no"})

        assert (taken.status.refresh_id, taken.previous) == ("next", None)
        assert await store.renew(table_id, running("late"), later + LEASE) == "lost"
        assert await store.finish(table_id, failed) is False
        assert await store.get(TABLE) == taken

    trying(database_url, work)


def test_an_expired_lease_can_be_renewed_if_nobody_has_taken_it_over(database_url: sa.URL) -> None:
    async def work(store: SqlRefreshStore, _: SqlTableStore) -> None:
        table_id = (await begin(store, "a")).table_id
        progress = RefreshProgress(phase="reading footers", footers_read=7, footers_total=9)
        far = running("a", progress=progress, seconds=8.5)

        assert await store.renew(table_id, far, NOW + 4 * LEASE) == "wanted"
        seen = await begin(store, "b", NOW + 3 * LEASE)
        assert (seen.status, seen.lease_until) == (far, NOW + 4 * LEASE)

    trying(database_url, work)


def test_an_outcome_is_kept_until_the_refresh_after_next(database_url: sa.URL) -> None:
    async def work(store: SqlRefreshStore, _: SqlTableStore) -> None:
        table_id = (await begin(store, "a")).table_id
        outcome = running("a", status="done", changed=True, files_added=3)
        assert await store.finish(table_id, outcome) is True
        assert await store.finish(table_id, outcome) is False
        assert await store.renew(table_id, running("a"), NOW + LEASE) == "lost"
        kept = await store.get(TABLE)
        assert (kept.status, kept.lease_until) == (outcome, None)

        assert (await begin(store, "b")).previous == outcome
        await store.finish(table_id, running("b", status="done"))
        assert (await begin(store, "c")).previous == running("b", status="done")

    trying(database_url, work)


def test_a_runner_learns_of_the_cancellation_of_its_refresh_but_the_next_does_not(
    database_url: sa.URL,
) -> None:
    async def work(store: SqlRefreshStore, _: SqlTableStore) -> None:
        table_id = (await begin(store, "a")).table_id
        assert (await store.cancel(TABLE, NOW)).status.refresh_id == "a"
        assert await store.renew(table_id, running("a"), NOW + LEASE) == "cancelled"
        await store.finish(table_id, running("a", status="cancelled"))

        await begin(store, "b")
        assert await store.renew(table_id, running("b"), NOW + LEASE) == "wanted"

    trying(database_url, work)


def test_only_a_running_refresh_can_be_cancelled(database_url: sa.URL) -> None:
    async def work(store: SqlRefreshStore, _: SqlTableStore) -> None:
        with pytest.raises(RefreshNotRunningError):
            await store.cancel(TABLE, NOW)
        table_id = (await begin(store, "a")).table_id
        with pytest.raises(RefreshNotRunningError):
            await store.cancel(TABLE, NOW + 2 * LEASE)
        await store.finish(table_id, running("a", status="done"))
        with pytest.raises(RefreshNotRunningError):
            await store.cancel(TABLE, NOW)

    trying(database_url, work)


def test_missing_things_are_named(database_url: sa.URL) -> None:
    async def work(store: SqlRefreshStore, tables: SqlTableStore) -> None:
        with pytest.raises(RefreshNotFoundError):
            await store.get(TABLE)
        table_id = (await begin(store, "a")).table_id
        await tables.delete(TABLE, None)

        assert await store.renew(table_id, running("a"), NOW + LEASE) == "lost"
        assert await store.finish(table_id, running("a", status="done")) is False
        with pytest.raises(TableNotFoundError):
            await begin(store, "b")
        with pytest.raises(TableNotFoundError):
            await store.get(TABLE)
        with pytest.raises(TableNotFoundError):
            await store.cancel(TABLE, NOW)

    trying(database_url, work)


def test_a_listing_older_than_the_last_publication_cannot_be_published(
    database_url: sa.URL,
) -> None:
    found = NextSnapshot(
        data_schema=pa.schema([("id", pa.int64())]),
        partition_schema=pa.schema([]),
        manifests=(),
        ranges=pa.table({}),
        file_count=0,
        row_count=0,
        size_bytes=0,
        files_added=0,
        files_removed=0,
    )

    async def work(database: Database, tables: SqlTableStore) -> None:
        snapshots = SqlSnapshotStore(database, lambda: NOW)
        table = await snapshots.publish(await tables.get(TABLE), found, NOW)
        # A later refresh finds the snapshot up to date, which makes no new version.
        await snapshots.confirm(table, NOW + 2 * LEASE, None)

        with pytest.raises(TableChangedError):
            await snapshots.publish(table, found, NOW + LEASE)
        with pytest.raises(TableChangedError):
            await snapshots.confirm(table, NOW + LEASE, None)
        assert (await tables.get(TABLE)).checked_at == NOW + 2 * LEASE
        # Without a time of listing, as for a published inventory, nothing is outdated.
        await snapshots.publish(table, found, None)

    opened(database_url, work)
