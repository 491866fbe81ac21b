"""Plan a write."""

from __future__ import annotations

from fastapi import Request, Response

from windrow_core.models import WritePlan, WritePlanRequest
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.bodies import JSON, json_body, read_json
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import WritesDep

router = GuardedRouter(tags=["write plans"])


@router.post(
    "/write-plans",
    operation_id="plan_write",
    dependencies=[READ],
    response_model=WritePlan,
    openapi_extra=json_body(WritePlanRequest),
    responses=problem_responses(404, 409, 413, 422, 503),
)
async def plan_write(request: Request, services: WritesDep, principal: PrincipalDep) -> Response:
    """Plan how many files a write should make, and how Spark can make exactly that many.

    Unless the request gives the bytes per row, they are estimated from the table's earlier
    writes or its files. Nothing is written, and the plan is not stored.
    """
    body = await request.body()
    # With 100,000 keys, parsing the request and encoding the answer take a second.
    plan_request = await read_json(services.runner, WritePlanRequest, body)
    if plan_request.table is not None:
        principal.require_table("read", plan_request.table)
    plan = await services.plan(plan_request)
    answer = await services.runner.run(plan.model_dump_json)
    return Response(answer, media_type=JSON.decode())
