"""Build the services of each room of the use cases: one function for each group of calls."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any

from windrow_core.files.limits import ReadLimits
from windrow_service.api.problems import describe
from windrow_service.api.services import (
    CacheServices,
    EngineServices,
    PlanServices,
    SnapshotServices,
    TableServices,
    UpkeepServices,
    WriteServices,
)
from windrow_service.directories import DirectoryInventories
from windrow_service.engines.folder import MetadataFolder
from windrow_service.logs import get_logger
from windrow_service.runs.plan_runs import PlanRuns
from windrow_service.runs.refreshes import Refreshes
from windrow_service.runs.shared_work import SharedTasks
from windrow_service.runs.turns import LocalTurns
from windrow_service.store.expiry import SqlSnapshotKeeping
from windrow_service.store.overview import SqlOverview
from windrow_service.store.plan_history import SqlPlanHistory
from windrow_service.store.refreshes import SqlRefreshStore
from windrow_service.store.streams import SqlStreamStore
from windrow_service.store.table_lists import SqlTableLists
from windrow_service.usecases.caches.reports import ReportCachedFiles
from windrow_service.usecases.caches.rules import DefineCacheRule
from windrow_service.usecases.caches.show import ShowCache
from windrow_service.usecases.caches.table_caching import TableCaching
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.engines.described_files import DescribedTables
from windrow_service.usecases.engines.own_files import OwnTables
from windrow_service.usecases.engines.part import DescribePart
from windrow_service.usecases.engines.scan import PlanScan
from windrow_service.usecases.packs.coverage import TablePacks
from windrow_service.usecases.packs.figures import PartitionFigures
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.plans.choices import FileChooser
from windrow_service.usecases.plans.drafts import DraftPlan
from windrow_service.usecases.plans.explain import ExplainPlan
from windrow_service.usecases.plans.history import LookBack
from windrow_service.usecases.plans.make import MakePlan
from windrow_service.usecases.plans.pages import PageLimits, ReadPlan
from windrow_service.usecases.snapshots.added_files import AddedFilesReader
from windrow_service.usecases.snapshots.differences import DifferenceReader
from windrow_service.usecases.snapshots.expiry import ExpireSnapshots
from windrow_service.usecases.snapshots.gained_files import FindGainedFiles
from windrow_service.usecases.snapshots.partitions import PartitionReader, ShowPartitionValues
from windrow_service.usecases.snapshots.publish import PublishInventory
from windrow_service.usecases.snapshots.refresh import RefreshTable
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.partitions import SetPartitions, ShowPartitions
from windrow_service.usecases.tables.register import RegisterTable
from windrow_service.usecases.upkeep.advice import AdviseTable
from windrow_service.usecases.upkeep.arrivals import FindArrivals
from windrow_service.usecases.upkeep.compaction import PlanCompaction
from windrow_service.usecases.upkeep.worst_partitions import FindWorstPartitions
from windrow_service.usecases.writes.plan import PlanWrite
from windrow_service.wire.groups import ArrowGroups
from windrow_service.wiring.adapters import Adapters

_EXPIRE_EVERY_S = 60.0
_PURGE_EVERY_S = 5.0
_ADOPT_EVERY_S = 3.0
_CLEAN_EVERY_S = 600.0
_RECORD_EVERY_S = 300.0
_FIGURES_FOR = timedelta(days=90)
_FOLLOW_EVERY_S = 1.0
# In one answer to another engine.
_MOST_TASKS = 10_000
_log = get_logger(__name__)


def open_tables(adapters: Adapters) -> TableServices:
    """Return the services of tables and their refreshes."""
    tables, lists, runner = adapters.tables, adapters.partition_lists, adapters.runner
    limits, inventories = adapters.settings.limits, _inventories(adapters)
    now = adapters.clock
    refresh = RefreshTable(
        tables=tables,
        partition_lists=lists,
        snapshots=adapters.snapshots,
        writes=adapters.writes,
        inventories=inventories,
        # Refreshes take long and read files: plans and refreshes must not wait for each other.
        runner=adapters.threads("refreshes"),
        clock=now,
    )
    store = adapters.stored(SqlRefreshStore(adapters.database), "refreshes")
    refreshes = Refreshes(refresh, store, _problem_of, now, adapters.watch.meters)
    adapters.stack.push_async_callback(refreshes.aclose)
    return TableServices(
        tables=tables,
        lists=adapters.stored(SqlTableLists(adapters.database, now), "tables"),
        register=RegisterTable(
            tables=tables, locations=inventories, runner=runner, max_fields=limits.max_fields
        ),
        refreshes=refreshes,
        set_partitions=SetPartitions(
            tables=tables,
            lists=lists,
            locations=inventories,
            runner=runner,
            max_decoded_bytes=limits.max_publish_decoded_bytes,
        ),
        show_partitions=ShowPartitions(lists=lists, runner=runner),
    )


def _inventories(adapters: Adapters) -> DirectoryInventories:
    settings = adapters.settings
    limits = settings.limits
    return DirectoryInventories(
        settings.allowed_locations, ReadLimits(limits.max_footer_bytes, limits.max_fields)
    )


def open_manifests(adapters: Adapters) -> ManifestReader:
    """Return the reader of manifests, whose cache several rooms share."""
    max_bytes = adapters.settings.manifest_cache_bytes
    # The chart's memory limit has room for this many bytes: the rest is for partition values and
    # for differences of snapshots.
    max_bytes -= 2 * (max_bytes // 8)
    return ManifestReader(adapters.snapshots, adapters.runner, max_bytes, adapters.watch.meters)


def open_partitions(adapters: Adapters, manifests: ManifestReader) -> PartitionReader:
    """Return the reader of partition values, which has an eighth of the bytes for manifests."""
    max_bytes = adapters.settings.manifest_cache_bytes // 8
    return PartitionReader(manifests, adapters.runner, max_bytes)


def open_added_files(adapters: Adapters, manifests: ManifestReader) -> AddedFilesReader:
    """Return the reader of added files, whose differences have an eighth of those bytes, too."""
    max_bytes = adapters.settings.manifest_cache_bytes // 8
    differences = DifferenceReader(manifests, adapters.runner, max_bytes)
    return AddedFilesReader(
        snapshots=adapters.snapshots, differences=differences, runner=adapters.runner
    )


def open_snapshots(
    adapters: Adapters,
    manifests: ManifestReader,
    partitions: PartitionReader,
    added_files: AddedFilesReader,
    packs: TablePacks,
) -> SnapshotServices:
    """Return the services of snapshots, and drop old ones in the background."""
    settings, tables, snapshots = adapters.settings, adapters.tables, adapters.snapshots
    now = adapters.clock
    expire = ExpireSnapshots(
        tables=tables,
        keeping=adapters.stored(SqlSnapshotKeeping(adapters.database), "snapshots"),
        clock=now,
        keep_last=settings.snapshots.keep_last,
        max_age=settings.snapshots.max_age,
        max_count=settings.snapshots.max_count,
    )
    adapters.repeat("drop old snapshots", expire.everywhere, _EXPIRE_EVERY_S)
    return SnapshotServices(
        snapshots=snapshots,
        publish=PublishInventory(
            tables=tables,
            partition_lists=adapters.partition_lists,
            snapshots=snapshots,
            manifests=manifests,
            writes=adapters.writes,
            turns=LocalTurns(max_waiting=settings.max_waiting),
            # Separate from refreshes, which take long, and from plans, which are quick.
            runner=adapters.threads("publishing"),
            clock=now,
            max_decoded_bytes=settings.limits.max_publish_decoded_bytes,
            max_fields=settings.limits.max_fields,
        ),
        expire=expire,
        find_gained_files=FindGainedFiles(
            snapshots=snapshots,
            writes=adapters.writes,
            manifests=manifests,
            runner=adapters.runner,
        ),
        count_added_files=added_files,
        show_partition_values=ShowPartitionValues(snapshots=snapshots, partitions=partitions),
        partition_figures=PartitionFigures(
            snapshots=snapshots, manifests=manifests, partitions=partitions, packs=packs
        ),
        runner=adapters.runner,
    )


def open_caching(adapters: Adapters, manifests: ManifestReader) -> TableCaching:
    """Return what is known about the caches of tables, for plans and for pages about caches."""
    rules, cache, now = adapters.cache_rules, adapters.cache, adapters.clock
    return TableCaching(rules, cache, manifests, adapters.runner, now)


def open_plans(
    adapters: Adapters,
    manifests: ManifestReader,
    partitions: PartitionReader,
    added_files: AddedFilesReader,
    caching: TableCaching,
    refreshes: Refreshes,
    packs: TablePacks,
) -> PlanServices:
    """Return the services of plans; make abandoned ones and forget old ones in the background."""
    settings, limits = adapters.settings, adapters.settings.limits
    plans, codec, now = adapters.plans, ArrowGroups(), adapters.clock
    history = adapters.stored(SqlPlanHistory(adapters.database), "plan_history")
    choose = FileChooser(partitions=partitions, additions=added_files)
    shared_work = SharedTasks()
    adapters.stack.push_async_callback(shared_work.aclose)
    make = MakePlan(
        tables=adapters.tables,
        snapshots=adapters.snapshots,
        plans=plans,
        draft=DraftPlan(
            manifests=manifests,
            choose=choose,
            caching=caching,
            packs=packs,
            codec=codec,
            runner=adapters.runner,
            filter_limits=adapters.filter_limits,
            max_plan_files=limits.max_plan_files,
            meters=adapters.watch.meters,
            spans=adapters.watch.spans,
        ),
        shared_work=shared_work,
        refresher=refreshes,
        describe=_problem_of,
        clock=now,
        plan_ttl=limits.plan_ttl,
    )
    read = ReadPlan(
        plans=plans,
        codec=codec,
        runner=adapters.runner,
        clock=now,
        limits=PageLimits(
            max_page_groups=limits.max_page_groups,
            default_page_groups=limits.default_page_groups,
            max_page_splits=limits.max_page_splits,
        ),
    )
    max_running = settings.planner_threads + settings.max_waiting
    runs = PlanRuns(make, plans, now, max_running=max_running)
    adapters.stack.push_async_callback(runs.aclose)

    async def purge_history() -> int:
        return await history.purge(now() - settings.history.max_age, settings.history.max_plans)

    adapters.repeat("forget expired plans", lambda: plans.purge(now()), _PURGE_EVERY_S)
    adapters.repeat("forget old plans", purge_history, _EXPIRE_EVERY_S)
    adapters.repeat("continue abandoned plans", runs.adopt, _ADOPT_EVERY_S)
    return PlanServices(
        plans=plans,
        make=make,
        runs=runs,
        read=read,
        look_back=LookBack(history, read, packs.doubts),
        explain=ExplainPlan(
            snapshots=adapters.snapshots,
            manifests=manifests,
            choose=choose,
            caching=caching,
            max_plan_files=limits.max_plan_files,
        ),
    )


def open_writes(adapters: Adapters, manifests: ManifestReader) -> WriteServices:
    """Return the services of writes and their plans."""
    return WriteServices(
        writes=adapters.writes,
        streams=adapters.stored(SqlStreamStore(adapters.database), "streams"),
        plan=PlanWrite(
            tables=adapters.tables,
            snapshots=adapters.snapshots,
            manifests=manifests,
            history=adapters.writes,
            runner=adapters.runner,
        ),
        runner=adapters.runner,
    )


def open_upkeep(
    adapters: Adapters, manifests: ManifestReader, plan_packing: PlanPacking
) -> UpkeepServices:
    """Return the services of compaction and advice; record figures by the hour meanwhile."""
    snapshots, now = adapters.snapshots, adapters.clock
    overview = adapters.stored(SqlOverview(adapters.database), "overview")
    adapters.repeat("record figures of the hour", lambda: overview.record(now()), _RECORD_EVERY_S)
    adapters.repeat(
        "forget old figures", lambda: overview.purge(now() - _FIGURES_FOR), _EXPIRE_EVERY_S
    )
    return UpkeepServices(
        plan_compaction=PlanCompaction(
            snapshots=snapshots,
            manifests=manifests,
            filter_limits=adapters.filter_limits,
            meters=adapters.watch.meters,
        ),
        advise=AdviseTable(
            snapshots=snapshots,
            manifests=manifests,
            history=adapters.writes,
            plan_packing=plan_packing,
        ),
        find_worst_partitions=FindWorstPartitions(snapshots=snapshots, manifests=manifests),
        find_arrivals=FindArrivals(
            snapshots=snapshots, manifests=manifests, history=adapters.writes
        ),
        overview=overview,
    )


def open_caches(
    adapters: Adapters, manifests: ManifestReader, caching: TableCaching
) -> CacheServices:
    """Return the services of cache rules and workers; forget expired rules in the background."""
    rules, cache, snapshots = adapters.cache_rules, adapters.cache, adapters.snapshots
    now = adapters.clock
    adapters.repeat("forget expired cache rules", lambda: rules.purge(now()), _EXPIRE_EVERY_S)
    return CacheServices(
        rules=rules,
        define_rule=DefineCacheRule(
            snapshots=snapshots,
            rules=rules,
            runner=adapters.runner,
            clock=now,
            filter_limits=adapters.filter_limits,
        ),
        show=ShowCache(
            snapshots=snapshots, manifests=manifests, rules=rules, caching=caching, clock=now
        ),
        heartbeats=cache,
        report_files=ReportCachedFiles(
            tables=adapters.tables, cache=cache, runner=adapters.runner, clock=now
        ),
        clock=now,
    )


async def open_engines(
    adapters: Adapters, manifests: ManifestReader, packs: TablePacks
) -> EngineServices:
    """Return the services for other engines; keep their metadata up to date in the background."""
    settings, folder = adapters.settings, adapters.settings.metadata_folder
    if folder is None:
        return EngineServices(
            tables=adapters.tables, describe=None, describe_part=None, plan_scan=None
        )
    describe = DescribeTable(
        tables=adapters.tables,
        snapshots=adapters.snapshots,
        refreshes=adapters.stored(SqlRefreshStore(adapters.database), "refreshes"),
        files=MetadataFolder(folder, await adapters.database.installation()),
        table_files=_inventories(adapters),
        packs=packs,
        # Separate from plans, which are quick.
        runner=adapters.threads("engines"),
        turns=LocalTurns(max_waiting=settings.max_waiting),
        max_snapshots=settings.snapshots.max_count,
        keep_for=settings.limits.plan_ttl,
    )
    adapters.repeat("remove old metadata for engines", describe.clean, _CLEAN_EVERY_S)
    adapters.repeat("describe new snapshots for engines", describe.follow, _FOLLOW_EVERY_S)
    runner, filter_limits = adapters.runner, adapters.filter_limits
    plan_scan = PlanScan(
        tables=adapters.tables,
        descriptions=DescribedTables(
            describe=describe, manifests=manifests, runner=runner, filter_limits=filter_limits
        ),
        own=OwnTables(
            describe=describe, decoded=manifests.decoded, runner=runner, filter_limits=filter_limits
        ),
        runner=runner,
        log=adapters.stored(SqlPlanHistory(adapters.database), "plan_history"),
        clock=adapters.clock,
        max_files=_MOST_TASKS,
    )
    return EngineServices(
        tables=adapters.tables,
        describe=describe,
        describe_part=DescribePart(
            describe=describe,
            runner=describe.runner,
            filter_limits=filter_limits,
        ),
        plan_scan=plan_scan,
    )


def _problem_of(error: Exception) -> dict[str, Any]:
    problem = describe(error).body
    if problem["status"] == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("work in the background failed", exc_info=error)
    return problem
