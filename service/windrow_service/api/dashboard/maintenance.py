"""The maintenance page: the budget, what comes next, what runs, and receipts."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.html.rendering import ROOT, page
from windrow_service.api.services import MaintenanceDep
from windrow_service.usecases.maintenance.work import NEWEST

router = GuardedRouter(include_in_schema=False)
_SHOWN = 200


@router.get(f"{ROOT}/maintenance", dependencies=[READ])
async def show_maintenance(
    request: Request, services: MaintenanceDep, principal: PrincipalDep
) -> Response:
    """Show the decisions about the tables that the caller may read, the newest first."""
    policies = [one.info for one in await services.policies.list()]
    receipts = await services.work.page(NEWEST, _SHOWN, principal.tables)
    return await page(
        request,
        "maintenance.html",
        policies=[one for one in policies if principal.tables.meet(one.pattern)],
        budget=(await services.policies.budget()).info,
        shared=await services.work.shared(),
        due=[one for one in reversed(receipts) if one.state == "waiting"],
        running=[one for one in receipts if one.state == "running"],
        ended=[one for one in receipts if one.state in ("done", "gave_up", "failed")],
        left=[one for one in receipts if one.state == "left_alone"],
    )
