"""Calls about refreshes: start one, follow it, cancel it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from windrow.models import RefreshStatus
from windrow_service.api.access import READ, WRITE
from windrow_service.api.deps import PreferHeader, ServicesDep, TableNamePath, wait_of
from windrow_service.api.problems import problem_responses

FullQuery = Annotated[
    bool,
    Query(
        description="List every folder, not only those that changed. A file that was written in "
        "place does not change its folder, and is found so alone."
    ),
]

router = APIRouter(tags=["tables"])


@router.post(
    "/tables/{name}/refresh",
    operation_id="refresh_table",
    dependencies=[WRITE],
    responses={
        202: {"model": RefreshStatus},
        **problem_responses(403, 404, 409, 412, 422, 503, 504),
    },
)
async def refresh_table(
    name: TableNamePath,
    services: ServicesDep,
    response: Response,
    prefer: PreferHeader = None,
    full: FullQuery = False,
) -> RefreshStatus:
    """List the table's location again and publish a snapshot if anything is new.

    Where the file system keeps folders' times, only folders that changed are listed. A write that
    moves files in is waited for while its driver lives, up to a minute.

    One refresh runs per table, over all replicas: a second call joins it. With
    `Prefer: respond-async` the answer comes at once, or, with `wait=<seconds>` beside it, if it
    takes longer than that; `GET` on the same path tells how far it is. It needs no key to be
    asked for again: the files decide what is published.
    """
    started = await services.refreshes.start(name, full=full)
    try:
        return await asyncio.wait_for(services.refreshes.wait(started, full=full), wait_of(prefer))
    except asyncio.TimeoutError:
        return _accepted(started, response)


@router.get(
    "/tables/{name}/refresh",
    operation_id="get_refresh",
    dependencies=[READ],
    responses=problem_responses(404, 422, 503),
)
async def get_refresh(name: TableNamePath, services: ServicesDep) -> RefreshStatus:
    """Tell how far the running refresh is, or how the last one ended, whichever replica ran it.

    One whose coordinator has died is `failed` a few seconds later, with the problem
    `refresh-abandoned`: the next `POST` starts another.
    """
    return await services.refreshes.latest(name)


@router.delete(
    "/tables/{name}/refresh",
    operation_id="cancel_refresh",
    dependencies=[WRITE],
    status_code=status.HTTP_202_ACCEPTED,
    responses=problem_responses(404, 422, 503, 504),
)
async def cancel_refresh(
    name: TableNamePath, services: ServicesDep, response: Response
) -> RefreshStatus:
    """Stop the refresh that runs, for all who wait for it; nothing of it is published.

    `GET` on the same path tells when it has ended: `cancelled`, or `done` if this came too late.
    """
    return _accepted(await services.refreshes.cancel(name), response)


def _accepted(refresh: RefreshStatus, response: Response) -> RefreshStatus:
    response.status_code = status.HTTP_202_ACCEPTED
    response.headers["Location"] = f"/tables/{refresh.table}/refresh"
    response.headers["Retry-After"] = "1"
    return refresh
