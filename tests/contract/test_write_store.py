"""Behaviour of the store of writes on every database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest
import sqlalchemy as sa

from tests.contract.test_stores import EVENTS, next_snapshot
from tests.support.faults.writers import report_of
from tests.support.servers.databases import on_database
from windrow_core.models import (
    Column,
    KeyReport,
    SortColumn,
    StreamBatch,
    WriteReport,
    WriteState,
    WriteUpdate,
)
from windrow_service.store import schema, writes
from windrow_service.store.database import Database
from windrow_service.store.snapshots import SqlSnapshotStore
from windrow_service.store.streams import SqlStreamStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.store.writes import SqlWriteStore
from windrow_service.usecases.audit import Actor, acting
from windrow_service.usecases.tables.errors import (
    TableChangedError,
    TableNotFoundError,
    WriteInProgressError,
)
from windrow_service.usecases.tables.ports import StoredTable
from windrow_service.usecases.writes.errors import (
    BatchOrderError,
    WriteCancelledError,
    WriteNotCancellableError,
    WriteNotFoundError,
    WriteStateError,
    WriteTakenError,
)

START = datetime(2026, 11, 21, tzinfo=timezone.utc)
ONE, TWO = "1" * 32, "2" * 32


@dataclass
class Stores:
    """The stores of one database, and their clock."""

    database: Database
    now: datetime = START

    def __post_init__(self) -> None:
        self.tables = SqlTableStore(self.database, lambda: self.now)
        self.snapshots = SqlSnapshotStore(self.database, lambda: self.now)
        self.writes = SqlWriteStore(self.database, lambda: self.now)
        self.streams = SqlStreamStore(self.database)

    async def register(self) -> StoredTable:
        return (await self.tables.put("t", EVENTS, None))[0]

    async def put(self, write_id: str, *states: WriteState, **fields: Any) -> Any:
        for state in states:
            record, _ = await self.writes.put("t", write_id, update(state, **fields))
        return record


def update(state: WriteState, **fields: Any) -> WriteUpdate:
    known: dict[str, Any] = {"mode": "append", "state": state, "host": "a", "process": 7}
    return WriteUpdate.model_validate(known | fields)


def report(rows: int) -> WriteReport:
    keys = KeyReport(
        columns=[Column(name="ds", type="string")],
        values=[["x"]],
        rows=[rows],
        files=[1],
        bytes=[9],
    )
    return report_of(rows).model_copy(update={"keys": keys})


Run = Callable[[Callable[[Stores], Awaitable[Any]]], Any]


@pytest.fixture
def run(database_url: sa.URL) -> Run:
    """Run a test's body with stores."""
    return lambda body: on_database(database_url, lambda database: body(Stores(database)))


def test_a_write_passes_through_its_states_and_keeps_its_report(run: Run) -> None:
    async def body(stores: Stores) -> None:
        with pytest.raises(TableNotFoundError):
            await stores.put(ONE, "staging")
        await stores.register()
        begun, is_new = await stores.writes.put("t", ONE, update("staging"))
        stores.now += timedelta(seconds=29)
        renewed, is_new_again = await stores.writes.put("t", ONE, update("staging"))
        committing = await stores.put(ONE, "committing", "committing")
        done = await stores.put(ONE, "published", "published", report=report(5))

        assert (is_new, is_new_again) == (True, False)
        assert begun.expires_at == START + timedelta(seconds=30)
        assert renewed.expires_at == stores.now + timedelta(seconds=30)
        assert (committing.state, committing.alive) == ("committing", True)
        assert (done.state, done.alive, done.expires_at) == ("published", False, None)
        assert done.report == report_of(5)
        assert (await stores.writes.get("t", ONE)).report == report(5)
        (listed,) = await stores.writes.page("t", 2**31 - 1, 10, open_only=False)
        assert listed.info == done
        assert await stores.writes.page("t", 2**31 - 1, 10, open_only=True) == []
        with pytest.raises(WriteNotFoundError):
            await stores.writes.get("t", TWO)

    run(body)


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        (["staging"], "published"),
        (["staging", "committing"], "staging"),
        (["staging", "committing", "published"], "undone"),
        (["staging", "undone"], "committing"),
    ],
)
def test_an_invalid_state_transition_is_refused(
    run: Run, before: list[WriteState], wanted: WriteState
) -> None:
    async def body(stores: Stores) -> None:
        await stores.register()
        await stores.put(ONE, *before)
        with pytest.raises(WriteStateError, match=f"is {before[-1]}, so it cannot be {wanted}"):
            await stores.put(ONE, wanted)
        assert (await stores.writes.get("t", ONE)).state == before[-1]
        with pytest.raises(WriteNotFoundError):
            await stores.put(TWO, wanted if wanted != "staging" else "committing")

    run(body)


def test_a_write_may_be_taken_over_only_from_a_dead_process(run: Run) -> None:
    async def body(stores: Stores) -> None:
        await stores.register()
        await stores.put(ONE, "staging")
        with pytest.raises(WriteTakenError, match="process 7 on host 'a'"):
            await stores.put(ONE, "staging", process=8)
        with pytest.raises(WriteTakenError):
            await stores.put(ONE, "staging", host="b", takes_over=True)
        # A process on the same host can see that the other has died.
        assert (await stores.put(ONE, "staging", process=8, takes_over=True)).process == 8
        with pytest.raises(WriteTakenError, match="process 8"):
            await stores.put(ONE, "committing")
        stores.now += timedelta(seconds=31)
        assert not (await stores.writes.get("t", ONE)).alive
        with pytest.raises(WriteTakenError):
            await stores.put(ONE, "staging", host="b")
        taken_over = await stores.put(ONE, "undone", host="b", takes_over=True)
        assert (taken_over.host, taken_over.state) == ("b", "undone")

    run(body)


def test_a_write_is_cancelled_until_it_moves_files_in(run: Run) -> None:
    async def body(stores: Stores) -> None:
        with pytest.raises(TableNotFoundError):
            await stores.writes.cancel("t", ONE)
        await stores.register()
        with pytest.raises(WriteNotFoundError):
            await stores.writes.cancel("t", ONE)
        await stores.put(ONE, "staging")
        stores.now += timedelta(seconds=31)
        with acting(lambda: Actor("ana", "cancel_write")):
            cancelled = await stores.writes.cancel("t", ONE)
        assert (cancelled.state, cancelled.cancelled_by) == ("undone", "ana")
        assert (cancelled.expires_at, cancelled.alive) == (None, False)
        # Neither its driver nor a recovery can continue it.
        for wanted, fields in (("staging", {}), ("committing", {}), ("staging", {"host": "b"})):
            with pytest.raises(WriteCancelledError, match=f"write {ONE} .* cancelled by 'ana'"):
                await stores.put(ONE, cast("WriteState", wanted), takes_over=True, **fields)
        assert await stores.put(ONE, "undone") == await stores.writes.cancel("t", ONE) == cancelled
        for states in (["staging", "committing"], ["published"]):
            await stores.put(TWO, *cast("list[WriteState]", states))
            with pytest.raises(
                WriteNotCancellableError, match=f"is {states[-1]}, and only a write"
            ):
                await stores.writes.cancel("t", TWO)
            assert (await stores.writes.get("t", TWO)).state == states[-1]

    run(body)


def test_nobody_else_changes_a_table_while_a_write_commits(run: Run) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        table = await stores.snapshots.publish(table, next_snapshot(1), None)
        await stores.put(ONE, "staging", "committing")
        await stores.put(TWO, "staging", host="b")
        other = EVENTS.model_copy(update={"sort_columns": [SortColumn(name="id")]})

        for change in (
            lambda: stores.put(TWO, "committing", host="b"),
            lambda: stores.snapshots.publish(table, next_snapshot(2), None),
            lambda: stores.snapshots.publish(table, next_snapshot(2), None, write_id=TWO),
            lambda: stores.snapshots.confirm(table, START, None),
            lambda: stores.tables.put("t", other, None),
            lambda: stores.tables.delete("t", None),
            lambda: stores.writes.refuse_while_committing("t"),
        ):
            with pytest.raises(WriteInProgressError, match=f"write {ONE} from host 'a'"):
                await change()
        # Registering the same definition changes nothing, so it is allowed.
        await stores.tables.put("t", EVENTS, None)

        published = await stores.snapshots.publish(table, next_snapshot(2), None, write_id=ONE)
        assert published.info.current_snapshot is not None
        done = await stores.put(ONE, "published")
        assert done.snapshot_id == published.info.current_snapshot.snapshot_id == 2
        assert await stores.writes.last_committed_at(table.table_id) == START
        with pytest.raises(WriteStateError):
            await stores.snapshots.publish(published, next_snapshot(3), None, write_id=ONE)
        with pytest.raises(WriteNotFoundError):
            await stores.snapshots.publish(published, next_snapshot(3), None, write_id="3" * 32)
        await stores.snapshots.publish(published, next_snapshot(3), None)
        await stores.put(TWO, "committing", host="b")

    run(body)


@pytest.mark.parametrize("end", ["published", "undone"])
def test_listings_made_during_a_commit_are_not_published_afterwards(
    run: Run, end: WriteState
) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        await stores.put(ONE, "staging", "committing")
        seen = await stores.tables.get("t")
        if end == "published":
            await stores.snapshots.publish(table, next_snapshot(2), None, write_id=ONE)
        await stores.put(ONE, end)

        with pytest.raises(TableChangedError):
            await stores.snapshots.publish(seen, next_snapshot(1), START)

    run(body)


def test_only_one_of_several_writes_commits_at_a_time(database_url: sa.URL) -> None:
    def register() -> None:
        on_database(database_url, lambda database: Stores(database).register())

    def attempt(number: int) -> str:
        async def body(stores: Stores) -> str:
            try:
                await stores.put(f"{number}" * 32, "staging", "committing")
            except WriteInProgressError:
                return "refused"
            return "committing"

        outcome: str = on_database(database_url, lambda database: body(Stores(database)))
        return outcome

    with ThreadPoolExecutor() as threads:
        threads.submit(register).result()
        outcomes = list(threads.map(attempt, range(6)))

    assert sorted(outcomes) == ["committing"] + ["refused"] * 5


def test_reports_of_the_newest_writes_keep_their_keys_and_old_writes_are_removed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "_KEPT", 6)
    monkeypatch.setattr(writes, "MAX_KEY_REPORTS", 3)

    async def body(stores: Stores) -> None:
        await stores.register()
        await stores.put("f" * 32, "staging")
        for number in range(8):
            write_id = f"{number}" * 32
            await stores.put(write_id, "staging", "committing")
            await stores.put(write_id, "published", report=report(number))
        await stores.put("a" * 32, "staging", "undone")

        found = await stores.writes.reported("t", 10, keys=True)
        assert [one.report.rows for one in found if one.report] == [7, 6, 5, 4, 3]
        has_keys = [one.report is not None and one.report.keys is not None for one in found]
        assert has_keys == [True, True, False, False, False]
        (newest,) = await stores.writes.reported("t", 1)
        assert newest.report == report_of(7)
        # A write that has not ended is never removed.
        (left,) = await stores.writes.page("t", 2**31 - 1, 10, open_only=True)
        assert left.info.write_id == "f" * 32

    run(body)


def test_writes_are_removed_with_their_table(run: Run) -> None:
    async def body(stores: Stores) -> None:
        await stores.register()
        await stores.put(ONE, "staging")
        await stores.tables.delete("t", None)
        await stores.register()

        assert await stores.writes.page("t", 2**31 - 1, 10, open_only=False) == []
        async with stores.database.reading() as connection:
            rows = sa.select(sa.func.count()).select_from(schema.writes)
            assert await connection.scalar(rows) == 0

    run(body)


STREAM = "3f0e9a44-5b1c-4d7a-9e57-0c2d8f61b7a3"


def batch(batch_id: int, previous: int | None = None, query_id: str = STREAM) -> dict[str, Any]:
    return {"query_id": query_id, "batch_id": batch_id, "previous": previous, "query_name": "q"}


async def published(stores: Stores, write_id: str, batch: dict[str, Any]) -> None:
    await stores.put(write_id, "staging", batch=batch)
    await stores.put(write_id, "committing")
    table = await stores.tables.get("t")
    await stores.snapshots.publish(table, next_snapshot(), None, write_id=write_id)
    await stores.put(write_id, "published")


async def newest(stores: Stores) -> dict[str, int]:
    page = await stores.streams.page("t", 2**31 - 1, 10)
    return {one.info.query_id: one.info.batch_id for one in page}


def test_a_batch_is_recorded_when_its_write_is_published_and_not_before(run: Run) -> None:
    async def body(stores: Stores) -> None:
        await stores.register()
        await stores.put(ONE, "staging", batch=batch(4))
        record = await stores.put(ONE, "committing")
        before = await newest(stores)
        table = await stores.tables.get("t")
        await stores.snapshots.publish(table, next_snapshot(), None, write_id=ONE)

        assert record.batch == StreamBatch.model_validate(batch(4))
        assert before == {}
        assert await newest(stores) == {STREAM: 4}
        # A repeated call of the write itself is no other write.
        assert (await stores.put(ONE, "committing", "published")).state == "published"
        await published(stores, TWO, batch(6, previous=4))
        assert await newest(stores) == {STREAM: 6}

    run(body)


@pytest.mark.parametrize("previous", [None, 3, 5])
def test_a_batch_that_does_not_follow_the_newest_is_not_committed(
    run: Run, previous: int | None
) -> None:
    async def body(stores: Stores) -> None:
        await stores.register()
        await published(stores, ONE, batch(4))
        await stores.put(TWO, "staging", batch=batch(6, previous))
        with pytest.raises(BatchOrderError, match="is 4, but the write follows"):
            await stores.put(TWO, "committing")

        assert (await stores.put(TWO, "undone")).state == "undone"
        assert await newest(stores) == {STREAM: 4}

    run(body)


def test_streams_of_one_table_have_their_own_batches(run: Run) -> None:
    other = STREAM.replace("3", "4")

    async def body(stores: Stores) -> None:
        await stores.register()
        await published(stores, ONE, batch(4))
        await published(stores, TWO, batch(0, query_id=other))

        assert await newest(stores) == {other: 0, STREAM: 4}
        with pytest.raises(TableNotFoundError):
            await stores.streams.page("other", 10, 10)

    run(body)


def test_a_batch_whose_files_are_in_the_table_counts_though_their_inventory_was_refused(
    run: Run,
) -> None:
    async def body(stores: Stores) -> None:
        await stores.register()
        await stores.put(ONE, "staging", batch=batch(4))
        await stores.put(ONE, "committing", "published")

        assert await newest(stores) == {STREAM: 4}

    run(body)
