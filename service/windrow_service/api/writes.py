"""Calls about writes: begin one, report its state, list past ones."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response, status

from windrow_core.models import (
    WRITE_ID_PATTERN,
    StreamPage,
    WritePage,
    WriteRecord,
    WriteUpdate,
)
from windrow_service.api.authorization import READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.parameters import ListPageDep, TableNamePath, json_answer
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import WritesDep
from windrow_service.usecases.writes.ports import NEWEST

WriteIdPath = Annotated[
    str, Path(pattern=WRITE_ID_PATTERN, description="32 hexadecimal digits chosen by the writer.")
]
OpenQuery = Annotated[bool, Query(alias="open", description="Leave out writes that have ended.")]

router = GuardedRouter(tags=["writes"])


@router.put(
    "/tables/{name}/writes/{write_id}",
    operation_id="put_write",
    dependencies=[WRITE_TABLE],
    responses={201: {"model": WriteRecord}, **problem_responses(400, 404, 409, 413, 422, 503, 504)},
)
async def put_write(
    name: TableNamePath,
    write_id: WriteIdPath,
    update: WriteUpdate,
    services: WritesDep,
    response: Response,
) -> WriteRecord:
    """Begin a write to a table (`staging`), renew its lease, or record its next state.

    The state goes from `staging` to `committing` to `published`, or to `undone`; repeating a call
    is allowed. One write per table may be `committing` at a time, and meanwhile nobody else may
    publish, refresh, change or delete the table. A driver whose lease has run out still owns its
    write, until another `takes_over`.

    A write of a stream says which `batch` it contains when it begins. The batch is recorded in the
    transaction that publishes the write, and a write whose batch does not follow the newest one
    there cannot be `committing`: so each batch is in the table once.
    """
    record, is_new = await services.writes.put(name, write_id, update)
    response.status_code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
    return record


@router.delete(
    "/tables/{name}/writes/{write_id}",
    operation_id="cancel_write",
    dependencies=[WRITE_TABLE],
    responses=problem_responses(404, 409, 422, 503, 504),
)
async def cancel_write(
    name: TableNamePath, write_id: WriteIdPath, services: WritesDep
) -> WriteRecord:
    """Cancel a write that has not begun to move its files in (`staging`); repeating it is allowed.

    None of its files is in the table. Its driver gets `write-cancelled` when it renews its lease or
    begins to commit, and removes its staged files; if it has died, the next write removes them.
    """
    return await services.writes.cancel(name, write_id)


@router.get(
    "/tables/{name}/writes",
    operation_id="list_writes",
    dependencies=[READ_TABLE],
    response_model=WritePage,
    responses=problem_responses(404, 422, 503),
)
async def list_writes(
    name: TableNamePath,
    services: WritesDep,
    page: ListPageDep,
    open_only: OpenQuery = False,
) -> Response:
    """List a table's writes, newest first, a page at a time; the newest 1,000 are kept."""
    listing = f"writes:{name}"
    before = page.begin(listing, NEWEST)
    writes = await services.writes.page(name, before, page.limit(), open_only=open_only)
    return await json_answer(
        WritePage(
            writes=[write.info for write in writes],
            next_page_token=page.next_token(listing, writes, lambda last: last.number),
        )
    )


@router.get(
    "/tables/{name}/writes/{write_id}",
    operation_id="get_write",
    dependencies=[READ_TABLE],
    response_model=WriteRecord,
    responses=problem_responses(404, 422, 503),
)
async def get_write(name: TableNamePath, write_id: WriteIdPath, services: WritesDep) -> Response:
    """Return one write with its report and, if still kept, the outcome of each key."""
    return await json_answer(await services.writes.get(name, write_id))


@router.get(
    "/tables/{name}/streams",
    operation_id="list_streams",
    dependencies=[READ_TABLE],
    response_model=StreamPage,
    responses=problem_responses(404, 422, 503),
)
async def list_streams(name: TableNamePath, services: WritesDep, page: ListPageDep) -> Response:
    """List the streaming queries that have written to a table, newest first, a page at a time.

    Each has the newest of its batches whose rows are in the table; a query that starts again leaves
    out its batches up to that one.
    """
    listing = f"streams:{name}"
    before = page.begin(listing, NEWEST)
    streams = await services.streams.page(name, before, page.limit())
    return await json_answer(
        StreamPage(
            streams=[stream.info for stream in streams],
            next_page_token=page.next_token(listing, streams, lambda last: last.number),
        )
    )
