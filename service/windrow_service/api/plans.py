"""Calls about plans: make one, look at it, page through its groups, delete it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response, status
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from windrow.models import GroupPage, Plan, PlanExplanation, PlanRequest, PlanStatus
from windrow_service.api.deps import (
    ARROW_STREAM,
    PageSizeQuery,
    PageTokenQuery,
    PlanIdPath,
    PreferHeader,
    Services,
    ServicesDep,
    wait_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.pool.plan_runs import LEASE
from windrow_service.usecases.plan_ports import PlanRecord
from windrow_service.usecases.plans import PageOfGroups

router = APIRouter(tags=["plans"])
_ASK_AGAIN_S = "1"


@router.post(
    "/plans",
    operation_id="make_plan",
    response_model=Plan,
    responses={202: {"model": PlanStatus}, **problem_responses(400, 404, 409, 413, 422, 503)},
)
async def make_plan(
    request: PlanRequest, services: ServicesDep, prefer: PreferHeader = None
) -> Response:
    """Plan how to read a table: its surviving files in split groups, one group per task.

    With `Prefer: respond-async` the plan is made in the background: the answer is 202 at once,
    or, with `wait=<seconds>` beside it, if it takes longer than that. `GET` on the plan then
    tells when it is completed, also if the coordinator that took the request has died.
    """
    wait_s = wait_of(prefer)
    if wait_s is None:
        plan = await services.make_plan(request, "anonymous")
    else:
        plan = await services.make_plan.submit(request, "anonymous", LEASE)
        await services.plan_runs.start(plan)
        await services.plan_runs.wait(plan.plan_id, wait_s)
        plan = await services.make_plan.get(plan.plan_id)
    if plan.state == "completed":
        return await _with_groups(services, plan, request.page_size)
    answer = _without_groups(plan)
    answer.status_code = status.HTTP_202_ACCEPTED
    answer.headers["Location"] = f"/plans/{plan.plan_id}"
    return answer


@router.get(
    "/plans/{plan_id}",
    operation_id="get_plan",
    response_model=Plan | PlanStatus,
    responses=problem_responses(404, 422, 503),
)
async def get_plan(plan_id: PlanIdPath, services: ServicesDep) -> Response:
    """Return a plan again, with its first page of groups; or how far it is.

    A plan that is still being made has the status `submitted`, and `Retry-After` says when to
    ask again. One that could not be made has the status `failed`, and says why.
    """
    plan = await services.make_plan.get(plan_id)
    if plan.state == "completed":
        return await _with_groups(services, plan, plan.request.page_size)
    return _without_groups(plan)


@router.get(
    "/plans/{plan_id}/groups",
    operation_id="get_groups",
    response_model=GroupPage,
    responses={
        200: {"content": {ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}}}},
        **problem_responses(404, 409, 422, 503),
    },
)
async def get_groups(
    plan_id: PlanIdPath,
    services: ServicesDep,
    page_token: PageTokenQuery = None,
    page_size: PageSizeQuery = None,
    accept: Annotated[str, Header(max_length=1024)] = "application/json",
) -> Response:
    """Return a page of groups as JSON, or all of them as an Arrow stream.

    A page may hold fewer groups than asked for; the last one is that without `next_page_token`.
    `Accept: application/vnd.apache.arrow.stream` streams every group, one row each; a last
    batch of no rows carries `windrow:end` in its metadata, and without it the stream was cut.
    """
    plan = await services.make_plan.completed(plan_id)
    if ARROW_STREAM in accept:
        stream = services.plans.stream(plan)
        # What is wrong at the start can still be said by a problem.
        return StreamingResponse(_begun(await anext(stream), stream), media_type=ARROW_STREAM)
    begin = services.tokens.read_number(_listing(plan_id), page_token, 0)
    page = await services.make_plan.page(plan, begin, page_size)
    return _json({"plan_id": plan_id, "next_page_token": _next_token(services, page)}, page)


@router.get(
    "/plans/{plan_id}/explain",
    operation_id="explain_plan",
    responses=problem_responses(404, 409, 410, 422, 503),
)
async def explain_plan(plan_id: PlanIdPath, services: ServicesDep) -> PlanExplanation:
    """Say why a plan is as it is, and what the other strategies would make of its files.

    It is worked out anew from the plan's snapshot, filter, limit and options, which takes as
    long as planning under every strategy. Nothing is stored.
    """
    return await services.explain_plan(plan_id)


@router.delete(
    "/plans/{plan_id}",
    operation_id="delete_plan",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(404, 422, 503),
)
async def delete_plan(plan_id: PlanIdPath, services: ServicesDep) -> None:
    """Forget a plan before it expires; one that is still being made is stopped."""
    await services.plans.delete(plan_id, services.clock())
    services.plan_runs.cancel(plan_id)


async def _with_groups(services: Services, plan: PlanRecord, page_size: int | None) -> Response:
    page = await services.make_plan.page(plan, 0, page_size)
    fields = dict(page.plan) | {"next_page_token": _next_token(services, page)}
    del fields["groups"]
    return _json(fields, page)


def _without_groups(plan: PlanRecord) -> Response:
    body = PlanStatus(
        plan_id=plan.plan_id,
        status="failed" if plan.state == "failed" else "submitted",
        table=plan.request.table,
        snapshot_id=plan.snapshot_id,
        created_at=plan.created_at,
        expires_at=plan.expires_at,
        problem=plan.problem,
    )
    answer = Response(body.model_dump_json(), media_type="application/json")
    if plan.state == "submitted":
        answer.headers["Retry-After"] = _ASK_AGAIN_S
    return answer


async def _begun(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for data in rest:
        yield data


def _json(fields: dict[str, Any], page: PageOfGroups) -> Response:
    groups = b",".join(page.groups)
    body = b"".join((to_json(fields)[:-1], b',"groups":[', groups, b"]}"))
    return Response(body, media_type="application/json")


def _next_token(services: Services, page: PageOfGroups) -> str | None:
    if page.next_group is None:
        return None
    return services.tokens.make(_listing(page.plan.plan_id), page.next_group)


def _listing(plan_id: str) -> str:
    return f"plan:{plan_id}"
