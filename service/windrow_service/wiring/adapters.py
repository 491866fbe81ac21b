"""Open what all services stand on: the database and its stores, the cache map, meters, threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from windrow_service.administration import database_url
from windrow_service.cache_map.memory import MemoryCacheMap
from windrow_service.filters.limits import FilterLimits
from windrow_service.runs.background import keep_doing
from windrow_service.runs.threads import ThreadRunner
from windrow_service.settings import Settings
from windrow_service.store.cache_rules import SqlCacheRuleStore
from windrow_service.store.clock import DatabaseClock
from windrow_service.store.database import Database, open_database
from windrow_service.store.partition_lists import SqlPartitionListStore
from windrow_service.store.plans import SqlPlanStore
from windrow_service.store.snapshots import SqlSnapshotStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.store.writes import SqlWriteStore
from windrow_service.telemetry.opening import open_meters, open_spans
from windrow_service.telemetry.watch import Watch
from windrow_service.usecases.caches.errors import CacheUnavailableError
from windrow_service.usecases.errors import OutcomeUnknownError, StoreUnavailableError
from windrow_service.usecases.ports import Clock

if TYPE_CHECKING:
    from windrow_service.cache_map.redis import RedisCacheMap

CacheMap: TypeAlias = "RedisCacheMap | MemoryCacheMap"
T = TypeVar("T")
_LOOK_EVERY_S = 5.0
_NO_DATABASE = (StoreUnavailableError, OutcomeUnknownError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Adapters that several rooms use, and the ways to open more; all are closed with the stack.

    Attributes:
        settings: All settings.
        stack: Closes the adapters, in reverse order.
        database: The database below the stores.
        clock: The time by the database.
        watch: Measures and traces calls of adapters.
        runner: Runs plans in threads, and everything else that is quick.
        cache: The cache map.
        tables: The store of tables; the other stores likewise.
    """

    settings: Settings
    stack: AsyncExitStack
    database: Database
    clock: DatabaseClock
    watch: Watch
    runner: ThreadRunner
    cache: CacheMap
    tables: SqlTableStore
    partition_lists: SqlPartitionListStore
    snapshots: SqlSnapshotStore
    writes: SqlWriteStore
    cache_rules: SqlCacheRuleStore
    plans: SqlPlanStore

    @property
    def filter_limits(self) -> FilterLimits:
        """The limits of filters."""
        limits = self.settings.limits
        return FilterLimits(max_nodes=limits.max_filter_nodes, max_depth=limits.max_filter_depth)

    def stored(self, store: T, room: str) -> T:
        """Return a further store, with its calls measured and traced."""
        return self.watch.over(store, "database", room, _NO_DATABASE)

    def threads(self, name: str) -> ThreadRunner:
        """Return threads of their own for one kind of work."""
        return _threads(self.settings, self.watch, name)

    def repeat(self, what: str, work: Callable[[], Awaitable[object]], every_s: float) -> None:
        """Repeat work in the background until the stack is closed."""
        keep_doing(self.stack, what, work, every_s)


async def open_adapters(settings: Settings, machine: Clock, stack: AsyncExitStack) -> Adapters:
    """Open the adapters; the stack closes them.

    Args:
        settings: All settings.
        machine: The clock of this machine.
        stack: Closes them.
    """
    database = await open_database(database_url(settings), machine)
    stack.push_async_callback(database.aclose)
    clock = database.clock
    keep_doing(stack, "look at the database's clock", clock.look, _LOOK_EVERY_S)
    meters = open_meters(settings.metrics.port, settings.metrics.max_workers)
    meters.gauge("clock_skew_seconds", lambda: clock.skew.total_seconds())
    spans = open_spans()
    stack.push_async_callback(asyncio.to_thread, spans.close)
    watch = Watch(meters, spans)

    def stored(store: T, room: str) -> T:
        return watch.over(store, "database", room, _NO_DATABASE)

    max_plan_bytes = settings.limits.max_plan_bytes
    cache = _open_cache(settings, stack)
    return Adapters(
        settings=settings,
        stack=stack,
        database=database,
        clock=clock,
        watch=watch,
        runner=_threads(settings, watch, "plans"),
        cache=watch.over(cache, "cache_map", "cache", (CacheUnavailableError,)),
        tables=stored(SqlTableStore(database, clock), "tables"),
        partition_lists=stored(SqlPartitionListStore(database, clock), "partition_lists"),
        snapshots=stored(SqlSnapshotStore(database, clock), "snapshots"),
        writes=stored(SqlWriteStore(database, clock, meters), "writes"),
        cache_rules=stored(SqlCacheRuleStore(database, clock), "cache_rules"),
        plans=stored(SqlPlanStore(database, clock, max_plan_bytes), "plans"),
    )


def _threads(settings: Settings, watch: Watch, name: str) -> ThreadRunner:
    return ThreadRunner(
        max_running=settings.planner_threads,
        max_waiting=settings.max_waiting,
        name=name,
        meters=watch.meters,
    )


def _open_cache(settings: Settings, stack: AsyncExitStack) -> CacheMap:
    if settings.redis_url is None:
        return MemoryCacheMap()
    # The Redis client takes a twentieth of the time of all imports, and only replicas need it.
    from windrow_service.cache_map.redis import RedisCacheMap
    from windrow_service.cache_map.server import RedisServer

    server = RedisServer(settings.redis_url.get_secret_value())
    stack.push_async_callback(server.aclose)
    return RedisCacheMap(server)
