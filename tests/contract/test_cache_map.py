"""Behaviour of a cache map, in this process and in Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol, TypeVar

import numpy as np
import pytest

from tests.support.servers.redis import flush, redis_url
from windrow_core.models import Heartbeat
from windrow_service.cache_map.memory import MemoryCacheMap
from windrow_service.planner.splits import Hashes
from windrow_service.usecases.caches.errors import (
    CacheFullError,
    TooManyWorkersError,
    WorkerNotFoundError,
)
from windrow_service.usecases.caches.ports import CacheMap, CacheReport, Heartbeats

T = TypeVar("T")
NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
TTL_S = 30
LATER = NOW + timedelta(seconds=TTL_S)
EVENTS, ORDERS = 1, 2


class Store(Heartbeats, CacheMap, Protocol):
    """Both ports of the cache map, which one adapter serves."""


Opened = Callable[..., AbstractAsyncContextManager[Store]]


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_url(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(params=["memory", "redis"])
def opened(request: pytest.FixtureRequest) -> Opened:
    """Return a function that opens an empty cache map with the given limits."""
    if request.param == "redis":
        url: str = request.getfixturevalue("server_url")
        flush(url)

    @asynccontextmanager
    async def open_store(**limits: int) -> AsyncIterator[Store]:
        if request.param == "memory":
            yield MemoryCacheMap(**limits)
            return
        from windrow_service.cache_map.redis import RedisCacheMap
        from windrow_service.cache_map.server import RedisServer

        server = RedisServer(url, timeout_s=20, deadline_s=60)
        try:
            yield RedisCacheMap(server, **limits)
        finally:
            await server.aclose()

    return open_store


def done(work: Coroutine[Any, Any, T]) -> T:
    # In a thread, as the browser of other tests keeps an event loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def trying(opened: Opened, work: Callable[[Store], Awaitable[T]], **limits: int) -> T:
    async def run() -> T:
        async with opened(**limits) as store:
            return await work(store)

    return done(run())


def heartbeat(host: str = "h1", ttl_seconds: int = TTL_S) -> Heartbeat:
    return Heartbeat(host=host, capacity_bytes=100, used_bytes=7, ttl_seconds=ttl_seconds)


def keys(*values: int) -> Hashes:
    # Upper bits of a key select its shard: set them too, so that several shards are used.
    spread: Hashes = np.array(values, np.uint64) * np.uint64(0x0101010101010101)
    return spread


async def report(
    store: Store,
    worker_id: str,
    *,
    added: Hashes = keys(),  # noqa: B008
    removed: Hashes = keys(),  # noqa: B008
    table_id: int = EVENTS,
    replace: bool = False,
    session: str | None = None,
    now: datetime = NOW,
) -> int:
    if session is None:
        session = {each.worker_id: each.session for each in await store.live(now)}[worker_id]
    what = CacheReport(
        worker_id=worker_id,
        session=session,
        table_id=table_id,
        added=added,
        removed=removed,
        replace=replace,
    )
    return await store.report(what, now)


async def held(store: Store, table_id: int = EVENTS, now: datetime = NOW) -> list[tuple[str, Any]]:
    holdings = await store.holdings(table_id, now)
    return [(each.host, each.keys.tolist()) for each in holdings if len(each.keys)]


def test_a_worker_that_sends_heartbeats_is_alive_and_described(opened: Opened) -> None:
    async def work(store: Store) -> None:
        beaten = await store.beat("w2", heartbeat("h2"), NOW)
        await store.beat("w1", heartbeat("h1"), NOW)

        live = await store.live(NOW)

        assert [worker.worker_id for worker in live] == ["w1", "w2"]
        assert live[1] == beaten
        assert (beaten.host, beaten.capacity_bytes, beaten.used_bytes) == ("h2", 100, 7)
        assert beaten.expires_at == LATER

    trying(opened, work)


def test_a_worker_without_heartbeats_is_forgotten_with_all_its_files(opened: Opened) -> None:
    async def work(store: Store) -> None:
        first = await store.beat("w1", heartbeat(), NOW)
        await report(store, "w1", added=keys(1, 2))

        assert await store.live(LATER) == []
        assert await held(store, now=LATER) == []
        with pytest.raises(WorkerNotFoundError):
            await report(store, "w1", session=first.session, added=keys(3), now=LATER)
        again = await store.beat("w1", heartbeat(), LATER)
        assert again.session != first.session
        assert await held(store, now=LATER) == []

    trying(opened, work)


def test_a_worker_with_heartbeats_keeps_its_session_and_files(opened: Opened) -> None:
    async def work(store: Store) -> None:
        now = NOW
        first = await store.beat("w1", heartbeat(), now)
        await report(store, "w1", added=keys(1, 2))
        for _ in range(4):
            now += timedelta(seconds=TTL_S - 1)
            beaten = await store.beat("w1", heartbeat("elsewhere"), now)
            assert beaten.session == first.session

        assert await held(store, now=now) == [("elsewhere", keys(1, 2).tolist())]

    trying(opened, work)


def test_added_and_removed_files_change_what_is_held(opened: Opened) -> None:
    async def work(store: Store) -> None:
        await store.beat("w1", heartbeat(), NOW)

        assert await report(store, "w1", added=keys(200, 3, 3, 1)) == 3
        assert await report(store, "w1", added=keys(2, 3), removed=keys(1, 99)) == 3
        assert await held(store) == [("h1", keys(2, 3, 200).tolist())]
        assert await report(store, "w1", added=keys(2), removed=keys(2)) == 3
        assert await report(store, "w1") == 3
        assert await report(store, "w1", removed=keys(2, 3, 200)) == 0
        assert await held(store) == []

    trying(opened, work)


def test_a_replacing_report_leaves_only_what_it_adds(opened: Opened) -> None:
    async def work(store: Store) -> None:
        await store.beat("w1", heartbeat(), NOW)
        await report(store, "w1", added=keys(*range(250)))

        assert await report(store, "w1", added=keys(7, 300), replace=True) == 2
        assert await held(store) == [("h1", keys(7, 300).tolist())]
        assert await report(store, "w1", replace=True) == 0
        assert await held(store) == []

    trying(opened, work)


def test_files_of_different_tables_and_workers_are_not_mixed(opened: Opened) -> None:
    async def work(store: Store) -> None:
        for worker_id, host in (("w2", "h2"), ("w1", "h1")):
            await store.beat(worker_id, heartbeat(host), NOW)
        await report(store, "w1", added=keys(1))
        await report(store, "w2", added=keys(1, 2))
        await report(store, "w2", added=keys(3), table_id=ORDERS)

        assert await held(store) == [("h1", keys(1).tolist()), ("h2", keys(1, 2).tolist())]
        assert await held(store, ORDERS) == [("h2", keys(3).tolist())]
        assert await held(store, 3) == []

    trying(opened, work)


def test_a_forgotten_worker_is_gone_at_once(opened: Opened) -> None:
    async def work(store: Store) -> None:
        for worker_id in ("w1", "w2"):
            await store.beat(worker_id, heartbeat(), NOW)
            await report(store, worker_id, added=keys(1))

        await store.forget("w1", NOW)

        assert [worker.worker_id for worker in await store.live(NOW)] == ["w2"]
        assert len(await held(store)) == 1
        with pytest.raises(WorkerNotFoundError):
            await store.forget("w1", NOW)

    trying(opened, work)


def test_a_report_of_another_session_or_an_unknown_worker_changes_nothing(opened: Opened) -> None:
    async def work(store: Store) -> None:
        await store.beat("w1", heartbeat(), NOW)
        for worker_id in ("w1", "w2"):
            with pytest.raises(WorkerNotFoundError):
                await report(store, worker_id, session="0" * 16, added=keys(1))

        assert await held(store) == []

    trying(opened, work)


def test_a_report_of_too_many_files_is_refused_and_changes_nothing(
    opened: Opened,
) -> None:
    async def work(store: Store) -> None:
        await store.beat("w1", heartbeat(), NOW)
        await report(store, "w1", added=keys(1, 2))
        await report(store, "w1", added=keys(3), table_id=ORDERS)
        for replace in (False, True):
            with pytest.raises(CacheFullError):
                await report(store, "w1", added=keys(4, 5, 6, 7), table_id=ORDERS, replace=replace)

        assert await held(store, ORDERS) == [("h1", keys(3).tolist())]
        assert await report(store, "w1", added=keys(4), table_id=ORDERS) == 2
        assert await report(store, "w1", added=keys(5, 6), table_id=ORDERS, replace=True) == 2

    trying(opened, work, max_files=4)


def test_workers_beyond_the_maximum_are_refused_until_one_is_gone(opened: Opened) -> None:
    async def work(store: Store) -> None:
        for worker_id in ("w1", "w2", "w1"):
            await store.beat(worker_id, heartbeat(), NOW)
        with pytest.raises(TooManyWorkersError):
            await store.beat("w3", heartbeat(), NOW)
        await store.beat("w3", heartbeat(), LATER)

        assert [worker.worker_id for worker in await store.live(LATER)] == ["w3"]

    trying(opened, work, max_workers=2)


@pytest.mark.slow
def test_concurrent_reports_and_heartbeats_of_a_worker_lose_nothing(opened: Opened) -> None:
    async def work(store: Store) -> None:
        await store.beat("w1", heartbeat(), NOW)
        await report(store, "w1", added=keys(*range(100, 120)))
        await asyncio.gather(
            *(report(store, "w1", added=keys(n, n + 30)) for n in range(20)),
            *(report(store, "w1", removed=keys(100 + n)) for n in range(20)),
            *(store.beat("w1", heartbeat(), NOW) for _ in range(5)),
        )

        expected = keys(*sorted({*range(20), *range(30, 50)})).tolist()
        assert await held(store) == [("h1", expected)]

    trying(opened, work)


def test_a_worker_that_holds_nothing_is_listed_with_its_capacity(opened: Opened) -> None:
    async def work(store: Store) -> None:
        await store.beat("w1", heartbeat("h1"), NOW)
        (holding,) = await store.holdings(EVENTS, NOW)

        assert (holding.host, holding.keys.tolist()) == ("h1", [])
        assert holding.capacity_bytes == heartbeat().capacity_bytes

    trying(opened, work)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_million_files_are_returned_as_one_sorted_column(opened: Opened) -> None:
    many = np.random.default_rng(0).integers(0, 2**64, 1_000_000, np.uint64)
    distinct = np.unique(many)

    async def work(store: Store) -> None:
        await store.beat("w1", heartbeat(), NOW)
        assert await report(store, "w1", added=many) == len(distinct)
        (holding,) = await store.holdings(EVENTS, NOW)

        assert holding.keys.dtype == np.uint64
        assert np.array_equal(holding.keys, distinct)

    trying(opened, work)


def test_a_working_cache_map_answers_a_ping(opened: Opened) -> None:
    async def work(store: Store) -> None:
        await store.ping()

    trying(opened, work)


def test_nothing_of_a_removed_worker_remains_in_redis(server_url: str) -> None:
    import redis

    from windrow_service.cache_map.redis import RedisCacheMap
    from windrow_service.cache_map.server import RedisServer

    flush(server_url)

    async def work() -> None:
        server = RedisServer(server_url, timeout_s=20, deadline_s=60)
        store = RedisCacheMap(server)
        await store.beat("w1", heartbeat(ttl_seconds=1), NOW)
        await report(store, "w1", added=keys(1, 2))
        await store.beat("w1", heartbeat(ttl_seconds=1), NOW)
        await server.aclose()

    done(work())

    with redis.Redis.from_url(server_url) as asked:
        assert all(asked.pttl(key) > 0 for key in asked.scan_iter())
        deadline = time.monotonic() + 30
        # Only lists of ids are left, whose entries the next heartbeat removes, and for a day how
        # the worker last was.
        left = {b"windrow:1:workers", b"windrow:1:seen", b"windrow:1:last:w1"}
        while set(asked.scan_iter()) != left:
            assert time.monotonic() < deadline, set(asked.scan_iter())
            time.sleep(0.05)


def test_a_worker_that_fell_silent_is_named_for_a_day_unless_it_comes_back_or_left(
    opened: Opened,
) -> None:
    async def work(store: Store) -> None:
        for number in range(4):
            await store.beat(f"w{number}", heartbeat(f"h{number}"), NOW)
        await store.forget("w3", NOW)
        assert await store.gone(NOW) == []

        await store.beat("w1", heartbeat("h1"), LATER)
        gone = await store.gone(LATER)
        almost = await store.gone(LATER + timedelta(days=1, seconds=-1))
        later = await store.gone(LATER + timedelta(days=1))

        assert {one.worker_id for one in gone} == {"w0", "w2"}
        assert {one.host for one in gone} == {"h0", "h2"}
        assert {one.worker_id for one in almost} == {"w0", "w1", "w2"}
        assert {one.worker_id for one in later} == {"w1"}

    trying(opened, work)
