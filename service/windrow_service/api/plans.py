"""Calls about plans: make one, read it, page through its groups, delete it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request, Response, status
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from windrow_core.models import GroupPage, Plan, PlanExplanation, PlanRequest, PlanStatus
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import (
    OWN_PLAN,
    READ,
    GuardedRoute,
    GuardedRouter,
    OwnPlanDep,
)
from windrow_service.api.bodies import ARROW_STREAM, STREAM
from windrow_service.api.idempotency import ONCE, REPLAYED, KeptAnswer, OnceDep, deletion_answer
from windrow_service.api.page_tokens import PageTokens
from windrow_service.api.parameters import (
    AcceptHeader,
    PageSizeQuery,
    PageTokenQuery,
    PageTokensDep,
    PlanPreferHeader,
    is_listed,
    wait_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import PlansDep, PlanServices, services_of
from windrow_service.usecases.errors import RepeatedRequestError
from windrow_service.usecases.plans.pages import PageOfGroups
from windrow_service.usecases.plans.ports import PlanRecord
from windrow_service.usecases.plans.records import info_of

router = GuardedRouter(tags=["plans"])
_ASK_AGAIN_S = "1"


async def _plannable(request: PlanRequest, principal: PrincipalDep) -> PlanRequest:
    # Checked before an earlier answer to the same request is looked up.
    principal.require_table("read", request.table)
    return request


PlannableDep = Annotated[PlanRequest, Depends(_plannable)]


class _Replaying(GuardedRoute):
    """Answers a repeated request with the plan made first, whose groups are stored only once."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of one request."""
        first_time = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await first_time(request)
            except RepeatedRequestError as error:
                services = services_of(request)
                answer = KeptAnswer.model_validate_json(error.answer)
                plan = await services.plans.read.get(answer.body, request.state.principal)
                tokens = services.access.page_tokens.of(plan.principal)
                accept = request.headers.get("Accept", "")
                response = await _answer_with_plan(services.plans, tokens, plan, accept)
                response.headers[REPLAYED] = "true"
                return response

        return handler


made_once = GuardedRouter(route_class=_Replaying)


@made_once.post(
    "/plans",
    operation_id="make_plan",
    dependencies=[READ],
    response_model=Plan,
    responses={
        200: STREAM,
        202: {"model": PlanStatus},
        **problem_responses(400, 404, 409, 413, 422, 503, 504),
    },
)
async def make_plan(
    request: PlannableDep,
    services: PlansDep,
    tokens: PageTokensDep,
    principal: PrincipalDep,
    once: OnceDep,
    prefer: PlanPreferHeader = None,
    accept: AcceptHeader = "application/json",
) -> Response:
    """Plan how to read a table: group its surviving files into split groups, one group per task.

    With `Accept: application/vnd.apache.arrow.stream`, the answer is a stream of all groups, as
    `get_groups` returns it, if the plan is completed. The plan itself is JSON in the metadata of
    the stream's schema, under `windrow:plan`.

    With `Prefer: respond-async`, the plan is made in the background, and the answer is 202: at
    once or, with `wait=<seconds>` added, if the plan takes longer than that. `GET` on the plan
    then shows when it is completed, even if the coordinator that took the request has died. With
    `Prefer: unlisted`, `GET /plans` does not list a plan that is completed, such as one that only
    tells a table's columns.
    """
    wait_s, in_list = wait_of(prefer), is_listed(prefer)
    key = once(_kept_plan_id)
    if wait_s is None:
        plan = await services.make(request, principal.name, key, is_listed=in_list)
    else:
        plan = await services.runs.submit(request, principal.name, wait_s, key, is_listed=in_list)
    return await _answer_with_plan(services, tokens, plan, accept)


router.include_router(made_once)


@router.get(
    "/plans/{plan_id}",
    operation_id="get_plan",
    dependencies=[READ, OWN_PLAN],
    response_model=Plan | PlanStatus,
    responses=problem_responses(404, 422, 503),
)
async def get_plan(plan: OwnPlanDep, services: PlansDep, tokens: PageTokensDep) -> Response:
    """Return a plan with its first page of groups, or its progress.

    A plan that is still being made has the status `submitted`, and `Retry-After` says when to
    ask again. A plan that could not be made has the status `failed` and a problem.
    """
    if plan.state == "completed":
        return await _first_page_answer(services, tokens, plan)
    return _status_answer(plan)


@router.get(
    "/plans/{plan_id}/groups",
    operation_id="get_groups",
    dependencies=[READ, OWN_PLAN],
    response_model=GroupPage,
    responses={
        200: STREAM,
        **problem_responses(404, 409, 422, 503),
    },
)
async def get_groups(
    plan: OwnPlanDep,
    services: PlansDep,
    tokens: PageTokensDep,
    page_token: PageTokenQuery = None,
    page_size: PageSizeQuery = None,
    accept: AcceptHeader = "application/json",
) -> Response:
    """Return a page of groups as JSON, or all of them as an Arrow stream.

    A page may hold fewer groups than requested; the last page is the one without
    `next_page_token`. `Accept: application/vnd.apache.arrow.stream` streams every group as one
    row. The stream ends with an empty batch that carries `windrow:end` in its metadata; without
    that batch the stream was cut short.
    """
    info_of(plan)
    if ARROW_STREAM in accept:
        return await _stream_answer(services.read.stream(plan))
    begin = tokens.read_number(_listing(plan.plan_id), page_token, 0)
    page = await services.read.page(plan, begin, page_size)
    return _json({"plan_id": plan.plan_id, "next_page_token": _next_token(tokens, page)}, page)


@router.get(
    "/plans/{plan_id}/explain",
    operation_id="explain_plan",
    dependencies=[READ, OWN_PLAN],
    responses=problem_responses(404, 409, 410, 422, 503),
)
async def explain_plan(plan: OwnPlanDep, services: PlansDep) -> PlanExplanation:
    """Explain how a plan came about, and compare it with the plans of the other strategies.

    The explanation is computed from the plan's snapshot, filter, limit and options, which takes as
    long as planning with every strategy. Nothing is stored.
    """
    return await services.explain(plan)


@router.delete(
    "/plans/{plan_id}",
    operation_id="delete_plan",
    dependencies=[READ, ONCE, OWN_PLAN],
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(404, 422, 503, 504),
)
async def delete_plan(plan: OwnPlanDep, services: PlansDep, once: OnceDep) -> None:
    """Delete a plan before it expires; if it is still being made, the work stops."""
    await services.runs.delete(plan.plan_id, once(deletion_answer))


def _kept_plan_id(plan: PlanRecord) -> KeptAnswer:
    return KeptAnswer(status=status.HTTP_200_OK, body=plan.plan_id)


async def _answer_with_plan(
    services: PlanServices, tokens: PageTokens, plan: PlanRecord, accept: str
) -> Response:
    if plan.info is not None:
        if ARROW_STREAM in accept:
            description = to_json(dict(plan.info))
            return await _stream_answer(services.read.stream(plan, description))
        return await _first_page_answer(services, tokens, plan)
    answer = _status_answer(plan)
    answer.status_code = status.HTTP_202_ACCEPTED
    answer.headers["Location"] = f"/plans/{plan.plan_id}"
    return answer


async def _first_page_answer(
    services: PlanServices, tokens: PageTokens, plan: PlanRecord
) -> Response:
    page = await services.read.page(plan, 0, plan.request.page_size)
    fields = dict(page.plan) | {"next_page_token": _next_token(tokens, page)}
    del fields["groups"]
    return _json(fields, page)


def _status_answer(plan: PlanRecord) -> Response:
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


async def _stream_answer(stream: AsyncIterator[bytes]) -> Response:
    # Awaited here, because an error before the first part can still be answered with a problem.
    return StreamingResponse(_chained(await anext(stream), stream), media_type=ARROW_STREAM)


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for data in rest:
        yield data


def _json(fields: dict[str, Any], page: PageOfGroups) -> Response:
    groups = b",".join(page.groups)
    body = b"".join((to_json(fields)[:-1], b',"groups":[', groups, b"]}"))
    return Response(body, media_type="application/json")


def _next_token(tokens: PageTokens, page: PageOfGroups) -> str | None:
    if page.next_group is None:
        return None
    return tokens.make(_listing(page.plan.plan_id), page.next_group)


def _listing(plan_id: str) -> str:
    return f"plan:{plan_id}"
