"""The cache page: workers, and the rules that say which files they should hold."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.dashboard.cache_worth import worth_of
from windrow_service.api.dashboard.lookups import looked_up
from windrow_service.api.html.rendering import ROOT, page
from windrow_service.api.services import CachesDep

router = GuardedRouter(include_in_schema=False)
_SHOWN = 200


@router.get(f"{ROOT}/cache", dependencies=[READ])
async def show_caches(request: Request, services: CachesDep, principal: PrincipalDep) -> Response:
    """Show the live workers, and the rules of tables that the caller may read."""
    now = services.clock()
    rules = await services.rules.everywhere(now, _SHOWN + 1, principal.tables)
    return await page(
        request,
        "caches.html",
        worth=worth_of,
        workers=await looked_up(services.heartbeats.live(now)),
        rules=[rule.info for rule in rules[:_SHOWN]],
        more=len(rules) > _SHOWN,
    )
