"""Plan history: the figures of plans, kept after the plans have expired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from windrow_core.filter_text import filter_text
from windrow_core.models import PastPlan, PlanRequest, ScanReport
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.packs.doubts import PackDoubts
from windrow_service.usecases.plans.errors import PlanNotFoundError
from windrow_service.usecases.plans.pages import ReadPlan
from windrow_service.usecases.plans.ports import Mine, PlanRecord
from windrow_service.usecases.ports import Page

_MAX_FILTER = 2_000
NEWEST = 2**63 - 1


def past_of(plan: PlanRecord, stored_at: datetime | None) -> PastPlan | None:
    """Return a plan's entry in the history; None while the plan is being made."""
    if plan.state == "submitted":
        return None
    took = None if stored_at is None else (stored_at - plan.created_at).total_seconds()
    info = plan.info
    return PastPlan(
        number=0,
        plan_id=plan.plan_id,
        table=plan.request.table,
        snapshot_id=plan.snapshot_id,
        principal=plan.principal,
        status=plan.state,
        created_at=plan.created_at,
        expires_at=plan.expires_at,
        seconds=took,
        filter=_filter_text(plan.request),
        partition_count=_partition_count(plan.request),
        limit=plan.request.limit,
        column_count=None if info is None else len(info.columns),
        options=None if info is None else info.options,
        option_sources={}
        if info is None
        else {name: of for name, of in info.option_sources.items() if of != "default"},
        summary=None if info is None else info.summary,
        groups_of=None if plan.body_id == plan.plan_id else plan.body_id,
        problem=plan.problem,
    )


def _filter_text(request: PlanRequest) -> str | None:
    predicate = request.filter
    if predicate is None:
        return None
    text = filter_text(predicate)
    return text if len(text) <= _MAX_FILTER else f"{text[:_MAX_FILTER]}…"


def _partition_count(request: PlanRequest) -> int | None:
    if request.partitions is None:
        return None
    return sum(end - first for first, end in request.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConditions:
    """Conditions that plans in the history must meet.

    Attributes:
        before: Only plans with a lower number.
        plan_id: Only plans whose ids begin with these digits.
        table: Only plans of this table.
        since: Only plans from this time on.
        until: Only plans before this time.
        principal: Only plans of this caller.
        status: Only plans that ended like this.
        least_seconds: Only plans whose queries took at least this long, as their drivers reported.
    """

    before: int = NEWEST
    plan_id: str | None = None
    table: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    principal: str | None = None
    status: Literal["completed", "failed"] | None = None
    least_seconds: float | None = None


class PlanHistory(Protocol):
    """Finished plans; the plan store adds each one in the transaction that stores it."""

    async def page(self, mine: Mine, conditions: PlanConditions, limit: int) -> Page[PastPlan]:
        """Return at most `limit` of the wanted plans, the newest first."""

    async def report(self, principal: str, scans: Sequence[ScanReport]) -> None:
        """Record what scans of a caller's plans took; other plans are left out."""

    async def purge(self, created_before: datetime, max_plans: int) -> int:
        """Forget older plans, and all but the newest `max_plans`; return how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlan:
    """Everything that is known about a plan.

    Attributes:
        live: The plan itself; None once it has expired or was deleted.
        past: Its entry in the history; None while it is being made.
    """

    live: PlanRecord | None
    past: PastPlan | None


@dataclass(frozen=True, slots=True)
class LookBack:
    """Look up finished plans, including expired ones; packs that could not be read are `doubts`."""

    history: PlanHistory
    read: ReadPlan
    doubts: PackDoubts

    async def page(
        self, caller: Principal, conditions: PlanConditions, limit: int
    ) -> Page[PastPlan]:
        """Return at most `limit` of the plans that the caller may look at, the newest first."""
        return await self.history.page(Mine.of(caller), conditions, limit)

    async def report(self, caller: Principal, scans: Sequence[ScanReport]) -> None:
        """Record what scans took; those of plans that the caller did not make are left out."""
        for scan in scans:
            self.doubts.add(scan.unreadable_packs)
        await self.history.report(caller.name, scans)

    async def known(self, plan_id: str, caller: Principal) -> KnownPlan:
        """Return everything that is known about a plan that the caller may look at.

        Raises:
            PlanNotFoundError: The caller may look at no plan with this id, not even in the history.
        """
        entries = await self.page(caller, PlanConditions(plan_id=plan_id), 1)
        past = entries[0] if entries else None
        try:
            live = await self.read.get(plan_id, caller)
        except PlanNotFoundError:
            if past is None:
                raise
            return KnownPlan(live=None, past=past)
        return KnownPlan(live=live, past=past or past_of(live, None))
