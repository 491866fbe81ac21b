"""Calls about the audit log: who changed what."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from windrow_core.models import TABLE_NAME_PATTERN, AuditPage
from windrow_service.api.authorization import ADMIN, GuardedRouter
from windrow_service.api.parameters import NO_NULLS, ListPageDep, Moment
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import OperationsDep

router = GuardedRouter(tags=["operations"])
_NEWEST = 2**63 - 1

TableQuery = Annotated[
    str | None,
    Query(pattern=TABLE_NAME_PATTERN, max_length=256, description="Only changes of this table."),
]
PrincipalQuery = Annotated[
    str | None, Query(max_length=128, pattern=NO_NULLS, description="Only changes by this caller.")
]


SinceQuery = Annotated[
    Moment | None,
    Query(description="Only changes from this time on.", examples=["2026-11-21T08:00:00Z"]),
]


@router.get(
    "/audit",
    operation_id="list_changes",
    dependencies=[ADMIN],
    responses=problem_responses(404, 422, 503),
)
async def list_changes(
    services: OperationsDep,
    page: ListPageDep,
    table: TableQuery = None,
    principal: PrincipalQuery = None,
    since: SinceQuery = None,
) -> AuditPage:
    """List who changed tables, snapshots, cache rules, writes and tokens, newest first.

    A record is made in the transaction of its change, so a failed change leaves none. Plans,
    heartbeats and reports of cached files are not recorded, since they expire by themselves.
    """
    before = page.begin("audit", _NEWEST)
    changes = await services.audit.page(
        before, page.limit(), table=table, principal=principal, since=since
    )
    return AuditPage(
        changes=changes,
        next_page_token=page.next_token("audit", changes, lambda change: change.number),
    )
