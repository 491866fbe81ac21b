"""The pages of a table: how well it can be read, what to do about it, and what happened to it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from windrow_core.models.cards import definition_facts
from windrow_core.sizes import WELL_SIZED_BYTES
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ_TABLE, GuardedRouter
from windrow_service.api.dashboard.lookups import MAX_LOOKED_AT, LookupResult, looked_up
from windrow_service.api.dashboard.table_figures import (
    ARRIVAL_LIMITS,
    SMALL_BYTES,
    WEEK,
    ArrivalView,
    arrival_view,
    costs_of,
    sizes_of,
    small_files,
    trend_of,
)
from windrow_service.api.dashboard.verdicts import level_of, todo_of, verdict_of
from windrow_service.api.html.rendering import ROOT, page_in_parts
from windrow_service.api.parameters import NO_NULLS, TableNamePath
from windrow_service.api.services import (
    AccessDep,
    CachesDep,
    MaintenanceDep,
    OperationsDep,
    PacksDep,
    PlansDep,
    SnapshotsDep,
    TablesDep,
    UpkeepDep,
    WritesDep,
)
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.access.grants import compiled
from windrow_service.usecases.access.ports import Token
from windrow_service.usecases.maintenance.work import NEWEST as NEWEST_RECEIPT
from windrow_service.usecases.plans.history import NEWEST, PlanConditions
from windrow_service.usecases.tables.lists import ListedTable
from windrow_service.usecases.writes.ports import NEWEST as NEWEST_WRITE

router = GuardedRouter(include_in_schema=False)

Tab: TypeAlias = Literal["files", "partitions", "reads", "writes", "access", "history"]
# The tabs of a table by the end of their paths, and their titles.
TABS: Mapping[str, str] = {
    "": "Overview",
    "files": "Files",
    "partitions": "Partitions",
    "reads": "Reads",
    "writes": "Writes",
    "maintenance": "Maintenance",
    "access": "Access",
    "history": "History",
}
_SNAPSHOTS, _WORST, _PACKS = 30, 20, 50
# Of the latest writes, changes and plans.
_LATEST = 20
_TOKENS = 50


class Rooms:
    """The services that the pages of a table need."""

    def __init__(
        self,
        services: TablesDep,
        snapshots: SnapshotsDep,
        upkeep: UpkeepDep,
        packs: PacksDep,
        caches: CachesDep,
        writes: WritesDep,
        plans: PlansDep,
        maintenance: MaintenanceDep,
        operations: OperationsDep,
        access: AccessDep,
    ) -> None:
        self.tables, self.snapshots, self.upkeep = services, snapshots, upkeep
        self.packs, self.caches, self.writes, self.plans = packs, caches, writes, plans
        self.maintenance, self.operations, self.access = maintenance, operations, access


RoomsDep = Annotated[Rooms, Depends()]


@router.get(f"{ROOT}/tables/{{name}}", dependencies=[READ_TABLE])
async def show_table(
    name: TableNamePath, request: Request, principal: PrincipalDep, rooms: RoomsDep
) -> Response:
    """Show how well a table can be read, and the one thing to do about it.

    Parts that look at each file come last, while the browser already shows the others.
    """
    head = await head_of(rooms, name, principal, "")
    page, now = rooms.maintenance.work.page, rooms.operations.clock()
    work = await looked_up(page(NEWEST_RECEIPT, 1, principal.tables, name, ("running", "waiting")))
    week = await looked_up(rooms.maintenance.work.sums(now - WEEK, principal.tables, name))
    workers = await looked_up(rooms.maintenance.work.maintainers())
    trend = list(reversed(await rooms.snapshots.snapshots.newest(name, _SNAPSHOTS)))
    return page_in_parts(
        request,
        "table.html",
        **head,
        todo=todo_of(head["health"], head["refresh"], next(iter(work.value or ()), None)),
        week=week.value,
        has_workers=any(one.seen_at > now - WEEK for one in workers.value or ()),
        settings=list(definition_facts(head["table"].info.definition)),
        sizes=sizes_of(head["info"]),
        chart=trend_of(trend, now),
        arrivals=lambda: _arrivals(rooms, name, now),
        packs=lambda: looked_up(rooms.packs.packs.of_table(head["table"].table_id, _PACKS)),
    )


@router.get(f"{ROOT}/tables/{{name}}/{{tab}}", dependencies=[READ_TABLE])
async def show_tab(
    name: TableNamePath,
    tab: Tab,
    request: Request,
    principal: PrincipalDep,
    rooms: RoomsDep,
    after: Annotated[str, Query(max_length=256, pattern=NO_NULLS)] = "",
) -> Response:
    """Show one of the other parts of what there is to know about a table.

    `after` is the token after which the list of those that reach the table begins.
    """
    head = {**await head_of(rooms, name, principal, tab), "after": after}
    find = {
        "files": _files,
        "partitions": _partitions,
        "reads": _reads,
        "writes": _writes,
        "access": _access,
        "history": _history,
    }[tab]
    return page_in_parts(
        request, f"table_{tab}.html", **head, **await find(rooms, name, principal, head)
    )


async def head_of(rooms: Rooms, name: str, principal: Principal, tab: str) -> dict[str, Any]:
    """Return what all pages of a table show, and what decides about their parts."""
    table = await rooms.tables.tables.get(name)
    info = table.info.current_snapshot
    refresh = await looked_up(rooms.tables.refreshes.latest(name))
    listing = ListedTable(
        name,
        info,
        is_failing=refresh.value is not None and refresh.value.status == "failed",
        reads=(await looked_up(rooms.tables.lists.reads(name))).value or 0,
    )
    return {
        "table": table,
        "info": info,
        "tabs": TABS,
        "tab": tab,
        "health": listing,
        "verdict": verdict_of(listing),
        "level": level_of(listing),
        "refresh": refresh.value,
        "may_write": name in principal.grants.of("write"),
        "sees_changes": principal.grants.of("admin").every,
        "too_many": info is not None and info.file_count > MAX_LOOKED_AT,
        "most": MAX_LOOKED_AT,
        "well_sized_bytes": WELL_SIZED_BYTES,
    }


async def _files(
    rooms: Rooms, name: str, principal: Principal, head: Mapping[str, Any]
) -> dict[str, Any]:
    trend = list(reversed(await rooms.snapshots.snapshots.newest(name, _SNAPSHOTS)))
    return {
        "small": small_files(head["info"]),
        "sizes": sizes_of(head["info"]),
        "trend": [(one, small_files(one)) for one in reversed(trend)],
        "chart": trend_of(trend, rooms.operations.clock()),
        "packs": lambda: looked_up(rooms.packs.packs.of_table(head["table"].table_id, _PACKS)),
    }


async def _partitions(
    rooms: Rooms, name: str, principal: Principal, head: Mapping[str, Any]
) -> dict[str, Any]:
    now = rooms.operations.clock()
    return {
        "arrivals": lambda: _arrivals(rooms, name, now),
        "worst": lambda: looked_up(rooms.upkeep.find_worst_partitions(name, SMALL_BYTES, _WORST)),
    }


async def _reads(
    rooms: Rooms, name: str, principal: Principal, head: Mapping[str, Any]
) -> dict[str, Any]:
    conditions = PlanConditions(table=name)
    return {
        "costs": costs_of(head["info"]),
        "plans": lambda: looked_up(rooms.plans.look_back.page(principal, conditions, _LATEST)),
        "cached": lambda: looked_up(rooms.caches.show(name)),
    }


async def _writes(
    rooms: Rooms, name: str, principal: Principal, head: Mapping[str, Any]
) -> dict[str, Any]:
    page = rooms.writes.writes.page
    return {
        "writes": lambda: looked_up(page(name, NEWEST_WRITE, _LATEST, open_only=False)),
        "advise": lambda: looked_up(rooms.upkeep.advise(name, WELL_SIZED_BYTES)),
    }


async def _access(
    rooms: Rooms, name: str, principal: Principal, head: Mapping[str, Any]
) -> dict[str, Any]:
    scopes = ("read", "write", "admin")
    reaching = rooms.access.tokens.reaching
    return {
        "own": {scope: name in principal.grants.of(scope) for scope in scopes},
        "tokens": lambda: looked_up(reaching(name, head["after"], _TOKENS)),
        "most_of": lambda token: _most_of(token, name),
    }


async def _history(
    rooms: Rooms, name: str, principal: Principal, head: Mapping[str, Any]
) -> dict[str, Any]:
    page = rooms.operations.audit.page
    return {"changes": lambda: looked_up(page(NEWEST, _LATEST, table=name))}


async def _arrivals(rooms: Rooms, name: str, now: datetime) -> LookupResult[ArrivalView]:
    result = await looked_up(rooms.upkeep.find_arrivals(name, ARRIVAL_LIMITS))
    if result.value is None:
        return LookupResult(None, result.problem)
    return LookupResult(arrival_view(result.value, now.astimezone(timezone.utc).date()))


def _most_of(token: Token, name: str) -> str:
    """Return the scope with the most rights that a token has on a table."""
    grants = compiled(token.scopes + token.grants)
    return next(scope for scope in ("admin", "write", "read") if name in grants.of(scope))
