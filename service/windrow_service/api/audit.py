"""Calls about the audit log: who changed what."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from windrow_core.models import TABLE_NAME_PATTERN, AuditPage
from windrow_service.api.deps import (
    NO_NULLS,
    Moment,
    PageSizeQuery,
    PageTokenQuery,
    PageTokensDep,
    entries_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.api.rules import ADMIN, GuardedRouter
from windrow_service.api.services import OperationsDep

router = GuardedRouter(tags=["operations"])
_DEFAULT_PAGE = 100
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
    page_tokens: PageTokensDep,
    table: TableQuery = None,
    principal: PrincipalQuery = None,
    since: SinceQuery = None,
    page_token: PageTokenQuery = None,
    page_size: PageSizeQuery = None,
) -> AuditPage:
    """List who changed tables, snapshots, cache rules, writes and tokens, newest first.

    A record is made in the transaction of its change, so a failed change leaves none. Plans,
    heartbeats and reports of cached files are not recorded, since they expire by themselves.
    """
    limit = entries_of(page_size, _DEFAULT_PAGE)
    before = page_tokens.read_number("audit", page_token, _NEWEST)
    found = await services.audit.page(
        before, limit + 1, table=table, principal=principal, since=since
    )
    more = len(found) > limit
    return AuditPage(
        changes=list(found[:limit]),
        next_page_token=page_tokens.make("audit", found[limit - 1].number) if more else None,
    )
