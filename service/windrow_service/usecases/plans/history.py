"""The history of plans: what is kept of each after it has expired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow.models import PastPlan, PlanRequest
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.plans.errors import PlanNotFoundError
from windrow_service.usecases.plans.pages import ReadPlan
from windrow_service.usecases.plans.ports import Mine, PlanRecord

_MAX_FILTER = 2_000
NEWEST = 2**63 - 1


def past_of(plan: PlanRecord, stored_at: datetime | None) -> PastPlan | None:
    """Return what the history keeps of a plan; None while it is being made."""
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
    wanted = request.filter
    if wanted is None:
        return None
    text = wanted if isinstance(wanted, str) else wanted.model_dump_json()
    return text if len(text) <= _MAX_FILTER else f"{text[:_MAX_FILTER]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which plans are looked for.

    Attributes:
        before: Those with a lower number.
        plan_id: The one with this id.
        table: Those of this table.
        since: Those from this time on.
        until: Those before this time.
    """

    before: int = NEWEST
    plan_id: str | None = None
    table: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class PlanHistory(Protocol):
    """Plans that were made; the store of plans adds each, in the transaction that stores it."""

    async def page(self, mine: Mine, wanted: Wanted, limit: int) -> Sequence[PastPlan]:
        """Return at most `limit` of the plans that are wanted, the newest first."""

    async def purge(self, created_before: datetime, max_plans: int) -> int:
        """Forget plans that are older, and all but the newest; return how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlan:
    """All that is known of a plan.

    Attributes:
        live: The plan, with its groups; None once it has expired or was deleted.
        past: What is kept of it; None while it is being made.
    """

    live: PlanRecord | None
    past: PastPlan | None


@dataclass(frozen=True, slots=True)
class LookBack:
    """Look up plans that were made, expired ones included."""

    history: PlanHistory
    read: ReadPlan

    async def page(self, caller: Principal, wanted: Wanted, limit: int) -> Sequence[PastPlan]:
        """Return at most `limit` of the plans that the caller may look at, the newest first."""
        return await self.history.page(Mine.of(caller), wanted, limit)

    async def known(self, plan_id: str, caller: Principal) -> KnownPlan:
        """Return all that is known of a plan of the caller's.

        Raises:
            PlanNotFoundError: No plan of the caller's has this id, or not even the history has it.
        """
        found = await self.page(caller, Wanted(plan_id=plan_id), 1)
        past = found[0] if found else None
        try:
            live = await self.read.get(plan_id, caller)
        except PlanNotFoundError:
            if past is None:
                raise
            return KnownPlan(live=None, past=past)
        return KnownPlan(live=live, past=past or past_of(live, None))
