"""`/iceberg/v1/…/plan` and `…/tasks`: scans that are planned for engines, as Iceberg has it.

Every plan is completed in the answer to its request, so that no engine has to wait and ask again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.iceberg_requests import TABLE, client_of, first_of, names_of
from windrow_service.api.page_tokens import PageTokens
from windrow_service.api.parameters import PageTokensDep
from windrow_service.api.services import EnginesDep, EngineServices
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.engines.errors import (
    CatalogDisabledError,
    ScanPlanNotFoundError,
    ScanTaskNotFoundError,
    UnfitScanError,
)
from windrow_service.usecases.engines.scan import PlanScan
from windrow_service.usecases.engines.scan_requests import PlannedScan, ScanPage, ScanRequest
from windrow_service.usecases.errors import PageTokenError
from windrow_service.usecases.snapshots.errors import SnapshotNotFoundError
from windrow_service.usecases.tables.errors import TableNotFoundError

router = GuardedRouter(include_in_schema=False)

_PLAN = f"{TABLE}/plan/{{plan_id}}"
_MOST = 2**63 - 1


class _PlanTableScan(BaseModel):
    model_config = ConfigDict(extra="ignore")

    snapshot_id: Annotated[int | None, Field(alias="snapshot-id", ge=0, le=_MOST)] = None
    filter: Any = None
    min_rows: Annotated[int | None, Field(alias="min-rows-requested", le=_MOST)] = None
    start_snapshot_id: Annotated[int | None, Field(alias="start-snapshot-id")] = None
    end_snapshot_id: Annotated[int | None, Field(alias="end-snapshot-id")] = None


class _FetchScanTasks(BaseModel):
    model_config = ConfigDict(extra="ignore")

    plan_task: Annotated[str, Field(alias="plan-task")]


@router.post(f"{TABLE}/plan", dependencies=[READ])
async def plan_table_scan(
    namespace: str,
    table: str,
    body: _PlanTableScan,
    services: EnginesDep,
    principal: PrincipalDep,
    tokens: PageTokensDep,
    request: Request,
) -> Response:
    """Plan a scan."""
    plan = _planner(services)
    names = names_of(namespace, table)
    if body.start_snapshot_id is not None or body.end_snapshot_id is not None:
        principal.require_table("read", names[-1])
        raise UnfitScanError(names[-1], "what lies between two snapshots is not planned")
    limit = body.min_rows if body.min_rows and body.min_rows > 0 else None
    predicate = None if body.filter is None else json.dumps(body.filter, separators=(",", ":"))
    question = ScanRequest(None, body.snapshot_id, predicate, limit)
    engine = client_of(request)
    scan = await first_of(
        principal, names, lambda name: plan(name, question, principal.name, engine)
    )
    return _completed(scan, tokens, names[-1])


@router.get(_PLAN, dependencies=[READ])
async def fetch_planning_result(
    namespace: str,
    table: str,
    plan_id: str,
    services: EnginesDep,
    principal: PrincipalDep,
    tokens: PageTokensDep,
    request: Request,
) -> Response:
    """Return a plan again."""
    plan = _planner(services)
    names = names_of(namespace, table)
    question = _request(principal, tokens, names, plan_id)
    engine = client_of(request)
    try:
        scan = await first_of(
            principal, names, lambda name: plan(name, question, principal.name, engine)
        )
    except (TableNotFoundError, SnapshotNotFoundError) as error:
        raise ScanPlanNotFoundError(names[-1]) from error
    return _completed(scan, tokens, names[-1])


@router.delete(_PLAN, dependencies=[READ])
async def cancel_planning(
    namespace: str, table: str, plan_id: str, principal: PrincipalDep, tokens: PageTokensDep
) -> Response:
    """Accept that a plan is not needed any more: nothing is kept of it."""
    _request(principal, tokens, names_of(namespace, table), plan_id)
    return Response(status_code=204)


@router.post(f"{TABLE}/tasks", dependencies=[READ])
async def fetch_scan_tasks(
    namespace: str,
    table: str,
    body: _FetchScanTasks,
    services: EnginesDep,
    principal: PrincipalDep,
    tokens: PageTokensDep,
    request: Request,
) -> Response:
    """Return the tasks of a part of a plan."""
    plan = _planner(services)
    names = names_of(namespace, table)
    engine = client_of(request)
    try:
        page = ScanPage.of_text(tokens.read_text(_tasks_of(names[-1]), body.plan_task))
        tasks = await first_of(principal, names, lambda name: plan.page(name, page, engine))
    except (PageTokenError, TableNotFoundError, SnapshotNotFoundError) as error:
        principal.require_table("read", names[-1])
        raise ScanTaskNotFoundError(names[-1]) from error
    return _json(b"{%s}" % tasks.to_json())


def _planner(services: EngineServices) -> PlanScan:
    if services.plan_scan is None:
        raise CatalogDisabledError
    return services.plan_scan


def _request(
    principal: Principal, tokens: PageTokens, names: Sequence[str], plan_id: str
) -> ScanRequest:
    try:
        return ScanRequest.of_text(tokens.read_text(_plans_of(names[-1]), plan_id))
    except PageTokenError as error:
        principal.require_table("read", names[-1])
        raise ScanPlanNotFoundError(names[-1]) from error


def _completed(scan: PlannedScan, tokens: PageTokens, name: str) -> Response:
    plan_id = tokens.make(_plans_of(name), scan.request.to_text())
    pages = [tokens.make(_tasks_of(name), page.to_text()) for page in scan.pages]
    body = b'{"status":"completed","plan-id":%s,"plan-tasks":%s,%s}'
    return _json(
        body % (json.dumps(plan_id).encode(), json.dumps(pages).encode(), scan.tasks.to_json())
    )


def _plans_of(name: str) -> str:
    return f"scan-plan:{name}"


def _tasks_of(name: str) -> str:
    return f"scan-task:{name}"


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})
