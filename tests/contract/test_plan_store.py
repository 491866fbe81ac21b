"""Behaviour of the store of plans on every database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.support.plans.plan_records import EMPTY, HOUR, LARGE, SMALL, START, completed, submitted
from tests.support.servers.databases import on_database
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.plans import SqlPlanStore
from windrow_service.usecases.errors import RepeatedRequestError
from windrow_service.usecases.plans.errors import (
    PlanCancelledError,
    PlanNotFoundError,
    PlansFullError,
)
from windrow_service.usecases.plans.ports import PlanBody, PlanChunk, PlanRecord
from windrow_service.usecases.ports import Once

Law = Callable[[SqlPlanStore, Database], Awaitable[None]]


@pytest.fixture
def holds(database_url: sa.URL) -> Callable[[Law], None]:
    """Run a law on a store of 1,000 bytes in an empty database."""
    return lambda law: on_database(
        database_url,
        lambda database: law(SqlPlanStore(database, lambda: START, 1_000), database),
    )


async def streamed(store: SqlPlanStore, plan: PlanRecord) -> bytes:
    return b"".join([part async for part in store.stream(plan)])


async def bodies(database: Database) -> int:
    async with database.reading() as connection:
        count = sa.select(sa.func.count()).select_from(schema.plan_bodies)
        return int(await connection.scalar(count) or 0)


@pytest.mark.parametrize("body", [SMALL, LARGE, EMPTY], ids=["small", "large", "empty"])
def test_a_stored_plan_is_returned_unchanged_by_every_replica(
    holds: Callable[..., None], body: PlanBody
) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        plan = completed("p")
        await store.put(plan, body)
        for replica in (store, SqlPlanStore(database, lambda: START, 1_000)):
            assert await replica.get("p", START) == plan
            assert await streamed(replica, plan) == b"".join(body.parts)
            for at, chunk in enumerate(body.chunks):
                following = [one.first_group for one in body.chunks[at + 1 :]]
                for group in (chunk.first_group, (following or [99])[0] - 1):
                    assert await replica.chunk(plan, group) == (body.head, chunk)

    holds(law)


def test_a_plan_expires_and_is_forgotten_with_its_groups(holds: Callable[..., None]) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        await store.put(completed("old"), SMALL)
        await store.put(completed("new", expires_at=START + 2 * HOUR), LARGE)
        with pytest.raises(PlanNotFoundError, match="old"):
            await store.get("old", START + HOUR)
        assert await store.purge(START + HOUR) == 1
        assert await bodies(database) == 1
        assert (await store.get("new", START + HOUR)).plan_id == "new"

    holds(law)


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_shared_groups_are_removed_with_the_last_plan(
    holds: Callable[..., None], body: PlanBody
) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        await store.put(completed("one"), body)
        await store.put(completed("two", "one"))
        await store.delete("one", START)
        with pytest.raises(PlanNotFoundError):
            await store.delete("one", START)
        assert await streamed(store, await store.get("two", START)) == b"".join(body.parts)
        await store.delete("two", START)
        assert await bodies(database) == 0
        with pytest.raises(PlanNotFoundError):
            await store.put(completed("three", "one"))
        await store.put(submitted("four"), lease_until=START)
        with pytest.raises(PlanNotFoundError):
            await store.finish(completed("four", "one"))
        assert (await store.get("four", START)).state == "submitted"

    holds(law)


@pytest.mark.slow
def test_a_plan_can_share_groups_while_their_last_other_plan_is_removed(
    holds: Callable[..., None],
) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        async def share(name: str, body_id: str) -> None:
            with suppress(PlanNotFoundError):
                await store.put(completed(name, body_id))
                assert await streamed(store, await store.get(name, START)) == b"ht"
                await store.delete(name, START)

        for at in range(40):
            await store.put(completed(f"first{at}"), EMPTY)
            shares = [share(f"{each}-{at}", f"first{at}") for each in "abc"]
            await asyncio.gather(store.delete(f"first{at}", START), *shares)
        # Groups that were being shared during a deletion are removed later.
        await store.purge(START + HOUR)
        assert await bodies(database) == 0

    holds(law)


def test_a_submitted_plan_is_finished_once_and_only_if_not_deleted(
    holds: Callable[..., None],
) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        for name in ("p", "gone"):
            pending = submitted(name, snapshot_id=None, request_key=None)
            await store.put(pending, lease_until=START + HOUR)
            assert await store.get(name, START) == pending
        assert await store.renew("p", START + 2 * HOUR)
        await store.finish(completed("p"), SMALL)
        assert await store.get("p", START) == completed("p")
        assert not await store.renew("p", START + 2 * HOUR)
        with pytest.raises(PlanCancelledError):
            await store.finish(completed("p", "other"), LARGE)
        await store.delete("gone", START)
        with pytest.raises(PlanCancelledError):
            await store.finish(completed("gone"), SMALL)
        assert await bodies(database) == 1

    holds(law)


def test_plans_left_by_a_replica_are_adopted_by_exactly_one_other(
    holds: Callable[..., None],
) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        other = SqlPlanStore(database, lambda: START, 1_000)
        await store.put(submitted("left"), lease_until=START)
        await store.put(submitted("kept"), lease_until=START + HOUR)
        await store.put(submitted("late", expires_at=START), lease_until=START)
        await store.put(completed("made"), SMALL)
        later = START + timedelta(seconds=1)
        found = [await one.adopt(later, START + HOUR) for one in (store, other)]
        assert [[plan.plan_id for plan in plans] for plans in found] == [["left"], []]

    holds(law)


def test_only_completed_unexpired_plans_of_the_same_request_are_found(
    holds: Callable[..., None],
) -> None:
    async def law(store: SqlPlanStore, _: Database) -> None:
        await store.put(submitted("pending"), lease_until=START)
        assert await store.find("key", START) is None
        await store.put(completed("p"), SMALL)
        found = await store.find("key", START)
        assert found == completed("p")
        assert await store.find("other", START) is None
        assert await store.find("key", START + HOUR) is None

    holds(law)


@pytest.mark.parametrize("chunks", [1, 2])
def test_the_total_size_of_plans_is_bounded(holds: Callable[..., None], chunks: int) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        large = PlanBody(
            head=b"",
            chunks=[PlanChunk(first_group=at, data=bytes(600 // chunks)) for at in range(chunks)],
            tail=b"",
        )
        await store.put(completed("one"), large)
        with pytest.raises(PlansFullError, match="600 of 1,000"):
            await store.put(completed("two"), large)
        other = SqlPlanStore(database, lambda: START, 1_000)
        await other.purge(START)
        with pytest.raises(PlansFullError):
            await other.put(completed("two"), large)
        await store.delete("one", START)
        await store.purge(START)
        await store.put(completed("two"), large)

    holds(law)


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_a_plan_is_stored_once_per_key(holds: Callable[..., None], body: PlanBody) -> None:
    async def law(store: SqlPlanStore, database: Database) -> None:
        once = Once(principal="me", key="k", fingerprint="f", answer=lambda plan: plan.plan_id)
        await store.put(completed("one"), body, once=once)
        with pytest.raises(RepeatedRequestError) as caught:
            await store.put(completed("two"), body, once=once)
        assert caught.value.answer == "one"
        assert await bodies(database) == 1
        with pytest.raises(PlanNotFoundError):
            await store.get("two", START)

    holds(law)
