"""Calls about the partitions that a catalog lists of a table."""

from __future__ import annotations

from fastapi import Request, Response

from windrow_core.models import PartitionList, PartitionListChange, PartitionPage
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.bodies import columns_or_json, read_columns_or_json
from windrow_service.api.idempotency import KeptAnswer, OnceDep
from windrow_service.api.json_shapes import PARTITIONS
from windrow_service.api.parameters import (
    IfMatchHeader,
    IfNoneMatchHeader,
    ListPageDep,
    TableNamePath,
    json_answer,
    version_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import TablesDep
from windrow_service.usecases.tables.partitions import page_of
from windrow_service.usecases.tables.ports import StoredTable

router = GuardedRouter(tags=["tables"])
_DEFAULT_PAGE = 1_000


@router.put(
    "/tables/{name}/partitions",
    operation_id="set_partitions",
    responses=problem_responses(403, 404, 409, 412, 413, 422, 503, 504),
    openapi_extra=columns_or_json(PartitionList),
    dependencies=[WRITE_TABLE],
    response_model=PartitionListChange,
)
async def set_partitions(
    name: TableNamePath,
    request: Request,
    services: TablesDep,
    principal: PrincipalDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """Set the list of a table's partitions, as a catalog has it. Repeating it changes nothing.

    From the next refresh on, the files of the table are those directly in the folders of these
    partitions. Their partition values are the ones given here, whatever the folders are called. A
    partition may lie outside the table's location, under any allowed prefix, but not where a table
    that the caller may not read has its files; files outside the location have absolute paths. The
    table's definition must name its partition columns.

    An Arrow IPC stream has the columns `values` (a list of texts for each partition) and
    `location`. Up to 10,000 partitions can also be sent as JSON.
    """
    runner = services.set_partitions.runner
    body = await read_columns_or_json(request, runner, PartitionList, PARTITIONS)
    result = await services.set_partitions(
        name, body, version_of(if_match, if_none_match), principal.tables, once(_list_change_answer)
    )
    return _list_change_answer(result).response()


@router.get(
    "/tables/{name}/partitions",
    operation_id="list_partitions",
    dependencies=[READ_TABLE],
    response_model=PartitionPage,
    responses=problem_responses(404, 422, 503),
)
async def list_partitions(
    name: TableNamePath,
    services: TablesDep,
    page: ListPageDep,
) -> Response:
    """List the partitions that a catalog gave, by folder; none if there is no such list.

    If the list changes between two pages, the next page is not found.
    """
    table, partitions = await services.show_partitions(name)
    listing = f"partitions:{name}:{table.version}"
    start = page.begin(listing, 0)
    if partitions is None:
        return await json_answer(PartitionPage(partitions=[]))
    entries = page_of(table, partitions, start, page.limit(_DEFAULT_PAGE))
    end = start + len(entries)
    return await json_answer(
        PartitionPage(
            partitions=entries,
            next_page_token=page.next_token(listing, entries, lambda _: end),
        )
    )


@router.delete(
    "/tables/{name}/partitions",
    operation_id="remove_partitions",
    dependencies=[WRITE_TABLE],
    response_model=PartitionListChange,
    responses=problem_responses(404, 409, 412, 422, 503, 504),
)
async def remove_partitions(
    name: TableNamePath,
    services: TablesDep,
    principal: PrincipalDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
) -> Response:
    """Forget the list: from the next refresh on, the table's folders are its partitions again."""
    result = await services.set_partitions(
        name, None, version_of(if_match), principal.tables, once(_list_change_answer)
    )
    return _list_change_answer(result).response()


def _list_change_answer(result: tuple[StoredTable, PartitionListChange]) -> KeptAnswer:
    table, change = result
    return KeptAnswer.of(change, version=table.version)
