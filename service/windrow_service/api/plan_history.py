"""Calls about plans, including expired ones: list them, and report what their scans took."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response, status

from windrow_core.models import TABLE_NAME_PATTERN, PlanHistoryPage, ScanReports
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.parameters import ListPageDep, Moment, json_answer
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import PlansDep
from windrow_service.usecases.plans.history import NEWEST, PlanConditions

router = GuardedRouter(tags=["plans"])

TableQuery = Annotated[
    str | None,
    Query(pattern=TABLE_NAME_PATTERN, max_length=256, description="Only plans of this table."),
]
PlanQuery = Annotated[
    str | None,
    Query(
        pattern="^[0-9a-f]{8,32}$",
        description="Only plans whose ids begin with these digits, at least eight; a whole id has 32.",
    ),
]
SinceQuery = Annotated[
    Moment | None,
    Query(description="Only plans from this time on.", examples=["2026-11-21T08:00:00Z"]),
]
UntilQuery = Annotated[
    Moment | None,
    Query(description="Only plans before this time.", examples=["2026-11-22T08:00:00Z"]),
]


@router.get(
    "/plans",
    operation_id="list_plans",
    dependencies=[READ],
    response_model=PlanHistoryPage,
    responses=problem_responses(404, 422, 503),
)
async def list_plans(
    services: PlansDep,
    principal: PrincipalDep,
    page: ListPageDep,
    table: TableQuery = None,
    plan_id: PlanQuery = None,
    since: SinceQuery = None,
    until: UntilQuery = None,
) -> Response:
    """List plans, newest first, including expired and deleted ones.

    A caller sees its own plans and, with the scope `admin` on their tables, those of others. The
    figures of each plan are kept, for seven days unless the coordinator is configured otherwise;
    its groups are gone once it has expired. Plans that failed in the background are listed too;
    refused requests are not.
    """
    before = page.begin("plans", NEWEST)
    conditions = PlanConditions(
        before=before, plan_id=plan_id, table=table, since=since, until=until
    )
    plans = await services.look_back.page(principal, conditions, page.limit())
    return await json_answer(
        PlanHistoryPage(
            plans=plans, next_page_token=page.next_token("plans", plans, lambda plan: plan.number)
        )
    )


@router.post(
    "/scan-reports",
    operation_id="report_scans",
    dependencies=[READ],
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(400, 413, 422, 503),
)
async def report_scans(reports: ScanReports, services: PlansDep, principal: PrincipalDep) -> None:
    """Report what scans of plans really took, which the history of plans then shows.

    Drivers send this in the background. A report replaces an earlier one of the same plan; those of
    plans that the caller did not make, or that the history no longer has, are left out.
    """
    await services.look_back.report(principal, reports.scans)
