"""The maintenance pages: what was done, saved and spent, what comes next, and how to stop it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from windrow_core.files.places import place_of
from windrow_core.models import CompactionRequest, ReceiptState
from windrow_core.models.policy_cards import policy_text
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import ADMIN, READ, READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.dashboard.commands import compact_command, maintain_command
from windrow_service.api.dashboard.lookups import looked_up
from windrow_service.api.dashboard.signing_in import changes_of
from windrow_service.api.dashboard.table import RoomsDep, head_of
from windrow_service.api.dashboard.table_figures import week_of, work_timeline
from windrow_service.api.errors import FormOutdatedError
from windrow_service.api.html.rendering import ROOT, page, page_in_parts, redirect
from windrow_service.api.parameters import NO_NULLS, TableNamePath
from windrow_service.api.services import MaintenanceDep, MaintenanceServices, TablesDep
from windrow_service.planner.maintenance.corrections import PIECE_SECONDS
from windrow_service.usecases.maintenance.policies import applies, maintenance_of
from windrow_service.usecases.maintenance.summary import summary
from windrow_service.usecases.maintenance.work import NEWEST, Maintainer
from windrow_service.usecases.tables.lists import TableConditions

router = GuardedRouter(include_in_schema=False)
_PAGE = f"{ROOT}/maintenance"
_SHOWN, _OF_TABLE, _NAMES, _DRAWN = 50, 200, 20, 500
_DAY, _SEEN_FOR = timedelta(days=1), timedelta(days=7)
# Workers ask every five seconds, or renew leases of a minute three times.
_ALIVE_FOR = timedelta(minutes=1)
# Of the last day, for its figures.
_SUMMED = 500
_ENDED: tuple[ReceiptState, ...] = ("done", "gave_up", "failed")
# The coordinator compacts whatever somebody asks for.
_ANY_READS, _BATCH_BYTES = 10**9, 8 * 2**30


@router.get(_PAGE, dependencies=[READ])
async def show_maintenance(
    request: Request,
    services: MaintenanceDep,
    tables: TablesDep,
    principal: PrincipalDep,
    table: Annotated[str, Query(max_length=256, pattern=NO_NULLS)] = "",
) -> Response:
    """Show the decisions about the tables that the caller may read, or find one of these tables."""
    names = None
    if table:
        conditions = TableConditions(containing=table, order="name", is_descending=False)
        _, matches = await tables.lists.page(conditions, 0, _NAMES, principal.tables)
        names = [one.name for one in matches]
        if table in names or len(names) == 1:
            return redirect(request, _page_of(table if table in names else names[0]))
    now, among, work = services.clock(), principal.tables, services.work
    policies = [one.info for one in await services.policies.list()]
    records = await work.work_since(now - _DAY, _SUMMED)
    outcomes = await work.page(NEWEST, _DRAWN, among, states=_ENDED)
    return await page(
        request,
        "maintenance.html",
        table=table,
        names=names,
        policies=[one for one in policies if among.meet(one.pattern)],
        may_write=principal.grants.of("write"),
        may_pause=principal.grants.of("admin").every,
        budget=(await services.policies.budget()).info,
        shared=await work.shared(),
        day=summary(one for one in records if one.table in among),
        is_cut=len(records) == _SUMMED,
        maintainers=await _seen(services),
        alive_since=now - _ALIVE_FOR,
        worker_command=maintain_command(request),
        policy_text=policy_text,
        due=list(reversed(await work.page(NEWEST, _SHOWN, among, states=("waiting",)))),
        running=await work.page(NEWEST, _SHOWN, among, states=("running",)),
        ended=outcomes[:_SHOWN],
        has_more=len(outcomes) > _SHOWN,
        left=await work.page(NEWEST, _SHOWN, among, states=("left_alone",)),
        timeline=work_timeline(outcomes, now),
    )


@router.get(f"{_PAGE}/{{name}}", dependencies=[READ_TABLE])
async def lead_to_table(name: TableNamePath, request: Request) -> Response:
    """Lead old links to the maintenance of a table to where it is now."""
    return redirect(request, _page_of(name))


@router.get(f"{ROOT}/tables/{{name}}/maintenance", dependencies=[READ_TABLE])
async def show_table_maintenance(
    name: TableNamePath,
    request: Request,
    rooms: RoomsDep,
    principal: PrincipalDep,
    count: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
) -> Response:
    """Show how a table is maintained, why it is left alone, and what compacting it now would do."""
    head, services, upkeep = (
        await head_of(rooms, name, principal, "maintenance"),
        rooms.maintenance,
        rooms.upkeep,
    )
    table = head["table"]
    policies = [one.info for one in await services.policies.list()]
    maintenance = maintenance_of(name, policies)
    policy, now = maintenance.policy, services.clock()
    receipts = await services.work.page(NEWEST, _OF_TABLE, principal.tables, name)
    state = await services.work.shared()
    dry_run = CompactionRequest(
        target_file_size=policy.target_file_size,
        min_files=policy.min_files,
        filter=policy.filter,
        worth_reads=_ANY_READS,
        max_batch_bytes=max(_BATCH_BYTES, policy.target_file_size),
        max_partitions=1,
    )
    return page_in_parts(
        request,
        "table_maintenance.html",
        **head,
        maintenance=maintenance,
        policy=policy,
        others=[one.pattern for one in policies if applies(one.pattern, name)],
        own=next((one for one in policies if one.pattern == name), None),
        receipts=receipts,
        week=week_of(receipts, now),
        timeline=work_timeline(receipts, now),
        maintainers=[one for one in await _seen(services) if applies(one.pattern, name)],
        alive_since=now - _ALIVE_FOR,
        is_paused=(await services.policies.budget()).info.pause,
        decided_at=None if state.round is None else state.round.began_at,
        count=count,
        to_copy=compact_command(request, table.info),
        is_remote=place_of(table.info.definition.location).shows_both
        and not policy.readers_may_see_both,
        policy_text=policy_text,
        plan=lambda: looked_up(upkeep.plan_compaction(name, dry_run)),
        costs=await services.request.costs(name, policy.target_file_size),
        piece_seconds=PIECE_SECONDS,
    )


@router.post(
    f"{_PAGE}/{{name}}/compact",
    # Its name in the audit log.
    operation_id="request_work",
    dependencies=[WRITE_TABLE],
)
async def request_work(name: TableNamePath, request: Request, services: MaintenanceDep) -> Response:
    """Let the small files of a table, or of one partition, be merged before all other work."""
    form = await changes_of(request)
    count = await services.request(
        name, form.get("folder") or None, readers_may_see_both=form.get("both") == "yes"
    )
    return redirect(request, f"{_page_of(name)}?count={count}")


@router.post(f"{_PAGE}/{{name}}/withdraw", operation_id="withdraw_work", dependencies=[WRITE_TABLE])
async def withdraw_work(
    name: TableNamePath, request: Request, services: MaintenanceDep
) -> Response:
    """Forget work that was asked for, unless a worker has taken it."""
    number = (await changes_of(request)).get("number", "")
    if not re.fullmatch("[0-9]{1,18}", number):
        raise FormOutdatedError
    await services.request.withdraw(name, int(number))
    return redirect(request, _page_of(name))


@router.post(f"{_PAGE}/{{name}}/switch", operation_id="define_policy", dependencies=[WRITE_TABLE])
async def switch_table(name: TableNamePath, request: Request, services: MaintenanceDep) -> Response:
    """Let a table be maintained, or leave it alone."""
    form = await changes_of(request)
    await services.tables.get(name)
    await services.change.switch(name, on=form.get("on") == "yes")
    return redirect(request, _page_of(name))


@router.post(f"{_PAGE}/{{name}}/exempt", operation_id="define_policy", dependencies=[WRITE_TABLE])
async def exempt_partition(
    name: TableNamePath, request: Request, services: MaintenanceDep
) -> Response:
    """Leave a partition of a table alone, or stop that."""
    form = await changes_of(request)
    await services.tables.get(name)
    folder = form.get("folder", "").strip().strip("/")
    if folder:
        change = services.change.include if form.get("on") == "yes" else services.change.exempt
        await change(name, folder)
    return redirect(request, _page_of(name))


@router.post(f"{ROOT}/budget", operation_id="set_budget", dependencies=[ADMIN])
async def switch_all(request: Request, services: MaintenanceDep) -> Response:
    """Pause all maintenance, or resume it."""
    form = await changes_of(request)
    budget = await services.policies.budget()
    pause = {"pause": form.get("on") != "yes"}
    await services.policies.set_budget(budget.info.model_copy(update=pause), None)
    return redirect(request, _PAGE)


def _page_of(table: str) -> str:
    return f"{ROOT}/tables/{table}/maintenance"


async def _seen(services: MaintenanceServices) -> list[Maintainer]:
    """Return the workers that have asked for work in the last days, the latest first."""
    since = services.clock() - _SEEN_FOR
    return [one for one in await services.work.maintainers() if one.seen_at > since]
