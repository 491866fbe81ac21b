"""The list of tables: in any order, and only those that meet conditions."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from fastapi import Query, Request
from fastapi.responses import Response

from windrow_core.sizes import WELL_SIZED_BYTES
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.dashboard.paging import page_numbers
from windrow_service.api.dashboard.table_figures import SMALL_BYTES, small_files
from windrow_service.api.dashboard.verdicts import verdict_of
from windrow_service.api.html.rendering import ROOT, page, redirect
from windrow_service.api.parameters import NO_NULLS
from windrow_service.api.services import TablesDep
from windrow_service.planner.upkeep.health import Health
from windrow_service.usecases.tables.lists import TableConditions, TableOrder

router = GuardedRouter(include_in_schema=False)

_ON_PAGE = 50
# In the list to choose from.
_MOST_NAMESPACES = 500
_PLAN_ID = re.compile(r"\s*[0-9a-f]{32}\s*")
_Text = Annotated[str, Query(max_length=256, pattern=NO_NULLS)]


@router.get(f"{ROOT}/tables", dependencies=[READ])
async def list_tables(
    request: Request,
    services: TablesDep,
    principal: PrincipalDep,
    find: _Text = "",
    namespace: _Text = "",
    health: Health | Literal[""] = "",
    sort: TableOrder = "excess",
    down: bool = True,
    at: Annotated[int, Query(ge=1, le=10_000_000)] = 1,
    straight: bool = False,
) -> Response:
    """List tables that the caller may read, those with the most excess files first by default.

    `straight` leads to the only table that there is, or to a plan of this id: the search of all
    pages sets it.
    """
    if straight and _PLAN_ID.fullmatch(find):
        return redirect(request, f"{ROOT}/plans/{find.strip()}")
    find = find.strip()
    conditions = TableConditions(
        containing=find,
        namespace=namespace,
        health=health or None,
        order=sort,
        is_descending=down,
    )
    offset = (at - 1) * _ON_PAGE
    count, tables = await services.lists.page(conditions, offset, _ON_PAGE, principal.tables)
    if straight and count == 1:
        return redirect(request, f"{ROOT}/tables/{tables[0].name}")
    pages = max(math.ceil(count / _ON_PAGE), 1)
    return await page(
        request,
        "tables.html",
        asked={
            "find": find,
            "namespace": namespace,
            "health": health,
            "sort": sort,
            "down": int(down),
        },
        count=count,
        tables=[(one, small_files(one.current_snapshot)) for one in tables],
        namespaces=await services.lists.namespaces(_MOST_NAMESPACES, principal.tables),
        well_sized_bytes=WELL_SIZED_BYTES,
        small_bytes=SMALL_BYTES,
        verdict=verdict_of,
        at=at,
        numbers=page_numbers(at, pages),
    )
