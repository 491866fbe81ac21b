"""Calls about refreshes: start one, follow it, cancel it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Body, Query, Response, status

from windrow_core.files.acid.write_ids import WriteIds
from windrow_core.models import ON_DISK, RefreshRequest, RefreshStatus
from windrow_service.api.authorization import READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.parameters import PreferHeader, TableNamePath, wait_of
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import TablesDep

FullQuery = Annotated[
    bool,
    Query(
        description="Compare every file, also of a table with `trust_folder_times`. Other tables "
        "are always compared in full.",
    ),
]

router = GuardedRouter(tags=["tables"])


@router.post(
    "/tables/{name}/refresh",
    operation_id="refresh_table",
    dependencies=[WRITE_TABLE],
    responses={
        202: {"model": RefreshStatus},
        **problem_responses(403, 404, 409, 412, 422, 503, 504),
    },
)
async def refresh_table(
    name: TableNamePath,
    services: TablesDep,
    response: Response,
    prefer: PreferHeader = None,
    full: FullQuery = False,
    request: Annotated[RefreshRequest | None, Body()] = None,
) -> RefreshStatus:
    """List the table's location again, and publish a snapshot if anything has changed.

    Every file is compared with the current snapshot by path, size and time of change, and by inode
    number or ETag where there are such; only new and changed files are opened. A table with
    `trust_folder_times` is listed only where folders have changed, unless `full` is set.
    For Delta and Iceberg tables no folder is listed: their log shows what has changed.
    If a write is moving files in, the refresh waits for it while its driver is alive, for up to a
    minute.

    Only one refresh runs per table, over all replicas: a second call joins it. With
    `Prefer: respond-async` the answer comes at once or, with `wait=<seconds>` added, if the refresh
    takes longer than that; `GET` on the same path then shows its progress. Repeating the call needs
    no idempotency key: the files decide what is published.
    """
    options = request or RefreshRequest()
    if options.valid_write_ids not in (None, ON_DISK):
        WriteIds.parse(options.valid_write_ids)
    started = await services.refreshes.start(name, full=full, request=options)
    outcome = services.refreshes.wait(started, full=full, request=options)
    try:
        return await asyncio.wait_for(outcome, wait_of(prefer))
    except asyncio.TimeoutError:
        return _accepted(started, response)


@router.get(
    "/tables/{name}/refresh",
    operation_id="get_refresh",
    dependencies=[READ_TABLE],
    responses=problem_responses(404, 422, 503),
)
async def get_refresh(name: TableNamePath, services: TablesDep) -> RefreshStatus:
    """Return the progress of the running refresh, or the outcome of the last, on any replica.

    If the coordinator that ran it has died, the refresh becomes `failed` a few seconds later, with
    the problem `refresh-abandoned`: the next `POST` starts another.
    """
    return await services.refreshes.latest(name)


@router.delete(
    "/tables/{name}/refresh",
    operation_id="cancel_refresh",
    dependencies=[WRITE_TABLE],
    status_code=status.HTTP_202_ACCEPTED,
    responses=problem_responses(404, 422, 503, 504),
)
async def cancel_refresh(
    name: TableNamePath, services: TablesDep, response: Response
) -> RefreshStatus:
    """Cancel the running refresh, for all callers that wait for it; it publishes nothing.

    `GET` on the same path shows when it has ended: `cancelled`, or `done` if this came too late.
    """
    return _accepted(await services.refreshes.cancel(name), response)


def _accepted(refresh: RefreshStatus, response: Response) -> RefreshStatus:
    response.status_code = status.HTTP_202_ACCEPTED
    response.headers["Location"] = f"/tables/{refresh.table}/refresh"
    response.headers["Retry-After"] = "1"
    return refresh
