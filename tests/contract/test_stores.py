"""Behaviour of the stores on every database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.laws import is_nightly
from tests.support.servers.databases import on_database
from tests.support.tables.inventories import inventory
from windrow_core.models import PlanDefaults, TableDefinition
from windrow_service.inventory.look import Inventory
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.expiry import SqlSnapshotKeeping
from windrow_service.store.figures import SqlTableFigures
from windrow_service.store.idempotency import SqlOnceStore
from windrow_service.store.snapshots import SqlSnapshotStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.telemetry.meters import TableFigures
from windrow_service.usecases.errors import IdempotencyKeyReusedError, RepeatedRequestError
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Once
from windrow_service.usecases.snapshots.errors import (
    SnapshotNotFoundError,
    TableNotRefreshedError,
    VersionNotKnownError,
)
from windrow_service.usecases.snapshots.next_snapshot import next_after_inventory
from windrow_service.usecases.snapshots.ports import NextSnapshot
from windrow_service.usecases.tables.errors import (
    TableChangedError,
    TableNotFoundError,
    UnconfirmedReplacementError,
)
from windrow_service.usecases.tables.ports import StoredTable

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
EVENTS = TableDefinition(location="/data/events")
ORC = EVENTS.model_copy(update={"format": "orc"})
EVERY = Names(every=True)


@dataclass
class Stores:
    """The stores of one database, and their clock."""

    database: Database
    now: datetime = START

    def __post_init__(self) -> None:
        self.tables = SqlTableStore(self.database, lambda: self.now)
        self.snapshots = SqlSnapshotStore(self.database, lambda: self.now)
        self.keeping = SqlSnapshotKeeping(self.database)
        self.once = SqlOnceStore(self.database)

    async def register(self, name: str = "t") -> StoredTable:
        return (await self.tables.put(name, EVENTS, None))[0]

    async def publish(self, table: StoredTable, *sizes: int) -> StoredTable:
        return await self.snapshots.publish(table, next_snapshot(*sizes), None)

    async def count(self, table: sa.Table) -> int:
        async with self.database.reading() as connection:
            return int(await connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0)

    async def expire(
        self, table: StoredTable | None, keep_last: int = 1, max_count: int = 999
    ) -> list[int]:
        gone = await self.keeping.expire(
            table,
            keep_last=keep_last,
            max_count=max_count,
            created_before=self.now,
            now=self.now,
        )
        return list(gone)


def next_snapshot(*sizes: int) -> NextSnapshot:
    """Return a snapshot to publish: files of these sizes in one manifest."""
    files = inventory(sizes)
    nothing = files.schema.empty_table().schema
    empty = nothing.empty_table().select([]).schema
    found = Inventory(
        files=files,
        data_schema=empty,
        partition_schema=empty,
        added_count=len(sizes),
        removed_count=0,
        folder_count=0,
        footers_read=0,
    )
    return next_after_inventory(found, None, [])


Run = Callable[[Callable[[Stores], Awaitable[Any]]], Any]


@pytest.fixture
def run(database_url: sa.URL) -> Run:
    """Run a test's body with stores."""
    return lambda body: on_database(database_url, lambda database: body(Stores(database)))


# --- tables --------------------------------------------------------------------


def test_the_tables_with_the_most_excess_files_come_first(run: Run) -> None:
    async def body(stores: Stores) -> None:
        well_sized = 128 * 2**20
        for name, sizes in (
            ("small", [1000] * 7),
            ("fewer", [1000] * 3),
            ("sound", [well_sized] * 9),
            ("nearly", [well_sized] * 9 + [1]),
            ("tiny", [1000] * 5),
        ):
            await stores.publish(await stores.register(name), *sizes)
        await stores.register("unread")

        count, worst = await SqlTableFigures(stores.database).worst(3)
        every = (await SqlTableFigures(stores.database).worst(9))[1]

        assert count == 6
        assert worst == [
            TableFigures("small", 7, 7_000, 6),
            TableFigures("tiny", 5, 5_000, 4),
            TableFigures("fewer", 3, 3_000, 2),
        ]
        assert [(table.name, table.excess) for table in every[3:]] == [("nearly", 0), ("sound", 0)]

    run(body)


def test_a_table_exists_until_it_is_deleted(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table, is_new = await stores.tables.put("t", EVENTS, None)
        again, is_new_again = await stores.tables.put("t", EVENTS, table.version)

        assert (is_new, is_new_again, again) == (True, False, table)
        assert await stores.tables.get("t") == table
        with pytest.raises(TableChangedError):
            await stores.tables.delete("t", "other")
        await stores.tables.delete("t", table.version)
        with pytest.raises(TableNotFoundError):
            await stores.tables.get("t")
        assert (await stores.register()).table_id > table.table_id

    run(body)


def test_plan_options_are_kept_and_an_older_table_has_none(run: Run) -> None:
    async def body(stores: Stores) -> None:
        options = PlanDefaults(max_split_size=2**20, rack_split_reduction=0.5)
        definition = EVENTS.model_copy(update={"plan_options": options})
        await stores.tables.put("t", definition, None)
        old = EVENTS.model_dump_json(exclude={"plan_options"})
        await stores.register("old")
        async with stores.database.writing() as connection:
            await connection.execute(
                sa.update(schema.tables).where(schema.tables.c.name == "old").values(definition=old)
            )

        assert (await stores.tables.get("t")).info.definition == definition
        assert (await stores.tables.get("old")).info.definition == EVENTS

    run(body)


def test_tables_are_listed_by_name_page_by_page(run: Run) -> None:
    async def body(stores: Stores) -> None:
        for name in ("c", "a", "b"):
            await stores.register(name)

        first = await stores.tables.page("", 2, EVERY)
        rest = await stores.tables.page("b", 2, EVERY)

        assert [table.info.name for table in [*first, *rest]] == ["a", "b", "c"]

    run(body)


def test_names_are_chosen_in_sql_as_they_are_in_python(run: Run) -> None:
    async def body(stores: Stores) -> None:
        names = ["a.b", "a.b.c", "a_b", "A.b", "ab.c", "a", "b.a.c", "b_a.c", "z"]
        for name in names:
            await stores.register(name)
        for among in (
            EVERY,
            Names(),
            Names(exact=frozenset({"a", "A.b", "no"})),
            Names(below=frozenset({"a.", "b.a."})),
            Names(exact=frozenset({"z"}), below=frozenset({"ab.", "A."})),
        ):
            found = [table.info.name for table in await stores.tables.page("", 100, among)]

            assert sorted(found) == sorted(name for name in names if name in among)
            assert set(await stores.tables.similar("a.b", among)) <= set(found)
            hidden = await stores.tables.locations(among)
            assert hidden == [EVENTS.location] * (len(names) - len(found))

    run(body)


def test_a_definition_that_changes_how_files_are_read_drops_the_snapshots(run: Run) -> None:
    async def body(stores: Stores) -> None:
        await stores.publish(await stores.register(), 1)

        await stores.tables.put("t", ORC, None, replace=True)

        with pytest.raises(TableNotRefreshedError):
            await stores.snapshots.get("t", None)
        assert await stores.count(schema.snapshot_manifests) == 0
        # Ids are not reused, or a plan could be pinned to a snapshot it was not made from.
        after = await stores.publish(await stores.tables.get("t"), 1)
        assert after.info.current_snapshot is not None
        assert after.info.current_snapshot.snapshot_id == 2

    run(body)


def test_no_published_snapshot_is_dropped_by_a_change_that_nobody_agreed_to(run: Run) -> None:
    async def body(stores: Stores) -> None:
        async def publish(table: StoredTable) -> bool:
            try:
                await stores.publish(table, 1)
            except TableChangedError:
                return False
            return True

        async def change(name: str, *, replace: bool = False) -> bool:
            try:
                await stores.tables.put(name, ORC, None, replace=replace)
            except UnconfirmedReplacementError:
                return False
            return True

        outcomes = set()
        for turn in range(20):
            table = await stores.register(f"t{turn}")
            name = table.info.name
            both = [publish(table), change(name)]
            # Both orders are tried, and which comes first is then up to the database.
            if turn % 2:
                changed, published = await asyncio.gather(*reversed(both))
            else:
                published, changed = await asyncio.gather(*both)
            after = (await stores.tables.get(name)).info
            assert (published, changed) in {(True, False), (False, True)}
            assert published == (after.current_snapshot is not None)
            assert changed == (after.definition == ORC)
            outcomes.add(published)
            if published:
                assert await change(name, replace=True)
        assert True in outcomes

    run(body)


# --- snapshots -----------------------------------------------------------------


def test_a_snapshot_is_returned_as_it_was_published(run: Run) -> None:
    async def body(stores: Stores) -> None:
        sent = next_snapshot(5, 6, 7)
        gone = sent.manifests[0].removed.copy()
        gone.resize(1)
        entry = replace(sent.manifests[0], removed=gone)
        sent = replace(sent, manifests=(entry,), bloom_columns=("id",))

        await stores.snapshots.publish(await stores.register(), sent, START)

        table, got = await stores.snapshots.get("t", None)
        assert (got.info.snapshot_id, got.info.file_count, got.info.size_bytes) == (1, 3, 18)
        assert (got.bloom_columns, table.checked_at) == (("id",), START)
        assert got.ranges.equals(sent.ranges)
        assert got.manifests[0].removed.tolist() == [0]
        assert got.manifests[0].last_path == entry.last_path
        assert await stores.snapshots.bodies("t", got, got.manifests) == [entry.data]
        with pytest.raises(SnapshotNotFoundError):
            await stores.snapshots.get("t", 2)

    run(body)


def test_one_of_two_publishers_that_saw_the_same_version_wins(run: Run) -> None:
    async def body(stores: Stores) -> None:
        seen = await stores.register()
        await stores.publish(seen, 1)

        with pytest.raises(TableChangedError):
            await stores.publish(seen, 2)

        assert [one.file_count for one in await stores.snapshots.page("t", 100, 9)] == [1]
        assert await stores.count(schema.manifests) == 1

    run(body)


def test_a_snapshot_beside_the_current_one_is_found_by_its_version(run: Run) -> None:
    async def body(stores: Stores) -> None:
        seen = await stores.register()
        table = await stores.snapshots.publish(
            seen, replace(next_snapshot(1), table_version="9"), None
        )
        old = replace(next_snapshot(2, 2), table_version="7")

        beside = await stores.snapshots.publish_beside(table, old, "nightly")

        assert (beside.snapshot_id, beside.table_version, beside.file_count) == (2, "7", 2)
        now, current = await stores.snapshots.get("t", None)
        assert (current.info.snapshot_id, current.info.table_version) == (1, "9")
        for version, wanted in (("7", 2), ("nightly", 2), ("9", 1)):
            found = (await stores.snapshots.get("t", None, version))[1].info
            assert found.snapshot_id == wanted
        # After a branch has moved on, its name finds the newest snapshot.
        await stores.snapshots.publish_beside(now, replace(old, table_version="8"), "nightly")
        assert (await stores.snapshots.get("t", None, "nightly"))[1].info.table_version == "8"
        assert (await stores.snapshots.get("t", None, "7"))[1].info.snapshot_id == 2
        with pytest.raises(VersionNotKnownError, match="windrow table refresh t --version 3"):
            await stores.snapshots.get("t", None, "3")
        with pytest.raises(TableChangedError):
            await stores.snapshots.publish_beside(seen, old, "7")
        stores.now += timedelta(days=1)
        assert await stores.expire(None, keep_last=1) == [2]

    run(body)


def test_history_is_newest_first_page_by_page(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        for size in range(3):
            table = await stores.publish(table, size)

        first = await stores.snapshots.page("t", 100, 2)
        rest = await stores.snapshots.page("t", first[-1].snapshot_id, 2)

        assert [one.snapshot_id for one in [*first, *rest]] == [3, 2, 1]

    run(body)


def test_a_saved_listing_belongs_to_its_snapshot(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        assert await stores.snapshots.listing(table) == (None, False)
        table = await stores.snapshots.publish(
            table, replace(next_snapshot(1), listing=b"one"), START
        )
        assert await stores.snapshots.listing(table) == (b"one", True)

        later = START + timedelta(hours=1)
        await stores.snapshots.confirm(table, later, b"two")
        assert await stores.snapshots.listing(table) == (b"two", True)
        assert (await stores.tables.get("t")).checked_at == later

        after = await stores.publish(table, 2)
        assert await stores.snapshots.listing(after) == (b"two", False)
        with pytest.raises(TableChangedError):
            await stores.snapshots.confirm(table, later, None)

    run(body)


# --- keys ----------------------------------------------------------------------


def test_a_change_is_made_once_per_key(run: Run) -> None:
    def once(fingerprint: str = "f") -> Once:
        return Once(principal="p", key="k", fingerprint=fingerprint, answer=lambda made: "made")

    async def body(stores: Stores) -> None:
        table = await stores.register()
        await stores.snapshots.publish(table, next_snapshot(1), None, once())

        with pytest.raises(RepeatedRequestError) as repeated:
            await stores.snapshots.publish(table, next_snapshot(1), None, once())
        assert repeated.value.answer == "made"
        with pytest.raises(IdempotencyKeyReusedError):
            await stores.tables.delete("t", None, once("other"))
        assert len(await stores.snapshots.page("t", 100, 9)) == 1
        await stores.once.purge(START + timedelta(days=2))
        await stores.tables.delete("t", None, once("other"))

    run(body)


# --- expiry --------------------------------------------------------------------


def test_snapshots_that_are_neither_recent_nor_young_are_dropped(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        other = await stores.register("other")
        for day in range(6):
            stores.now = START + timedelta(days=day)
            table = await stores.publish(table, day)
            other = await stores.publish(other, 100 + day)

        gone = await stores.keeping.expire(
            table,
            keep_last=2,
            max_count=999,
            created_before=START + timedelta(days=3),
            now=stores.now,
        )

        assert list(gone) == [1, 2, 3]
        assert [one.snapshot_id for one in await stores.snapshots.page("t", 99, 9)] == [6, 5, 4]
        assert len(await stores.snapshots.page("other", 99, 9)) == 6
        assert await stores.expire(None, keep_last=2) == [4, 1, 2, 3, 4]

    run(body)


def test_snapshots_beyond_the_maximum_number_are_dropped_however_young(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        other = await stores.register("other")
        for size in range(6):
            table = await stores.publish(table, size)
        other = await stores.publish(other, 7)

        assert await stores.expire(None, keep_last=4, max_count=4) == [1, 2]
        assert await stores.expire(table, keep_last=1, max_count=3) == [3]

    run(body)


def test_snapshots_of_a_protected_table_stay_until_it_is_unprotected(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table, other = await stores.register(), await stores.register("other")
        for size in range(3):
            table = await stores.publish(table, size)
            other = await stores.publish(other, 100 + size)
        stores.now += timedelta(days=1)
        await stores.tables.protect("t", True, None)

        assert await stores.expire(None, max_count=1) == [1, 2]
        assert await stores.expire(table, max_count=1) == []
        await stores.tables.protect("t", False, None)
        assert await stores.expire(None, max_count=1) == [1, 2]

    run(body)


def test_the_current_snapshot_and_those_of_live_plans_are_kept(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        for size in range(5):
            table = await stores.publish(table, size)
        stores.now += timedelta(days=1)
        plan: dict[str, Any] = {
            "principal": "",
            "table_id": table.table_id,
            "status": "completed",
            "created_at": START,
            "request": "",
            "request_key": "",
        }
        async with stores.database.writing() as connection:
            for snapshot_id, hours in ((2, 1), (3, -1)):
                ends = stores.now + timedelta(hours=hours)
                row = {"plan_id": f"p{snapshot_id}", "snapshot_id": snapshot_id, "expires_at": ends}
                await connection.execute(sa.insert(schema.plans).values(plan | row))

        assert await stores.expire(table, max_count=1) == [1, 3, 4]

        assert [one.snapshot_id for one in await stores.snapshots.page("t", 99, 9)] == [5, 2]

    run(body)


def test_manifests_are_removed_once_no_snapshot_uses_them(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        for sizes in ((1,), (2,), (1,), (3,)):
            table = await stores.publish(table, *sizes)
        stores.now += timedelta(days=1)
        assert await stores.keeping.collect(10) == 0

        assert await stores.expire(table, keep_last=2) == [1, 2]
        assert await stores.keeping.collect(10) == 1
        assert await stores.count(schema.manifests) == 2
        await stores.tables.delete("t", None)
        assert await stores.keeping.collect(1) == 1
        assert await stores.keeping.collect(1) == 1
        assert await stores.keeping.collect(1) == 0

    run(body)


@pytest.mark.slow
def test_no_published_snapshot_ever_lacks_a_manifest(run: Run) -> None:
    """Publishers reuse a few manifests again and again, while other threads remove unused ones."""
    done = threading.Event()

    async def publish(stores: Stores, name: str) -> None:
        table = await stores.register(name)
        for round_ in range(60 if is_nightly() else 20):
            table = await stores.publish(table, round_ % 3, 7)
            _, snapshot = await stores.snapshots.get(name, None)
            bodies = await stores.snapshots.bodies(name, snapshot, snapshot.manifests)
            assert bodies == [next_snapshot(round_ % 3, 7).manifests[0].data]

    async def tidy(stores: Stores) -> int:
        collected = 0
        while not done.is_set():
            stores.now = datetime.now(timezone.utc) + timedelta(days=365)
            await stores.expire(None)
            collected += await stores.keeping.collect(2)
        return collected

    with ThreadPoolExecutor(5) as threads:
        tidying = [threads.submit(run, tidy) for _ in range(2)]
        publishing = [threads.submit(run, partial(publish, name=name)) for name in ("a", "b", "c")]
        try:
            for one in publishing:
                one.result()
        finally:
            done.set()
        assert sum(one.result() for one in tidying) > 0
