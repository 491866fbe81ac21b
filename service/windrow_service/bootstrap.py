"""Build everything, and close it again; only this and `bootstrap_access` name adapters."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime, timezone
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import FastAPI

from windrow_core.files.without_pandas import keep_pandas_out
from windrow_service.administration import database_url
from windrow_service.api.app import create_app
from windrow_service.api.bodies import BodyLimits
from windrow_service.api.html.loading import load_pages
from windrow_service.api.problems import describe
from windrow_service.api.services import (
    CacheServices,
    OperationServices,
    PlanServices,
    Services,
    SnapshotServices,
    TableServices,
    UpkeepServices,
    WriteServices,
)
from windrow_service.bootstrap_access import NO_DATABASE, open_access
from windrow_service.cache_map.memory import MemoryCacheMap
from windrow_service.config import config_of
from windrow_service.directories import DirectoryInventories
from windrow_service.filters.limits import FilterLimits
from windrow_service.issuers.trust import authorities_of
from windrow_service.logs import get_logger
from windrow_service.runs.background import keep_doing
from windrow_service.runs.gauges import LookAround
from windrow_service.runs.plan_runs import PlanRuns
from windrow_service.runs.refreshes import Refreshes
from windrow_service.runs.shared import TasksInCommon
from windrow_service.runs.threads import ThreadRunner
from windrow_service.runs.turns import TakenInTurn
from windrow_service.settings import Settings
from windrow_service.store.audit import SqlAuditLog
from windrow_service.store.cache_rules import SqlCacheRuleStore
from windrow_service.store.database import (
    open_database,
    upgrade_database,
)
from windrow_service.store.expiry import SqlSnapshotKeeping
from windrow_service.store.figures import SqlTableFigures
from windrow_service.store.migrate import Upgraded
from windrow_service.store.partition_lists import SqlPartitionListStore
from windrow_service.store.plan_history import SqlPlanHistory
from windrow_service.store.plans import SqlPlanStore
from windrow_service.store.refreshes import SqlRefreshStore
from windrow_service.store.snapshots import SqlSnapshotStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.store.writes import SqlWriteStore
from windrow_service.telemetry.measured import Watch
from windrow_service.telemetry.meters import Meters
from windrow_service.telemetry.opening import open_meters, open_spans
from windrow_service.usecases.caches.errors import CacheUnavailableError
from windrow_service.usecases.caches.reports import ReportCachedFiles
from windrow_service.usecases.caches.rules import DefineCacheRule
from windrow_service.usecases.caches.show import ShowCache
from windrow_service.usecases.caches.table_caching import TableCaching
from windrow_service.usecases.plans.drafts import DraftPlan
from windrow_service.usecases.plans.explain import ExplainPlan
from windrow_service.usecases.plans.history import LookBack
from windrow_service.usecases.plans.make import MakePlan
from windrow_service.usecases.plans.pages import PageLimits, ReadPlan
from windrow_service.usecases.snapshots.expiry import ExpireSnapshots
from windrow_service.usecases.snapshots.gained_files import FindGainedFiles
from windrow_service.usecases.snapshots.publish import PublishInventory
from windrow_service.usecases.snapshots.refresh import RefreshTable
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.partitions import SetPartitions, ShowPartitions
from windrow_service.usecases.tables.register import RegisterTable
from windrow_service.usecases.upkeep.advice import AdviseTable
from windrow_service.usecases.upkeep.compaction import PlanCompaction
from windrow_service.usecases.upkeep.worst_partitions import FindWorstPartitions
from windrow_service.usecases.writes.plan import PlanWrite
from windrow_service.wire.groups import ArrowGroups

if TYPE_CHECKING:
    from windrow_service.cache_map.redis import RedisCacheMap

_EXPIRE_EVERY_S = 60.0
_PURGE_EVERY_S = 5.0
_ADOPT_EVERY_S = 3.0
_SWITCH_S = 0.001
T = TypeVar("T")
_log = get_logger(__name__)


def build_app(settings: Settings, *, owns_process: bool = False) -> FastAPI:
    """Return the coordinator's application; nothing is opened before it starts.

    Args:
        settings: All settings.
        owns_process: Whether the process runs only the coordinator; it is then tuned, and pages
            are loaded at its start.
    """

    @asynccontextmanager
    async def opened() -> AsyncIterator[Services]:
        async with open_services(settings) as services:
            if owns_process:
                _tune_the_process()
                # In a thread, because it must not delay requests.
                asyncio.get_running_loop().run_in_executor(None, load_pages)
            yield services

    return create_app(
        opened,
        body_limits=BodyLimits(
            max_bytes=settings.limits.max_body_bytes,
            max_published_bytes=settings.limits.max_publish_bytes,
            # The chart's memory limit counts as many.
            max_held_bytes=settings.planner_threads * settings.limits.max_body_bytes,
        ),
    )


def upgrade(settings: Settings) -> Upgraded:
    """Upgrade the database to the revision that this version needs.

    Raises:
        RevisionError: The database belongs to a later version of Windrow, or is not Windrow's.
        StoreUnavailableError: The database does not answer, or is full.
    """
    return upgrade_database(database_url(settings))


async def check(settings: Settings) -> None:
    """Make sure that the database, and the files and ports in the settings, are ready for use.

    An embedded database is created, or upgraded to the newest revision.

    Raises:
        AuthoritiesError: The certificates for an issuer cannot be read.
        RevisionError: The database is at another revision.
        StoreUnavailableError: The database does not answer, or cannot be created.
        PortTakenError: Nothing can listen on the port for metrics.
    """
    for name, issuer in settings.issuers.items():
        authorities_of(name, issuer)
    database = await open_database(database_url(settings))
    await database.aclose()
    if settings.metrics.port is not None:
        from windrow_service.api.metrics import listening

        listening(settings.host, settings.metrics.port).close()


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open every adapter, and close them in reverse order on exit."""
    async with AsyncExitStack() as stack:
        database = await open_database(database_url(settings))
        stack.push_async_callback(database.aclose)
        meters = open_meters(settings.metrics.port, settings.metrics.max_workers)
        spans = open_spans()
        stack.push_async_callback(asyncio.to_thread, spans.close)
        watch = Watch(meters, spans)

        def threads(name: str) -> ThreadRunner:
            return ThreadRunner(
                max_running=settings.planner_threads,
                max_waiting=settings.max_waiting,
                name=name,
                meters=meters,
            )

        def stored(store: T, room: str) -> T:
            return watch.over(store, "database", room, NO_DATABASE)

        runner = threads("plans")
        # Refreshes take long and read files: plans and refreshes must not wait for each other.
        refresh_runner = threads("refreshes")
        tables = stored(SqlTableStore(database, _now), "tables")
        partition_lists = stored(SqlPartitionListStore(database, _now), "partition_lists")
        snapshots = stored(SqlSnapshotStore(database, _now), "snapshots")
        writes = stored(SqlWriteStore(database, _now, meters), "writes")
        cache_rules = stored(SqlCacheRuleStore(database, _now), "cache_rules")
        plans = stored(SqlPlanStore(database, _now, settings.limits.max_plan_bytes), "plans")
        audit = stored(SqlAuditLog(database), "audit")

        async def purge_audit() -> int:
            return await audit.purge(_now() - settings.audit.max_age, settings.audit.max_records)

        history = stored(SqlPlanHistory(database), "plan_history")

        async def purge_history() -> int:
            kept = settings.history
            return await history.purge(_now() - kept.max_age, kept.max_plans)

        access = await open_access(settings, database, watch, _now, stack)
        cache = _open_cache(settings, stack)
        watch.over(cache, "cache_map", "cache", (CacheUnavailableError,))
        inventories = DirectoryInventories(
            settings.allowed_locations, settings.limits.max_footer_bytes
        )
        refresh_table = RefreshTable(
            tables=tables,
            partition_lists=partition_lists,
            snapshots=snapshots,
            writes=writes,
            inventories=inventories,
            runner=refresh_runner,
            clock=_now,
        )
        refresh_store = stored(SqlRefreshStore(database), "refreshes")
        refreshes = Refreshes(refresh_table, refresh_store, _problem_of, _now, meters)
        stack.push_async_callback(refreshes.aclose)
        shared = TasksInCommon()
        stack.push_async_callback(shared.aclose)
        manifests = ManifestReader(snapshots, runner, settings.manifest_cache_bytes, meters)
        caching = TableCaching(cache_rules, cache, manifests, runner, _now)
        codec = ArrowGroups()
        filter_limits = FilterLimits(
            max_nodes=settings.limits.max_filter_nodes, max_depth=settings.limits.max_filter_depth
        )
        make_plan = MakePlan(
            tables=tables,
            snapshots=snapshots,
            plans=plans,
            draft=DraftPlan(
                manifests=manifests,
                caching=caching,
                codec=codec,
                runner=runner,
                filter_limits=filter_limits,
                max_plan_files=settings.limits.max_plan_files,
                meters=meters,
                spans=spans,
            ),
            shared=shared,
            refresher=refreshes,
            describe=_problem_of,
            clock=_now,
            plan_ttl=settings.limits.plan_ttl,
        )
        read_plan = ReadPlan(
            plans=plans,
            codec=codec,
            runner=runner,
            clock=_now,
            limits=PageLimits(
                max_page_groups=settings.limits.max_page_groups,
                default_page_groups=settings.limits.default_page_groups,
                max_page_splits=settings.limits.max_page_splits,
            ),
        )
        plan_runs = PlanRuns(
            make_plan,
            plans,
            _now,
            max_running=settings.planner_threads + settings.max_waiting,
        )
        stack.push_async_callback(plan_runs.aclose)
        expire_snapshots = ExpireSnapshots(
            tables=tables,
            keeping=stored(SqlSnapshotKeeping(database), "snapshots"),
            clock=_now,
            keep_last=settings.snapshots.keep_last,
            max_age=settings.snapshots.max_age,
            max_count=settings.snapshots.max_count,
        )
        for what, work, every_s in (
            ("forget expired plans", lambda: plans.purge(_now()), _PURGE_EVERY_S),
            ("forget expired cache rules", lambda: cache_rules.purge(_now()), _EXPIRE_EVERY_S),
            ("forget old records of changes", purge_audit, _EXPIRE_EVERY_S),
            ("forget old plans", purge_history, _EXPIRE_EVERY_S),
            ("drop old snapshots", expire_snapshots.everywhere, _EXPIRE_EVERY_S),
            ("continue abandoned plans", plan_runs.adopt, _ADOPT_EVERY_S),
        ):
            keep_doing(stack, what, work, every_s)
        if settings.metrics.port is not None:
            figures = stored(SqlTableFigures(database), "figures")
            look = LookAround(meters, figures, cache, settings.metrics.max_tables, _now)
            await stack.enter_async_context(_serving_metrics(settings, meters, look))
        yield Services(
            access=access,
            tables=TableServices(
                tables=tables,
                register=RegisterTable(tables=tables, locations=inventories, runner=runner),
                refreshes=refreshes,
                set_partitions=SetPartitions(
                    tables=tables,
                    lists=partition_lists,
                    locations=inventories,
                    runner=runner,
                    max_decoded_bytes=settings.limits.max_publish_decoded_bytes,
                ),
                show_partitions=ShowPartitions(lists=partition_lists, runner=runner),
            ),
            snapshots=SnapshotServices(
                snapshots=snapshots,
                publish=PublishInventory(
                    tables=tables,
                    partition_lists=partition_lists,
                    snapshots=snapshots,
                    manifests=manifests,
                    writes=writes,
                    turns=TakenInTurn(max_waiting=settings.max_waiting),
                    # Separate from refreshes, which take long, and from plans, which are quick.
                    runner=threads("publishing"),
                    clock=_now,
                    max_decoded_bytes=settings.limits.max_publish_decoded_bytes,
                ),
                expire=expire_snapshots,
                find_gained_files=FindGainedFiles(
                    snapshots=snapshots, manifests=manifests, runner=runner
                ),
                runner=runner,
            ),
            plans=PlanServices(
                plans=plans,
                make=make_plan,
                runs=plan_runs,
                read=read_plan,
                look_back=LookBack(history, read_plan),
                explain=ExplainPlan(
                    snapshots=snapshots,
                    manifests=manifests,
                    caching=caching,
                    max_plan_files=settings.limits.max_plan_files,
                ),
            ),
            writes=WriteServices(
                writes=writes,
                plan=PlanWrite(
                    tables=tables,
                    snapshots=snapshots,
                    manifests=manifests,
                    history=writes,
                    runner=runner,
                ),
                runner=runner,
            ),
            upkeep=UpkeepServices(
                plan_compaction=PlanCompaction(
                    snapshots=snapshots,
                    manifests=manifests,
                    filter_limits=filter_limits,
                    meters=meters,
                ),
                advise=AdviseTable(snapshots=snapshots, manifests=manifests, history=writes),
                find_worst_partitions=FindWorstPartitions(snapshots=snapshots, manifests=manifests),
            ),
            caches=CacheServices(
                rules=cache_rules,
                define_rule=DefineCacheRule(
                    snapshots=snapshots,
                    rules=cache_rules,
                    runner=runner,
                    clock=_now,
                    filter_limits=filter_limits,
                ),
                show=ShowCache(
                    snapshots=snapshots,
                    manifests=manifests,
                    rules=cache_rules,
                    caching=caching,
                    clock=_now,
                ),
                heartbeats=cache,
                report_files=ReportCachedFiles(
                    tables=tables, cache=cache, runner=runner, clock=_now
                ),
                clock=_now,
            ),
            operations=OperationServices(
                ping=database.ping,
                has_room=database.has_room,
                cache=cache,
                config=config_of(settings),
                meters=meters,
                spans=spans,
                audit=audit,
            ),
        )


def _serving_metrics(
    settings: Settings, meters: Meters, look: LookAround
) -> AbstractAsyncContextManager[None]:
    from windrow_service.api.metrics import serving_metrics
    from windrow_service.telemetry.prometheus import PrometheusMeters

    assert settings.metrics.port is not None
    assert isinstance(meters, PrometheusMeters)
    return serving_metrics(meters.registry, look, settings.host, settings.metrics.port)


def _open_cache(settings: Settings, stack: AsyncExitStack) -> RedisCacheMap | MemoryCacheMap:
    if settings.redis_url is None:
        return MemoryCacheMap()
    # The Redis client takes a twentieth of the time of all imports, and only replicas need it.
    from windrow_service.cache_map.redis import RedisCacheMap
    from windrow_service.cache_map.server import RedisServer

    server = RedisServer(settings.redis_url.get_secret_value())
    stack.push_async_callback(server.aclose)
    return RedisCacheMap(server)


def _tune_the_process() -> None:
    keep_pandas_out()
    # Planning in small steps must not hold the interpreter lock for long while calls wait.
    sys.setswitchinterval(_SWITCH_S)
    # A full collection looks at every module's objects and stops all threads for 0.1 s, and a
    # page of many splits starts several: docs/decisions/0004-plan-in-threads.md.
    gc.collect()
    gc.freeze()


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _problem_of(error: Exception) -> dict[str, Any]:
    problem = describe(error).body
    if problem["status"] == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("work in the background failed", exc_info=error)
    return problem
