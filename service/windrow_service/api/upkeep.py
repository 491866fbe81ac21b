"""Calls about upkeep: which partitions are worth rewriting, and what causes small files."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from windrow_core.models import CompactionPlan, CompactionRequest, TableAdvice
from windrow_service.api.authorization import READ_TABLE, GuardedRouter
from windrow_service.api.parameters import TableNamePath
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import UpkeepDep

router = GuardedRouter(tags=["writes"])

TargetQuery = Annotated[int, Query(ge=1, le=2**50, description="Target size of a file, in bytes.")]


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


@router.get(
    "/tables/{name}/advice",
    operation_id="advise_table",
    dependencies=[READ_TABLE],
    responses=problem_responses(404, 409, 422, 503),
)
async def advise_table(
    name: TableNamePath, services: UpkeepDep, target_file_size: TargetQuery = 128 * 2**20
) -> TableAdvice:
    """Return which writes made the files of a table, what went wrong, and what would have helped.

    Writes are recognised by the names and times of the files that still exist.
    """
    return await services.advise(name, target_file_size)
