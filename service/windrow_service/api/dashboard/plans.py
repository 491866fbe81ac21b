"""Pages about plans: the list of plans, and the explanation of one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import BeforeValidator

from windrow_core.models import pruning_of
from windrow_core.planning import PlanPhase
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import KNOWN_PLAN, READ, GuardedRouter, KnownPlanDep
from windrow_service.api.dashboard.lookups import MAX_LOOKED_AT, looked_up
from windrow_service.api.html.charts import bars
from windrow_service.api.html.rendering import ROOT, page, page_in_parts
from windrow_service.api.parameters import NO_NULLS, in_utc
from windrow_service.api.services import PlansDep
from windrow_service.usecases.plans.causes import causes_of, durations_of
from windrow_service.usecases.plans.history import NEWEST, PlanConditions

router = GuardedRouter(include_in_schema=False)
_SHOWN = 100
_PHASES = {phase.label: phase.value for phase in PlanPhase}
_FILLS = [f"{10 * tenth} to {10 * tenth + 10} %" for tenth in range(10)]


def _form_time(text: object) -> datetime | None:
    """Read a time from a form; browsers send it without a zone, and it is in UTC."""
    if text in ("", None):
        return None
    return in_utc(datetime.fromisoformat(str(text)))


_Text = Annotated[str, Query(max_length=256, pattern=NO_NULLS)]
_FormTime = Annotated[datetime | None, BeforeValidator(_form_time)]


@router.get(f"{ROOT}/plans", dependencies=[READ])
async def list_plans(
    request: Request,
    services: PlansDep,
    principal: PrincipalDep,
    table: _Text = "",
    since: _FormTime = None,
    until: _FormTime = None,
    who: _Text = "",
    state: Literal["", "completed", "failed"] = "",
    took: Annotated[str, Query(max_length=20, pattern=r"^\d*\.?\d*$")] = "",
    before: Annotated[int, Query(ge=1, le=NEWEST)] = NEWEST,
) -> Response:
    """List the caller's plans, the latest first: plans being made, then finished ones."""
    least_seconds = float(took) if took.strip(".") else None
    conditions = PlanConditions(
        before=before,
        table=table or None,
        since=since,
        until=until,
        principal=who or None,
        status=state or None,
        least_seconds=least_seconds,
    )
    past = await services.look_back.page(principal, conditions, _SHOWN)
    # Plans that are being made have neither ended nor been timed.
    has_others = before == NEWEST and not (since or until or state or took)
    under_way = await services.read.under_way(principal, _SHOWN) if has_others else []
    form = {
        "table": table,
        "since": _form_text(since),
        "until": _form_text(until),
        "who": who,
        "state": state,
        "took": took,
    }
    return await page(
        request,
        "plans.html",
        asked=form,
        under_way=[
            one
            for one in under_way
            if table in ("", one.request.table) and who in ("", one.principal)
        ],
        plans=past,
        older=past[-1].number if past.more else None,
    )


@router.get(f"{ROOT}/plans/{{plan_id}}", dependencies=[READ, KNOWN_PLAN])
async def show_plan(request: Request, plan: KnownPlanDep, services: PlansDep) -> Response:
    """Show the files that a plan leaves out, its groups, and the plans of other strategies.

    Parts that need planning again come last, while the browser already shows the others. If the
    plan has expired, the page shows the figures that are kept.
    """
    live, past = plan.live, plan.past
    summary = None if past is None else past.summary
    return page_in_parts(
        request,
        "plan.html",
        live=live,
        past=past,
        table=live.request.table if past is None and live is not None else past and past.table,
        summary=summary,
        causes=[] if past is None else causes_of(past),
        took=None if past is None else durations_of(past),
        pruning=None if summary is None else pruning_of(summary),
        phases=_PHASES,
        too_many=summary is not None and summary.files_total > MAX_LOOKED_AT,
        most=MAX_LOOKED_AT,
        draw=lambda counts: bars(
            "Groups by how full they are", [fill.split(" to ")[1] for fill in _FILLS], counts
        ),
        explain=lambda: looked_up(services.explain(live)) if live is not None else None,
    )


def _form_text(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%dT%H:%M}"
