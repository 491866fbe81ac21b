"""The dependencies of handlers, and how they get them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Header, Path, Query, Request

from windrow.models import TABLE_NAME_PATTERN, ServiceConfig
from windrow_service.api.access import PrincipalDep
from windrow_service.api.tokens import PageTokens
from windrow_service.runs.plan_runs import PlanRuns
from windrow_service.runs.refreshes import Refreshes
from windrow_service.usecases.access.authenticate import Authenticate
from windrow_service.usecases.caches.ports import CacheMap, CacheRuleStore, Heartbeats
from windrow_service.usecases.caches.reports import ReportCachedFiles
from windrow_service.usecases.caches.rules import DefineCacheRule
from windrow_service.usecases.caches.show import ShowCache
from windrow_service.usecases.plans.explain import ExplainPlan
from windrow_service.usecases.plans.make import MakePlan
from windrow_service.usecases.plans.ports import PlanStore
from windrow_service.usecases.ports import Clock, OnceStore, Runner
from windrow_service.usecases.snapshots.expiry import ExpireSnapshots
from windrow_service.usecases.snapshots.gained_files import FindGainedFiles
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.publish import PublishInventory
from windrow_service.usecases.tables.ports import TableStore
from windrow_service.usecases.tables.register import RegisterTable
from windrow_service.usecases.upkeep.advice import AdviseTable
from windrow_service.usecases.upkeep.compaction import PlanCompaction
from windrow_service.usecases.writes.plan import PlanWrite
from windrow_service.usecases.writes.ports import WriteStore

ARROW_STREAM = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that handlers use, built by `bootstrap`."""

    authenticate: Authenticate
    once: OnceStore
    tables: TableStore
    snapshots: SnapshotStore
    writes: WriteStore
    plans: PlanStore
    heartbeats: Heartbeats
    cache: CacheMap
    cache_rules: CacheRuleStore
    register_table: RegisterTable
    define_cache_rule: DefineCacheRule
    show_cache: ShowCache
    publish_inventory: PublishInventory
    expire_snapshots: ExpireSnapshots
    refreshes: Refreshes
    make_plan: MakePlan
    plan_runs: PlanRuns
    explain_plan: ExplainPlan
    plan_write: PlanWrite
    plan_compaction: PlanCompaction
    find_gained_files: FindGainedFiles
    advise_table: AdviseTable
    report_cached_files: ReportCachedFiles
    runner: Runner
    tokens: PageTokens
    ping: Callable[[], Awaitable[None]]
    has_room: Callable[[], Awaitable[bool]]
    clock: Clock
    config: ServiceConfig


def _services(request: Request) -> Services:
    return cast(Services, request.state.services)


ServicesDep = Annotated[Services, Depends(_services)]


async def _page_tokens(services: ServicesDep, principal: PrincipalDep) -> PageTokens:
    return services.tokens.of(principal.name)


# Page tokens that are valid only for the caller.
PageTokensDep = Annotated[PageTokens, Depends(_page_tokens)]
TableNamePath = Annotated[
    str,
    Path(pattern=TABLE_NAME_PATTERN, max_length=256, description="For example `sales.events`."),
]
PlanIdPath = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
PageTokenQuery = Annotated[
    str | None, Query(max_length=4096, description="`next_page_token` of the previous page.")
]
PageSizeQuery = Annotated[int | None, Query(ge=1, le=10_000, description="Most entries to return.")]
IfMatchHeader = Annotated[
    str | None, Header(description="Only if the table's ETag is still this.", max_length=256)
]
PreferHeader = Annotated[
    str | None,
    Header(
        description="`respond-async` answers 202 at once; with `, wait=10`, within 10 seconds.",
        max_length=256,
    ),
]
_MAX_WAIT_S = 60


def version_of(if_match: str | None) -> str | None:
    """Return the version in an If-Match header: `*` for any; None if there is no condition."""
    if if_match is None:
        return None
    return if_match.strip().removeprefix("W/").strip('"')


def wait_of(prefer: str | None) -> float | None:
    """Return how many seconds to wait before answering 202; None if that is not preferred.

    Other preferences are ignored, as RFC 7240 allows.
    """
    preferences = [part.strip().lower() for part in (prefer or "").split(",")]
    if "respond-async" not in preferences:
        return None
    waits = [part.removeprefix("wait=") for part in preferences if part.startswith("wait=")]
    return float(min(int(waits[0]), _MAX_WAIT_S)) if waits and waits[0].isdecimal() else 0.0
