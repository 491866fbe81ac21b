"""Figures of all tables together on every database: totals, failures, and what was by the hour."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from tests.support.servers.databases import on_database
from windrow_core.models import RefreshProgress, RefreshStatus, TableDefinition, WriteUpdate
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.overview import SqlOverview
from windrow_service.store.refreshes import SqlRefreshStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.store.writes import SqlWriteStore
from windrow_service.usecases.names import Names
from windrow_service.usecases.upkeep.overview import opening_seconds

NOW = datetime(2026, 11, 23, 10, 40, tzinfo=timezone.utc)
HOUR, ALL = timedelta(hours=1), Names(every=True)


async def make(database: Database, name: str, files: int, size_bytes: int) -> None:
    """Register a table with a snapshot of these figures."""
    await SqlTableStore(database, lambda: NOW).put(name, TableDefinition(location="/t"), None)
    async with database.writing() as connection:
        of_name = schema.tables.c.name == name
        table_id = await connection.scalar(sa.select(schema.tables.c.table_id).where(of_name))
        row = {"table_id": table_id, "snapshot_id": 1, "created_at": NOW, "bloom_columns": "[]"}
        blobs = dict.fromkeys(("data_schema", "partition_schema", "ranges"), b"")
        info = json.dumps({"file_count": files, "size_bytes": size_bytes})
        await connection.execute(sa.insert(schema.snapshots).values(row | blobs | {"info": info}))
        await connection.execute(
            sa.update(schema.tables)
            .where(of_name)
            .values(current_snapshot_id=1, checked_at=NOW - HOUR * files)
        )


async def read(database: Database, table: str, at: datetime, seconds: float | None) -> None:
    """Record a plan, or one that failed."""
    body = {} if seconds is None else {"summary": {"planning_seconds": seconds}}
    row = {"plan_id": "p", "principal": "me", "table_name": table, "created_at": at}
    async with database.writing() as connection:
        await connection.execute(
            sa.insert(schema.plan_history).values(row | {"body": json.dumps(body)})
        )


def test_tables_are_added_up_and_those_whose_reads_gain_most_come_first(
    database_url: sa.URL,
) -> None:
    async def law(database: Database) -> None:
        overview = SqlOverview(database)
        await make(database, "a.many", 20_000, 10)
        await make(database, "a.some", 702, 10)
        await make(database, "a.few", 3, 10)
        await make(database, "b.large", 4, 4 * 2**27)
        await SqlTableStore(database, lambda: NOW).put(
            "b.new", TableDefinition(location="/n"), None
        )
        for _ in range(500):
            await read(database, "a.some", NOW, 0.1)
        await read(database, "a.many", NOW - 2 * HOUR, 0.1)

        every = await overview.now(NOW - HOUR, 10, ALL)
        first = await overview.now(NOW - HOUR, 1, ALL)
        mine = await overview.now(NOW + HOUR, 10, Names(below=frozenset({"a."})))
        none = await overview.now(NOW - HOUR, 10, Names())

        totals, gain = every.totals, every.gain
        assert (totals.tables, totals.files, totals.excess_files) == (5, 20_709, 20_702)
        assert (totals.size_bytes, totals.without_snapshot) == (4 * 2**27 + 30, 1)
        assert every.oldest == ("a.many", NOW - 20_000 * HOUR)
        # What a few excess files cost is not worth doing anything about.
        assert [(one.name, one.excess, one.reads) for one in every.first] == [
            ("a.some", 701, 500),
            ("a.many", 19_999, 0),
        ]
        assert first == replace(every, first=every.first[:1])
        assert (gain.tables, gain.files, gain.becomes, gain.reads) == (3, 20_705, 3, 500)
        assert gain.saved_seconds == every.first[0].saves == every.first[0].gain_seconds * 500
        assert gain.gain_seconds == pytest.approx(opening_seconds(totals.excess_files))
        # Without reads, what a read of all of it would save decides.
        assert [one.name for one in mine.first] == ["a.many", "a.some"]
        assert (mine.totals.tables, mine.totals.files, mine.gain.reads) == (3, 20_705, 0)
        assert (none.totals.tables, none.gain.tables, none.first, none.oldest) == (0, 0, [], None)
        assert await overview.database_bytes() > 10_000

    on_database(database_url, law)


def test_each_hour_is_recorded_once_with_the_plans_of_the_hour_before(
    database_url: sa.URL,
) -> None:
    async def law(database: Database) -> None:
        overview, began_at = SqlOverview(database), NOW.replace(minute=0)
        await make(database, "a.t", 10, 10)
        for minutes, seconds in ((-70, 9.0), (-50, 0.1), (-40, 0.3), (-30, 0.2), (5, 7.0)):
            await read(database, "a.t", began_at + timedelta(minutes=minutes), seconds)
        await read(database, "a.t", began_at - timedelta(minutes=5), None)

        await overview.record(NOW)
        await make(database, "a.u", 10, 10)
        await overview.record(NOW + timedelta(minutes=19))
        (hour,) = await overview.hours(NOW - HOUR)
        await overview.record(NOW + HOUR)

        assert (hour.began_at, hour.tables, hour.excess_files) == (began_at, 1, 9)
        assert (hour.plans, hour.planning_seconds) == (3, 0.2)
        assert hour.slow_planning_seconds is not None
        assert 0.2 < hour.slow_planning_seconds <= 0.3
        assert [one.tables for one in await overview.hours(NOW - HOUR)] == [1, 2]
        assert await overview.purge(NOW) == 1
        assert [one.tables for one in await overview.hours(NOW - HOUR)] == [2]

    on_database(database_url, law)


def test_failed_refreshes_and_abandoned_writes_are_told_from_others(database_url: sa.URL) -> None:
    states = {"a.failed": "failed", "a.done": "done", "a.dead": "running", "a.alive": "running"}

    async def law(database: Database) -> None:
        refreshes, tables = SqlRefreshStore(database), SqlTableStore(database, lambda: NOW)
        for name, status in states.items():
            await tables.put(name, TableDefinition(location=f"/{name}"), None)
            lease = NOW - HOUR if name == "a.dead" else NOW + HOUR
            state = RefreshStatus.model_validate(
                {
                    "refresh_id": name,
                    "table": name,
                    "status": status,
                    "started_at": NOW,
                    "seconds": 0,
                    "progress": RefreshProgress(phase="listing"),
                }
            )
            record = await refreshes.begin(state, full=False, now=NOW, lease_until=lease)
            if status != "running":
                assert await refreshes.finish(record.table_id, state)
            begun = WriteUpdate(mode="append", state="staging", host="h", process=1)
            at = NOW - HOUR if name == "a.dead" else NOW
            await SqlWriteStore(database, lambda at=at: at).put(name, "1" * 32, begun)

        writes = SqlWriteStore(database, lambda: NOW)
        failed = {one.status.table for one in await refreshes.recent(10, ALL, NOW)}
        dead = [one.table for one in await writes.recent(10, ALL, dead_only=True)]
        assert failed == {"a.failed", "a.dead"}
        assert dead == ["a.dead"]
        assert await refreshes.recent(10, Names(exact=frozenset({"a.done"})), NOW) == []

    on_database(database_url, law)
