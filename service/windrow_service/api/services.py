"""The services of each group of calls: `wiring` builds them, and handlers depend on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import Depends, Request

from windrow_core.models import Health, ServiceConfig
from windrow_service.api.browsers import Browsers
from windrow_service.api.page_tokens import PageTokens
from windrow_service.runs.maintenance import MaintenanceRounds
from windrow_service.runs.plan_runs import PlanRuns
from windrow_service.runs.refreshes import Refreshes
from windrow_service.telemetry.meters import Meters
from windrow_service.telemetry.spans import Spans
from windrow_service.usecases.access.authenticate import Authenticate
from windrow_service.usecases.access.sessions import Sessions
from windrow_service.usecases.access.tokens import ManageTokens
from windrow_service.usecases.audit import AuditLog
from windrow_service.usecases.caches.ports import CacheRuleStore, Heartbeats
from windrow_service.usecases.caches.reports import ReportCachedFiles
from windrow_service.usecases.caches.rules import DefineCacheRule
from windrow_service.usecases.caches.show import ShowCache
from windrow_service.usecases.engines.describe import DescribeTable
from windrow_service.usecases.engines.part import DescribePart
from windrow_service.usecases.engines.scan import PlanScan
from windrow_service.usecases.erasures.finish import FinishErasure
from windrow_service.usecases.erasures.plan import PlanErasure
from windrow_service.usecases.maintenance.claims import ClaimWork
from windrow_service.usecases.maintenance.policies import DefinePolicy
from windrow_service.usecases.maintenance.ports import PolicyStore
from windrow_service.usecases.maintenance.preview import PreviewRetention
from windrow_service.usecases.maintenance.request import RequestWork
from windrow_service.usecases.maintenance.table_policies import ChangeTablePolicy
from windrow_service.usecases.maintenance.work import WorkStore
from windrow_service.usecases.packs.figures import PartitionFigures
from windrow_service.usecases.packs.plan import PlanPacking
from windrow_service.usecases.packs.ports import PackStore
from windrow_service.usecases.packs.publish import PublishPack
from windrow_service.usecases.packs.runs import RenewRun
from windrow_service.usecases.plans.explain import ExplainPlan
from windrow_service.usecases.plans.history import LookBack
from windrow_service.usecases.plans.make import MakePlan
from windrow_service.usecases.plans.pages import ReadPlan
from windrow_service.usecases.plans.ports import PlanStore
from windrow_service.usecases.ports import Clock, OnceStore, Runner
from windrow_service.usecases.replicas import ReplicaStore
from windrow_service.usecases.snapshots.added_files import AddedFilesReader
from windrow_service.usecases.snapshots.expiry import ExpireSnapshots
from windrow_service.usecases.snapshots.gained_files import FindGainedFiles
from windrow_service.usecases.snapshots.partitions import ShowPartitionValues
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.publish import PublishInventory
from windrow_service.usecases.tables.lists import TableLists
from windrow_service.usecases.tables.partitions import SetPartitions, ShowPartitions
from windrow_service.usecases.tables.ports import TableStore
from windrow_service.usecases.tables.register import RegisterTable
from windrow_service.usecases.upkeep.advice import AdviseTable
from windrow_service.usecases.upkeep.arrivals import FindArrivals
from windrow_service.usecases.upkeep.compaction import PlanCompaction
from windrow_service.usecases.upkeep.overview import OverviewStore
from windrow_service.usecases.upkeep.worst_partitions import FindWorstPartitions
from windrow_service.usecases.writes.plan import PlanWrite
from windrow_service.usecases.writes.ports import StreamStore, WriteStore

if TYPE_CHECKING:
    from windrow_service.issuers.signing_in import SigningIn
    from windrow_service.rate_limits import Guesses, RateLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessServices:
    """Authentication, tokens, repeated requests, page tokens, sessions of browsers, and rates.

    `guesses` is None where no tokens are required, or any number of wrong ones may be sent.
    """

    authenticate: Authenticate
    tokens: ManageTokens
    once: OnceStore
    page_tokens: PageTokens
    sessions: Sessions
    signing_in: SigningIn | None
    browsers: Browsers
    rates: RateLimits | None
    guesses: Guesses | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableServices:
    """Tables, and their refreshes."""

    tables: TableStore
    lists: TableLists
    register: RegisterTable
    refreshes: Refreshes
    set_partitions: SetPartitions
    show_partitions: ShowPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotServices:
    """Snapshots; `runner` parses bodies."""

    snapshots: SnapshotStore
    publish: PublishInventory
    expire: ExpireSnapshots
    find_gained_files: FindGainedFiles
    count_added_files: AddedFilesReader
    show_partition_values: ShowPartitionValues
    partition_figures: PartitionFigures
    runner: Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanServices:
    """Plans of reads."""

    plans: PlanStore
    make: MakePlan
    runs: PlanRuns
    read: ReadPlan
    look_back: LookBack
    explain: ExplainPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteServices:
    """Writes and their plans; `runner` parses bodies."""

    writes: WriteStore
    streams: StreamStore
    plan: PlanWrite
    runner: Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepServices:
    """Compaction, advice, and all tables at a glance."""

    plan_compaction: PlanCompaction
    advise: AdviseTable
    find_worst_partitions: FindWorstPartitions
    find_arrivals: FindArrivals
    overview: OverviewStore


@dataclass(frozen=True, slots=True, kw_only=True)
class PackServices:
    """Packs of tables."""

    tables: TableStore
    packs: PackStore
    plan: PlanPacking
    renew_run: RenewRun
    publish: PublishPack


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureServices:
    """Rows that are erased from tables."""

    plan: PlanErasure
    finish: FinishErasure


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheServices:
    """Cache rules, and workers with the files they hold."""

    rules: CacheRuleStore
    define_rule: DefineCacheRule
    show: ShowCache
    heartbeats: Heartbeats
    report_files: ReportCachedFiles
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceServices:
    """Policies of maintenance and its budget; decisions, work and receipts."""

    tables: TableStore
    policies: PolicyStore
    define: DefinePolicy
    preview_retention: PreviewRetention
    rounds: MaintenanceRounds
    claim: ClaimWork
    change: ChangeTablePolicy
    request: RequestWork
    work: WorkStore
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineServices:
    """Tables for engines other than Spark; the others are None if none are described."""

    tables: TableStore
    describe: DescribeTable | None
    describe_part: DescribePart | None
    plan_scan: PlanScan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationServices:
    """Health, configuration, metrics, traces, the audit log, and replicas."""

    clock: Clock
    readiness: Callable[[], Awaitable[Health]]
    config: ServiceConfig
    meters: Meters
    spans: Spans
    audit: AuditLog
    replicas: ReplicaStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All services; the state of the running application."""

    access: AccessServices
    tables: TableServices
    snapshots: SnapshotServices
    plans: PlanServices
    writes: WriteServices
    packs: PackServices
    erasures: ErasureServices
    upkeep: UpkeepServices
    caches: CacheServices
    maintenance: MaintenanceServices
    engines: EngineServices
    operations: OperationServices


def services_of(request: Request) -> Services:
    """Return the services of the application that serves a request."""
    return cast(Services, request.state.services)


def _group(of: Callable[[Services], object]) -> Any:
    # Async, because FastAPI would call a plain function in a thread for each request.
    async def group(request: Request) -> object:
        return of(services_of(request))

    return Depends(group)


AccessDep = Annotated[AccessServices, _group(lambda services: services.access)]
TablesDep = Annotated[TableServices, _group(lambda services: services.tables)]
SnapshotsDep = Annotated[SnapshotServices, _group(lambda services: services.snapshots)]
PlansDep = Annotated[PlanServices, _group(lambda services: services.plans)]
WritesDep = Annotated[WriteServices, _group(lambda services: services.writes)]
PacksDep = Annotated[PackServices, _group(lambda services: services.packs)]
ErasuresDep = Annotated[ErasureServices, _group(lambda services: services.erasures)]
UpkeepDep = Annotated[UpkeepServices, _group(lambda services: services.upkeep)]
CachesDep = Annotated[CacheServices, _group(lambda services: services.caches)]
MaintenanceDep = Annotated[MaintenanceServices, _group(lambda services: services.maintenance)]
EnginesDep = Annotated[EngineServices, _group(lambda services: services.engines)]
OperationsDep = Annotated[OperationServices, _group(lambda services: services.operations)]
