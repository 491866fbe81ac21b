"""Calls about tables: register, look up, list, delete, publish, history."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response, status

from windrow.models import (
    SnapshotInfo,
    SnapshotPage,
    TableDefinition,
    TableInfo,
    TablePage,
)
from windrow_service.api.access import ADMIN, READ, WRITE
from windrow_service.api.deps import (
    ARROW_STREAM,
    IfMatchHeader,
    PageSizeQuery,
    PageTokenQuery,
    PageTokensDep,
    ServicesDep,
    TableNamePath,
    version_of,
)
from windrow_service.api.once import Answer, OnceDep
from windrow_service.api.problems import problem_responses
from windrow_service.usecases.ports import StoredTable

router = APIRouter(tags=["tables"])
_DEFAULT_PAGE = 100
_NO_SNAPSHOT_YET = 2**31 - 1


@router.put(
    "/tables/{name}",
    operation_id="register_table",
    dependencies=[WRITE],
    response_model=TableInfo,
    responses={201: {"model": TableInfo}, **problem_responses(400, 403, 412, 413, 422, 503)},
)
async def register_table(
    name: TableNamePath,
    definition: TableDefinition,
    services: ServicesDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
) -> Response:
    """Register a table, or change its definition. The same again changes nothing."""
    change = once(_registered)
    made = await services.register_table(name, definition, version_of(if_match), change)
    return _registered(made).response()


def _registered(made: tuple[StoredTable, bool]) -> Answer:
    table, is_new = made
    return Answer(
        status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK,
        headers={"ETag": f'"{table.version}"'},
        body=table.info.model_dump_json(),
    )


@router.get(
    "/tables",
    operation_id="list_tables",
    dependencies=[READ],
    responses=problem_responses(404, 422, 503),
)
async def list_tables(
    services: ServicesDep,
    page_tokens: PageTokensDep,
    page_token: PageTokenQuery = None,
    page_size: PageSizeQuery = None,
) -> TablePage:
    """List the registered tables by name, a page at a time."""
    limit = page_size or _DEFAULT_PAGE
    after = page_tokens.read_text("tables", page_token)
    found = await services.tables.page(after, limit + 1)
    tables = [table.info for table in found[:limit]]
    more = len(found) > limit
    return TablePage(
        tables=tables,
        next_page_token=page_tokens.make("tables", tables[-1].name) if more else None,
    )


@router.get(
    "/tables/{name}",
    operation_id="get_table",
    dependencies=[READ],
    responses=problem_responses(404, 422, 503),
)
async def get_table(name: TableNamePath, services: ServicesDep, response: Response) -> TableInfo:
    """Return a table with its current snapshot."""
    table = await services.tables.get(name)
    response.headers["ETag"] = f'"{table.version}"'
    return table.info


@router.delete(
    "/tables/{name}",
    operation_id="delete_table",
    dependencies=[ADMIN],
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(404, 412, 422, 503),
)
async def delete_table(
    name: TableNamePath, services: ServicesDep, once: OnceDep, if_match: IfMatchHeader = None
) -> Response:
    """Forget a table and its snapshots. Its files stay where they are."""
    await services.tables.delete(name, version_of(if_match), once(_deleted))
    return _deleted(None).response()


def _deleted(_: None) -> Answer:
    return Answer(status=status.HTTP_204_NO_CONTENT)


@router.get(
    "/tables/{name}/snapshots",
    operation_id="list_snapshots",
    dependencies=[READ],
    responses=problem_responses(404, 422, 503),
)
async def list_snapshots(
    name: TableNamePath,
    services: ServicesDep,
    page_tokens: PageTokensDep,
    page_token: PageTokenQuery = None,
    page_size: PageSizeQuery = None,
) -> SnapshotPage:
    """List a table's snapshots, newest first, a page at a time."""
    limit = page_size or _DEFAULT_PAGE
    listing = f"snapshots:{name}"
    before = page_tokens.read_number(listing, page_token, _NO_SNAPSHOT_YET)
    found = await services.snapshots.page(name, before, limit + 1)
    more = len(found) > limit
    return SnapshotPage(
        snapshots=list(found[:limit]),
        next_page_token=page_tokens.make(listing, found[limit - 1].snapshot_id) if more else None,
    )


@router.post(
    "/tables/{name}/snapshots",
    operation_id="publish_inventory",
    dependencies=[WRITE],
    response_model=SnapshotInfo,
    status_code=status.HTTP_201_CREATED,
    responses=problem_responses(404, 409, 412, 413, 422, 503),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def publish_inventory(
    name: TableNamePath,
    request: Request,
    services: ServicesDep,
    once: OnceDep,
    if_match: IfMatchHeader = None,
) -> Response:
    """Make an inventory that was taken elsewhere the table's current snapshot.

    The body is an Arrow IPC stream of all files: `path` (relative to the location),
    `size_bytes`, `mtime_ns`, `row_count`, and where known `bucket`, `hosts` and
    `row_group_offsets`. Of files that the current snapshot has unchanged, the statistics are
    kept; a later refresh keeps the hosts of files that did not change.
    """
    body = await request.body()
    change = once(_published)
    made = await services.publish_inventory(name, body, version_of(if_match), change)
    return _published(made).response()


def _published(table: StoredTable) -> Answer:
    snapshot = table.info.current_snapshot
    assert snapshot is not None
    return Answer(
        status=status.HTTP_201_CREATED,
        headers={"ETag": f'"{table.version}"'},
        body=snapshot.model_dump_json(),
    )
