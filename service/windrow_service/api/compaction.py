"""Calls about compaction: which partitions are worth rewriting."""

from __future__ import annotations

from windrow_core.models import CompactionPlan, CompactionRequest
from windrow_service.api.authorization import READ_TABLE, GuardedRouter
from windrow_service.api.parameters import TableNamePath
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import UpkeepDep

router = GuardedRouter(tags=["writes"])


@router.post(
    "/tables/{name}/compaction-plans",
    operation_id="plan_compaction",
    dependencies=[READ_TABLE],
    responses=problem_responses(400, 404, 409, 413, 422, 503),
)
async def plan_compaction(
    name: TableNamePath, request: CompactionRequest, services: UpkeepDep
) -> CompactionPlan:
    """Find the partitions of a table whose small files are worth rewriting as fewer files.

    Nothing is changed or stored: the same request on the same snapshot gets the same answer. A page
    is one batch to rewrite, limited in bytes and files; the totals cover all pages.
    """
    return await services.plan_compaction(name, request)
