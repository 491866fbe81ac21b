"""Calls about tables: register, look up, list, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response, status

from windrow_core.models import TableDefinition, TableInfo, TablePage, TableProtection
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import (
    ADMIN_TABLE,
    READ,
    READ_TABLE,
    REGISTER_TABLE,
    GuardedRouter,
)
from windrow_service.api.idempotency import (
    KeptAnswer,
    OnceDep,
    deletion_answer,
    stored_answer,
)
from windrow_service.api.parameters import (
    IfMatchHeader,
    IfNoneMatchHeader,
    ListPageDep,
    TableNamePath,
    etag,
    json_answer,
    version_of,
)
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import TablesDep
from windrow_service.usecases.tables.ports import StoredTable

router = GuardedRouter(tags=["tables"])
ReplaceQuery = Annotated[
    bool,
    Query(
        description="Agree that the table moves to another location, and that its snapshots and its "
        "list of partitions are dropped if they do not fit the new definition. An `If-Match` with "
        "the current ETag agrees too."
    ),
]


@router.put(
    "/tables/{name}",
    operation_id="register_table",
    dependencies=[REGISTER_TABLE],
    response_model=TableInfo,
    responses={
        201: {"model": TableInfo},
        **problem_responses(400, 403, 409, 412, 413, 422, 503, 504),
    },
)
async def register_table(
    name: TableNamePath,
    definition: TableDefinition,
    services: TablesDep,
    principal: PrincipalDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
    if_none_match: IfNoneMatchHeader = None,
    replace: ReplaceQuery = False,
) -> Response:
    """Register a table, or change its definition. Repeating it changes nothing.

    Another location, and a change that would drop snapshots or the list of partitions, need
    `replace` or `If-Match`.

    A caller cannot choose a location that overlaps with that of a table that it may not read.
    """
    result = await services.register(
        name,
        definition,
        version_of(if_match, if_none_match),
        principal.tables,
        once(stored_answer),
        replace=replace,
    )
    return stored_answer(result).response()


@router.get(
    "/tables",
    operation_id="list_tables",
    dependencies=[READ],
    response_model=TablePage,
    responses=problem_responses(404, 422, 503),
)
async def list_tables(services: TablesDep, principal: PrincipalDep, page: ListPageDep) -> Response:
    """List the registered tables that the caller may read, by name, a page at a time."""
    tables = await services.tables.page(page.after("tables"), page.limit(), principal.tables)
    return await json_answer(
        TablePage(
            tables=[table.info for table in tables],
            next_page_token=page.next_token("tables", tables, lambda last: last.info.name),
        )
    )


@router.get(
    "/tables/{name}",
    operation_id="get_table",
    dependencies=[READ_TABLE],
    response_model=TableInfo,
    responses=problem_responses(404, 422, 503),
)
async def get_table(name: TableNamePath, services: TablesDep) -> Response:
    """Return a table with its current snapshot."""
    table = await services.tables.get(name)
    answer = await json_answer(table.info)
    answer.headers.update(etag(table.version))
    return answer


@router.put(
    "/tables/{name}/protection",
    operation_id="protect_table",
    dependencies=[ADMIN_TABLE],
    response_model=TableInfo,
    responses=problem_responses(400, 404, 412, 413, 422, 503, 504),
)
async def protect_table(
    name: TableNamePath,
    protection: TableProtection,
    services: TablesDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """Protect a table from deletion, or end that. Repeating it changes nothing.

    A protected table cannot be deleted, none of its partitions can be dropped by a removal, and
    its snapshots stay. Writes, refreshes and compactions go on as before.
    """
    table = await services.tables.protect(
        name,
        protection.deletion_protection,
        version_of(if_match, if_none_match),
        once(_protection_answer),
    )
    return _protection_answer(table).response()


def _protection_answer(table: StoredTable) -> KeptAnswer:
    return KeptAnswer.of(table.info, version=table.version)


@router.delete(
    "/tables/{name}",
    operation_id="delete_table",
    dependencies=[ADMIN_TABLE],
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(404, 409, 412, 422, 503, 504),
)
async def delete_table(
    name: TableNamePath, services: TablesDep, once: OnceDep, if_match: IfMatchHeader = None
) -> Response:
    """Delete a table and its snapshots. Its files are not touched."""
    await services.tables.delete(name, version_of(if_match), once(deletion_answer))
    return deletion_answer(None).response()
