"""Calls about the partitions that a catalog lists of a table."""

from __future__ import annotations

from fastapi import Request, Response, status

from windrow_core.models import PartitionList, PartitionListChange, PartitionPage
from windrow_service.api.access import PrincipalDep
from windrow_service.api.bodies import JSON, read_json
from windrow_service.api.deps import (
    ARROW_STREAM,
    IfMatchHeader,
    PageSizeQuery,
    PageTokenQuery,
    PageTokensDep,
    TableNamePath,
    entries_of,
    json_answer,
    version_of,
)
from windrow_service.api.json_shapes import PARTITIONS
from windrow_service.api.once import KeptAnswer, OnceDep
from windrow_service.api.problems import problem_responses
from windrow_service.api.rules import READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.services import TablesDep
from windrow_service.usecases.tables.partitions import page_of
from windrow_service.usecases.tables.ports import StoredTable

router = GuardedRouter(tags=["tables"])
_DEFAULT_PAGE = 1_000
_BODY = {
    "required": True,
    "content": {
        ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}},
        JSON.decode(): {"schema": {"$ref": "#/components/schemas/PartitionList"}},
    },
}


@router.put(
    "/tables/{name}/partitions",
    operation_id="set_partitions",
    responses=problem_responses(403, 404, 409, 412, 413, 422, 503, 504),
    openapi_extra={"requestBody": _BODY},
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
    body = await request.body()
    sent: bytes | PartitionList = body
    if request.headers.get("content-type", "").lower().startswith(JSON.decode()):
        sent = await read_json(services.set_partitions.runner, PartitionList, body, PARTITIONS)
    made = await services.set_partitions(
        name, sent, version_of(if_match), principal.tables, once(_list_change_answer)
    )
    return _list_change_answer(made).response()


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
    page_tokens: PageTokensDep,
    page_token: PageTokenQuery = None,
    page_size: PageSizeQuery = None,
) -> Response:
    """List the partitions that a catalog gave, by folder; none if there is no such list.

    If the list changes between two pages, the next page is not found.
    """
    limit = entries_of(page_size, _DEFAULT_PAGE)
    table, listed = await services.show_partitions(name)
    listing = f"partitions:{name}:{table.version}"
    start = page_tokens.read_number(listing, page_token, 0)
    if listed is None:
        return await json_answer(PartitionPage(partitions=[]))
    partitions = page_of(table, listed, start, limit)
    end = start + len(partitions)
    return await json_answer(
        PartitionPage(
            partitions=partitions,
            next_page_token=page_tokens.make(listing, end) if end < len(listed) else None,
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
    made = await services.set_partitions(
        name, None, version_of(if_match), principal.tables, once(_list_change_answer)
    )
    return _list_change_answer(made).response()


def _list_change_answer(made: tuple[StoredTable, PartitionListChange]) -> KeptAnswer:
    table, change = made
    return KeptAnswer(
        status=status.HTTP_200_OK,
        headers={"ETag": f'"{table.version}"'},
        body=change.model_dump_json(),
    )
