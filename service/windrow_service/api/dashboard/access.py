"""The page of access: tokens, what they allow, and who changed what; for `admin` alone."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from windrow_service.api.html.rendering import ROOT, page
from windrow_service.api.rules import ADMIN, GuardedRouter
from windrow_service.api.services import AccessDep, OperationsDep

router = GuardedRouter(include_in_schema=False)
_TOKENS, _CHANGES = 500, 100
_NEWEST = 2**63 - 1


@router.get(f"{ROOT}/access", dependencies=[ADMIN])
async def show_access(
    request: Request,
    access: AccessDep,
    operations: OperationsDep,
    table: Annotated[str, Query(max_length=256)] = "",
    who: Annotated[str, Query(max_length=128)] = "",
    before: Annotated[int, Query(ge=1, le=_NEWEST)] = _NEWEST,
) -> Response:
    """Show the latest changes, and the tokens."""
    changes = await operations.audit.page(
        before, _CHANGES + 1, table=table or None, principal=who or None
    )
    tokens = await access.tokens.page("", _TOKENS + 1)
    return await page(
        request,
        "access.html",
        table=table,
        who=who,
        changes=changes[:_CHANGES],
        older=changes[_CHANGES - 1].number if len(changes) > _CHANGES else None,
        tokens=tokens[:_TOKENS],
        more=len(tokens) > _TOKENS,
    )
