"""Pages about plans: the latest, and why one is as it is."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from windrow_service.api.access import PrincipalDep
from windrow_service.api.dashboard.finding import MAX_LOOKED_AT, found
from windrow_service.api.html.charts import bars
from windrow_service.api.html.rendering import ROOT, page, page_in_parts
from windrow_service.api.rules import OWN_PLAN, READ, GuardedRouter, OwnPlanDep
from windrow_service.api.services import PlansDep

router = GuardedRouter(include_in_schema=False)
_SHOWN = 100
_STEPS = {
    "manifest": "Ranges of whole manifests",
    "partition": "Partition values",
    "statistics": "Statistics of files",
    "bloom": "Bloom filters",
    "limit": "Limit",
}
_FILLS = [f"{10 * tenth} to {10 * tenth + 10} %" for tenth in range(10)]


@router.get(f"{ROOT}/plans", dependencies=[READ])
async def list_plans(request: Request, services: PlansDep, principal: PrincipalDep) -> Response:
    """List the latest plans that the caller may use."""
    return await page(request, "plans.html", plans=await services.read.recent(principal, _SHOWN))


@router.get(f"{ROOT}/plans/{{plan_id}}", dependencies=[READ, OWN_PLAN])
async def show_plan(request: Request, plan: OwnPlanDep, services: PlansDep) -> Response:
    """Show what a plan leaves out and how it groups the rest, and what others would make of it.

    What has to plan again comes last, while the browser shows what comes first.
    """
    info = plan.info
    summary = None if info is None else info.summary
    pruned = [
        (
            name,
            getattr(summary, f"files_pruned_by_{step}"),
            getattr(summary, f"bytes_pruned_by_{step}"),
        )
        for step, name in _STEPS.items()
        if summary is not None
    ]
    return page_in_parts(
        request,
        "plan.html",
        plan=plan,
        info=info,
        summary=summary,
        pruned=pruned,
        too_many=summary is not None and summary.files_total > MAX_LOOKED_AT,
        most=MAX_LOOKED_AT,
        fills=_FILLS,
        draw=lambda counts: bars(
            "Groups by how full they are", [fill.split(" to ")[1] for fill in _FILLS], counts
        ),
        explain=lambda: found(services.explain(plan)),
    )
