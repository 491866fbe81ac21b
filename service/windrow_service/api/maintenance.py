"""Calls about the work of maintenance: decide, claim work, report about it, read receipts."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Response, status

from windrow_core.models import (
    CLAIM_ID_PATTERN,
    TABLE_NAME_PATTERN,
    ClaimRequest,
    ClaimUpdate,
    MaintenanceReceipt,
    MaintenanceRound,
    QueuedWork,
    ReceiptPage,
    WithdrawnWork,
    WorkItem,
    WorkRequest,
)
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, WRITE, WRITE_TABLE, GuardedRouter
from windrow_service.api.parameters import ListPageDep, TableNamePath, json_answer
from windrow_service.api.problems import problem_responses
from windrow_service.api.services import MaintenanceDep
from windrow_service.usecases.maintenance.work import NEWEST

router = GuardedRouter(tags=["maintenance"])

ClaimIdPath = Annotated[
    str, Path(pattern=CLAIM_ID_PATTERN, description="Id of the claim, from its answer.")
]
TableQuery = Annotated[
    str | None,
    Query(pattern=TABLE_NAME_PATTERN, max_length=256, description="Only receipts of this table."),
]


@router.post(
    "/maintenance/rounds",
    operation_id="decide_maintenance",
    dependencies=[WRITE],
    responses=problem_responses(404, 422, 503, 504),
)
async def decide_maintenance(services: MaintenanceDep) -> MaintenanceRound:
    """Decide now which partitions to rewrite, of all tables that a policy applies to.

    The coordinator does it every few minutes in any case. Work that waits for a worker is decided
    again. Repeating the call changes nothing while tables, policies and reads stay the same.
    """
    return await services.rounds.run()


@router.post(
    "/tables/{name}/maintenance/requests",
    operation_id="request_work",
    dependencies=[WRITE_TABLE],
    responses=problem_responses(400, 404, 409, 413, 422, 503, 504),
)
async def request_work(
    name: TableNamePath, request: WorkRequest, services: MaintenanceDep
) -> QueuedWork:
    """Let the small files of a table, or of one partition, be merged before all other work.

    Windows, quiet time, gain and budget do not matter for it; what it costs counts against the
    budget. The next worker that asks for work on the table gets it, and its receipt says how it
    goes. Repeating the call puts the same work in the place of what still waits.
    """
    items = await services.request(
        name, request.folder, readers_may_see_both=request.readers_may_see_both
    )
    return QueuedWork(items=items)


@router.delete(
    "/tables/{name}/maintenance/requests",
    operation_id="withdraw_work",
    dependencies=[WRITE_TABLE],
    responses=problem_responses(404, 422, 503, 504),
)
async def withdraw_work(name: TableNamePath, services: MaintenanceDep) -> WithdrawnWork:
    """Withdraw all requests for work on a table that no worker has taken; repeating it is allowed.

    A worker finishes the work that it has. The next round decides by the table's policy about
    the partitions.
    """
    return WithdrawnWork(items=await services.request.withdraw(name))


@router.post(
    "/maintenance/claims",
    operation_id="claim_work",
    dependencies=[WRITE],
    response_model=WorkItem,
    responses={
        204: {"description": "Nothing is to be done."},
        **problem_responses(400, 404, 413, 422, 503, 504),
    },
)
async def claim_work(
    request: ClaimRequest, services: MaintenanceDep, principal: PrincipalDep
) -> Response:
    """Claim the work that comes first, of tables that the caller may write to.

    The work belongs to the caller until its lease runs out: nobody else gets these partitions
    meanwhile. Work whose worker has died is given to another one, three times at most.
    """
    item = await services.claim(request, principal.grants.of("write"))
    if item is None:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    return await json_answer(item)


@router.put(
    "/maintenance/claims/{claim_id}",
    operation_id="update_claim",
    dependencies=[WRITE],
    responses=problem_responses(400, 404, 409, 413, 422, 503, 504),
)
async def update_claim(
    claim_id: ClaimIdPath, update: ClaimUpdate, services: MaintenanceDep, principal: PrincipalDep
) -> MaintenanceReceipt:
    """Renew the lease of work (`running`), or report how it ended; repeating it is allowed.

    A caller that gets `claim-lost` stops: its lease ran out, and the work is no longer its own.
    """
    now = services.clock()
    until = now + timedelta(seconds=update.lease_seconds)
    return await services.work.update(claim_id, principal.grants.of("write"), update, now, until)


@router.get(
    "/maintenance/receipts",
    operation_id="list_receipts",
    dependencies=[READ],
    response_model=ReceiptPage,
    responses=problem_responses(404, 422, 503),
)
async def list_receipts(
    services: MaintenanceDep,
    principal: PrincipalDep,
    page: ListPageDep,
    table: TableQuery = None,
) -> Response:
    """List what was decided about the caller's tables and why, newest first, a page at a time.

    A receipt is work, from the decision to its outcome, or a reason why partitions are left alone;
    the same reason again within a day is counted in the same receipt.
    """
    before = page.begin("receipts", NEWEST)
    receipts = await services.work.page(before, page.limit(), principal.tables, table)
    return await json_answer(
        ReceiptPage(
            receipts=receipts,
            next_page_token=page.next_token("receipts", receipts, lambda one: one.number),
        )
    )
