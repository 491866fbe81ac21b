"""Runs of packers on every database: what they may publish, until when, and what is known of them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from anyio.from_thread import start_blocking_portal

import windrow
from tests.contract.test_stores import EVENTS, next_snapshot
from tests.support.servers import embedded
from tests.support.servers.coordinators import running
from tests.support.servers.databases import on_database
from tests.support.tables import hive
from tests.support.tables.packs import publish_new_packs, write_small_files
from windrow_core.models.packs import LONGEST_LEASE_S, PackDescription
from windrow_service.pack_folder import DiskOrStoreFolder
from windrow_service.settings import PackSettings, Settings
from windrow_service.store.clock import machine_clock
from windrow_service.store.database import Database, database_path
from windrow_service.store.expiry import SqlSnapshotKeeping
from windrow_service.store.packs import SqlPackStore
from windrow_service.store.snapshots import SqlSnapshotStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.usecases.packs.errors import PackingRunOverError
from windrow_service.usecases.packs.keep import KeepPacks
from windrow_service.usecases.packs.ports import PackRun
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.ports import StoredTable
from windrow_service.wiring.adapters import open_adapters
from windrow_service.wiring.packs import open_table_packs

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
LEASE = timedelta(seconds=60)
RUN = "0123456789abcdef"


class World:
    """A table with snapshot 1, and the store of packs, on a database whose time is `now`."""

    def __init__(self, database: Database) -> None:
        self.now = START
        self.packs = SqlPackStore(database, lambda: self.now)
        self.tables = SqlTableStore(database, lambda: self.now)
        self.snapshots = SqlSnapshotStore(database, lambda: self.now)
        self.keeping = SqlSnapshotKeeping(database)

    async def table(self, name: str = "t") -> StoredTable:
        table, _ = await self.tables.put(name, EVENTS, None)
        return await self.snapshots.publish(table, next_snapshot(1), None)

    async def renew(self, table: StoredTable, run: str = RUN, snapshot_id: int = 1) -> None:
        until = self.now + LEASE
        one = PackRun(run_id=run, table_id=table.table_id, home="home", lease_until=until)
        await self.packs.renew_run(table, one, snapshot_id)

    async def publish(self, table: StoredTable, number: int = 0, run: str = RUN) -> None:
        description = PackDescription(
            definition="0" * 64,
            path=f"/packs/home/{number}",
            digest=f"{number:064x}",
            size_bytes=1,
            row_count=1,
        )
        await self.packs.add(table, run, description, 1, b"")

    async def lapsed(self, table: StoredTable | None = None) -> list[str]:
        number = None if table is None else table.table_id
        return [one.run_id for one in await self.packs.lapsed_runs(number)]


Law = Callable[[World], Awaitable[None]]


@pytest.fixture
def holds(database_url: sa.URL) -> Callable[[Law], None]:
    """Run a law on a database."""
    return lambda law: on_database(database_url, lambda database: law(World(database)))


def test_a_run_publishes_as_long_as_it_gives_signs_of_life(holds: Callable[[Law], None]) -> None:
    async def law(world: World) -> None:
        table = await world.table()
        with pytest.raises(PackingRunOverError, match=RUN):
            await world.publish(table)
        for number in range(3):
            await world.renew(table)
            world.now += LEASE - timedelta(seconds=1)
            await world.publish(table, number)
        assert await world.lapsed() == []
        world.now += timedelta(seconds=1)

        with pytest.raises(PackingRunOverError):
            await world.publish(table, 4)
        with pytest.raises(PackingRunOverError):
            await world.renew(table)
        assert await world.lapsed() == [RUN]
        assert await world.packs.paths(table.table_id) == {f"/packs/home/{at}" for at in range(3)}

    holds(law)


def test_a_run_is_of_one_table_and_ends_with_it_alone(holds: Callable[[Law], None]) -> None:
    async def law(world: World) -> None:
        table, other = await world.table(), await world.table("other")
        await world.renew(table)
        for act in (world.renew, world.publish):
            with pytest.raises(PackingRunOverError):
                await act(other)
        assert await world.lapsed(other) == []
        await world.packs.end_run(other.table_id, RUN)
        await world.publish(table)
        await world.packs.end_run(table.table_id, RUN)

        assert await world.lapsed(table) == []

    holds(law)


def test_a_run_begins_only_while_its_snapshot_is_there_and_an_erasure_ends_it(
    holds: Callable[[Law], None],
) -> None:
    async def law(world: World) -> None:
        table = await world.table()
        await world.renew(table)
        table = await world.snapshots.publish(table, next_snapshot(2), None)
        # Its own snapshot may expire while it is at work.
        await world.keeping.expire(
            table, keep_last=1, max_count=1, created_before=world.now, now=world.now
        )
        await world.renew(table)

        with pytest.raises(PackingRunOverError):
            await world.renew(table, "f" * 16)
        assert await world.lapsed(table) == [RUN]
        with pytest.raises(PackingRunOverError):
            await world.publish(table)

    holds(law)


def test_a_clock_that_is_set_back_keeps_no_run_for_long(holds: Callable[[Law], None]) -> None:
    async def law(world: World) -> None:
        await world.renew(await world.table())
        world.now -= timedelta(seconds=LONGEST_LEASE_S)
        assert await world.lapsed() == []
        world.now -= timedelta(days=1)

        assert await world.lapsed() == [RUN]

    holds(law)


def test_what_lapsed_long_ago_is_forgotten(holds: Callable[[Law], None]) -> None:
    async def law(world: World) -> None:
        await world.renew(await world.table())
        world.now += LEASE
        assert await world.lapsed() == [RUN]
        await world.packs.purge(world.now)
        assert await world.lapsed() == [RUN]

        await world.packs.purge(world.now + timedelta(seconds=1))

        assert await world.lapsed() == []

    holds(law)


def test_nothing_is_published_once_a_run_is_known_to_be_over(holds: Callable[[Law], None]) -> None:
    async def law(world: World) -> None:
        table = await world.table()
        for number in range(20):
            run = f"{number:016x}"
            await world.renew(table, run)

            async def publish(number: int = number, run: str = run) -> None:
                with suppress(PackingRunOverError):
                    await world.publish(table, number, run)

            async def look() -> object:
                await world.lapsed(table)
                return await world.packs.paths(table.table_id)

            acts = (publish(), look()) if number % 2 else (look(), publish())
            outcomes = await asyncio.gather(*acts)

            known = outcomes[1 if number % 2 else 0]
            assert await world.packs.paths(table.table_id) == known

    holds(law)


def test_only_a_run_of_the_table_is_renewed(http: httpx.Client, events: str) -> None:
    missing = http.put(f"/tables/missing/packing-runs/{RUN}", json={"snapshot_id": 1})
    assert missing.status_code == 404
    for run, sent, status in (
        (RUN, {"snapshot_id": 99}, 409),
        ("run", {"snapshot_id": 1}, 422),
        (RUN, {"snapshot_id": 1, "lease_seconds": LONGEST_LEASE_S + 1}, 422),
        (RUN, {"lease_seconds": 60}, 422),
        (RUN, {"snapshot_id": 1}, 204),
        (RUN, {"snapshot_id": 99}, 204),
        (RUN, {"snapshot_id": 1, "lease_seconds": 0}, 204),
        (RUN, {"snapshot_id": 99}, 409),
    ):
        answer = http.put(f"/tables/{events}/packing-runs/{run}", json=sent)
        assert answer.status_code == status, (run, sent, answer.text)


@pytest.mark.slow
def test_a_lease_is_no_longer_than_rows_may_stay(tmp_path: Path) -> None:
    hive.write_events(tmp_path / "t")
    packs = PackSettings(erase_within=timedelta(0))
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=("/",), packs=packs)
    with running(settings) as url, windrow.connect(url) as client:
        client.register_table("s.t", str(tmp_path / "t"))
        client.refresh("s.t")
        began_at = datetime.now(timezone.utc)
        client.renew_packing_run("s.t", RUN, 1, LONGEST_LEASE_S)
        with closing(sqlite3.connect(database_path(settings.state_dir))) as connection:
            ((text,),) = connection.execute("SELECT lease_until FROM pack_runs").fetchall()

    lease = datetime.fromisoformat(text).replace(tzinfo=timezone.utc) - began_at
    assert lease < timedelta(seconds=LONGEST_LEASE_S / 2)


@pytest.mark.slow
def test_packs_leave_the_disk_although_the_clock_was_set_back(tmp_path: Path) -> None:
    write_small_files(tmp_path / "t")
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=("/",))
    now = [datetime.now(timezone.utc)]
    folder = DiskOrStoreFolder(str(tmp_path / "state" / "packs"))
    with (
        embedded.client(tmp_path / "state", ["/"]) as client,
        start_blocking_portal() as portal,
    ):
        client.register_table("s.t", str(tmp_path / "t"))
        (pack,), _ = publish_new_packs(client, "s.t")
        client.withdraw_pack("s.t", pack.pack_id)

        async def look() -> bool:
            async with AsyncExitStack() as stack:
                adapters = await open_adapters(settings, machine_clock, stack)
                meters, packs = adapters.watch.meters, open_table_packs(adapters)
                await KeepPacks(
                    snapshots=adapters.snapshots,
                    manifests=ManifestReader(adapters.snapshots, adapters.runner, 2**26, meters),
                    packs=packs.store,
                    usable=packs,
                    folder=folder,
                    runner=adapters.runner,
                    clock=lambda: now[0],
                    erase_within=timedelta(days=1),
                )()
            return Path(pack.path).exists()

        assert portal.call(look), "a plan may name it"
        now[0] -= timedelta(hours=2)
        assert not portal.call(look)
        assert client.list_packs("s.t")[0].state == "removed"
