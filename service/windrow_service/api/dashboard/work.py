"""The work page: running and recent refreshes and writes of all tables."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, WRITE_TABLE, GuardedRouter
from windrow_service.api.dashboard.signing_in import changes_of
from windrow_service.api.html.rendering import ROOT, page, redirect
from windrow_service.api.parameters import TableNamePath
from windrow_service.api.services import TablesDep, WritesDep
from windrow_service.api.writes import WriteIdPath
from windrow_service.runs.refreshes import LEASE

router = GuardedRouter(include_in_schema=False)
_SHOWN = 50


@router.get(f"{ROOT}/work", dependencies=[READ])
async def show_work(
    request: Request, tables: TablesDep, writes: WritesDep, principal: PrincipalDep
) -> Response:
    """Show refreshes, commits and compactions, the running ones first."""
    return await page(
        request,
        "work.html",
        refreshes=await tables.refreshes.recent(_SHOWN, principal.tables),
        writes=await writes.writes.recent(_SHOWN, principal.tables),
        silent_seconds=LEASE.total_seconds(),
        may_cancel=principal.grants.of("write"),
    )


@router.post(
    f"{ROOT}/tables/{{name}}/refresh", operation_id="refresh_table", dependencies=[WRITE_TABLE]
)
async def refresh_table(name: TableNamePath, request: Request, tables: TablesDep) -> Response:
    """Start a refresh of a table, or join the running one; the work page shows its progress."""
    await changes_of(request)
    await tables.refreshes.start(name)
    return redirect(request, f"{ROOT}/work")


@router.post(
    f"{ROOT}/tables/{{name}}/cancel-refresh",
    # Its name in the audit log.
    operation_id="cancel_refresh",
    dependencies=[WRITE_TABLE],
)
async def cancel_refresh(name: TableNamePath, request: Request, tables: TablesDep) -> Response:
    """Cancel the running refresh of a table."""
    await changes_of(request)
    await tables.refreshes.cancel(name)
    return redirect(request, f"{ROOT}/work")


@router.post(
    f"{ROOT}/tables/{{name}}/writes/{{write_id}}/cancel",
    operation_id="cancel_write",
    dependencies=[WRITE_TABLE],
)
async def cancel_write(
    name: TableNamePath, write_id: WriteIdPath, request: Request, writes: WritesDep
) -> Response:
    """Cancel a write that has not begun to move its files in."""
    await changes_of(request)
    await writes.writes.cancel(name, write_id)
    return redirect(request, f"{ROOT}/work")
