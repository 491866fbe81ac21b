"""Calls about plans: make one, look at it, page through its groups, delete it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response, status
from pydantic_core import to_json

from windrow.models import GroupPage, Plan, PlanExplanation, PlanRequest
from windrow_service.api.deps import (
    ARROW_STREAM,
    PageSizeQuery,
    PageTokenQuery,
    PlanIdPath,
    Services,
    ServicesDep,
)
from windrow_service.api.problems import problem_responses
from windrow_service.usecases.plans import PageOfGroups

router = APIRouter(tags=["plans"])


@router.post(
    "/plans",
    operation_id="make_plan",
    response_model=Plan,
    responses=problem_responses(400, 404, 409, 413, 422, 503),
)
async def make_plan(request: PlanRequest, services: ServicesDep) -> Response:
    """Plan how to read a table: its surviving files in split groups, one group per task."""
    page = await services.make_plan(request)
    return _plan_response(services, page)


@router.get(
    "/plans/{plan_id}",
    operation_id="get_plan",
    response_model=Plan,
    responses=problem_responses(404, 422, 503),
)
async def get_plan(plan_id: PlanIdPath, services: ServicesDep) -> Response:
    """Return a plan again, with its first page of groups."""
    return _plan_response(services, await services.make_plan.page(plan_id, 0, None))


@router.get(
    "/plans/{plan_id}/groups",
    operation_id="get_groups",
    response_model=GroupPage,
    responses={
        200: {"content": {ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}}}},
        **problem_responses(404, 422, 503),
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

    `Accept: application/vnd.apache.arrow.stream` streams every group, one row each; a last
    batch of no rows carries `windrow:end` in its metadata, and without it the stream was cut.
    """
    if ARROW_STREAM in accept:
        plan = await services.plans.get(plan_id, services.clock())
        return Response(plan.body, media_type=ARROW_STREAM)
    begin = services.tokens.read_number(_listing(plan_id), page_token, 0)
    page = await services.make_plan.page(plan_id, begin, page_size)
    return _json({"plan_id": plan_id, "next_page_token": _next_token(services, page)}, page)


@router.get(
    "/plans/{plan_id}/explain",
    operation_id="explain_plan",
    responses=problem_responses(404, 410, 422, 503),
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
    """Forget a plan before it expires."""
    await services.plans.delete(plan_id)


def _plan_response(services: Services, page: PageOfGroups) -> Response:
    fields = dict(page.plan) | {"next_page_token": _next_token(services, page)}
    del fields["groups"]
    return _json(fields, page)


def _json(fields: dict[str, object], page: PageOfGroups) -> Response:
    groups = b",".join(page.groups)
    body = b"".join((to_json(fields)[:-1], b',"groups":[', groups, b"]}"))
    return Response(body, media_type="application/json")


def _next_token(services: Services, page: PageOfGroups) -> str | None:
    if page.next_group is None:
        return None
    return services.tokens.make(_listing(page.plan.plan_id), page.next_group)


def _listing(plan_id: str) -> str:
    return f"plan:{plan_id}"
