"""Calls about advice: what causes a table's small files."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from windrow_core.models import TableAdvice
from windrow_service.api.authorization import READ_TABLE, GuardedRouter
from windrow_service.api.parameters import TableNamePath
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import UpkeepDep

router = GuardedRouter(tags=["writes"])

TargetQuery = Annotated[int, Query(ge=1, le=2**50, description="Target size of a file, in bytes.")]


@router.get(
    "/tables/{name}/advice",
    operation_id="advise_table",
    dependencies=[READ_TABLE],
    responses=problem_responses(404, 409, 422, 503),
)
async def advise_table(
    name: TableNamePath, services: UpkeepDep, target_file_size: TargetQuery = 128 * 2**20
) -> TableAdvice:
    """Tell which writes made the files of a table, what went wrong, and what would have helped.

    Writes are recognised by the names and times of the files that still exist.
    """
    return await services.advise(name, target_file_size)
