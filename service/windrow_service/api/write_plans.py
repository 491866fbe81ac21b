"""Plan a write."""

from __future__ import annotations

from fastapi import APIRouter

from windrow.models import WritePlan, WritePlanRequest
from windrow_service.api.access import READ
from windrow_service.api.deps import ServicesDep
from windrow_service.api.problems import problem_responses

router = APIRouter(tags=["write plans"])


@router.post(
    "/write-plans",
    operation_id="plan_write",
    dependencies=[READ],
    responses=problem_responses(400, 404, 409, 413, 422, 503),
)
async def plan_write(request: WritePlanRequest, services: ServicesDep) -> WritePlan:
    """Say how many files a write should make, and how Spark is to make just those.

    How many bytes a row takes is learnt from the table's earlier writes or its files, unless it
    is told. Nothing is written, and nothing is kept of the plan.
    """
    return await services.plan_write(request)
