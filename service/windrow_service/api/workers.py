"""Calls by workers: heartbeats, and reports of the files they hold."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, status

from windrow_core.models import (
    WORKER_ID_PATTERN,
    CachedFilesCount,
    CachedFilesReport,
    Heartbeat,
    WorkerInfo,
    WorkerPage,
)
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, THIS_WORKER, GuardedRouter
from windrow_service.api.parameters import ListPageDep
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import CachesDep
from windrow_service.usecases.ports import Page

router = GuardedRouter(tags=["workers"])

WorkerIdPath = Annotated[
    str, Path(pattern=WORKER_ID_PATTERN, description="A permanent name, for example `worker-7`.")
]


@router.put(
    "/workers/{worker_id}",
    operation_id="beat",
    dependencies=[THIS_WORKER],
    responses=problem_responses(400, 409, 413, 422, 503),
)
async def beat(worker_id: WorkerIdPath, heartbeat: Heartbeat, services: CachesDep) -> WorkerInfo:
    """Report that a worker is alive; repeat this well within `ttl_seconds`.

    If `session` differs from that of the previous answer, the worker had been forgotten: it should
    report all its files again, with `replace`.
    """
    return await services.heartbeats.beat(worker_id, heartbeat, services.clock())


@router.get(
    "/workers",
    operation_id="list_workers",
    dependencies=[READ],
    responses=problem_responses(404, 422, 503),
)
async def list_workers(services: CachesDep, page: ListPageDep) -> WorkerPage:
    """List the live workers by id, a page at a time."""
    after = page.after("workers")
    live = await services.heartbeats.live(services.clock())
    workers = Page.of([worker for worker in live if worker.worker_id > after], page.limit())
    return WorkerPage(
        workers=workers,
        next_page_token=page.next_token("workers", workers, lambda last: last.worker_id),
    )


@router.delete(
    "/workers/{worker_id}",
    operation_id="forget_worker",
    dependencies=[THIS_WORKER],
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problem_responses(404, 422, 503),
)
async def forget_worker(worker_id: WorkerIdPath, services: CachesDep) -> None:
    """Forget a worker and its files at once, for example when it shuts down."""
    await services.heartbeats.forget(worker_id, services.clock())


@router.post(
    "/workers/{worker_id}/cached-files",
    operation_id="report_cached_files",
    dependencies=[THIS_WORKER],
    responses=problem_responses(400, 404, 409, 413, 422, 503),
)
async def report_cached_files(
    worker_id: WorkerIdPath,
    report: CachedFilesReport,
    services: CachesDep,
    principal: PrincipalDep,
) -> CachedFilesCount:
    """Report which files of a table a worker holds, or no longer holds.

    Plans read a file on a live worker that holds it, if its path, size and time of change match
    the table's snapshot. A token with scopes on some tables may report only files of tables that
    it may read.
    """
    principal.require_report_on(report.table)
    return await services.report_files(worker_id, report)
