"""The maintenance pages: what was done, saved and spent, what comes next, and how to stop it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from fastapi import Query, Request
from fastapi.responses import Response

from windrow_core.files.places import place_of
from windrow_core.models import CompactionRequest, MaintenanceReceipt, ReceiptState
from windrow_core.models.policy_cards import policy_text
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import ADMIN, READ, READ_TABLE, WRITE_TABLE, GuardedRouter
from windrow_service.api.dashboard.commands import compact_command, maintain_command
from windrow_service.api.dashboard.lookups import looked_up
from windrow_service.api.dashboard.signing_in import changes_of
from windrow_service.api.dashboard.table import RoomsDep, head_of
from windrow_service.api.dashboard.table_figures import TIMELINE, WEEK, work_timeline
from windrow_service.api.errors import FormOutdatedError
from windrow_service.api.html.rendering import ROOT, page, page_in_parts, redirect
from windrow_service.api.parameters import NO_NULLS, TableNamePath
from windrow_service.api.services import MaintenanceDep, MaintenanceServices, TablesDep
from windrow_service.planner.maintenance.corrections import PIECE_SECONDS
from windrow_service.usecases.maintenance.policies import applies, maintenance_of
from windrow_service.usecases.maintenance.work import NEWEST, Maintainer, WorkStore, turn_of
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Page
from windrow_service.usecases.tables.lists import TableConditions

router = GuardedRouter(include_in_schema=False)
_PAGE = f"{ROOT}/maintenance"
# Receipts of a list, names that a search finds, and pieces of work on a timeline.
_SHOWN, _NAMES, _DRAWN = 50, 20, 500
_DAY, _SEEN_FOR = timedelta(days=1), timedelta(days=7)
# Workers ask every five seconds, or renew leases of a minute three times.
_ALIVE_FOR = timedelta(minutes=1)
List: TypeAlias = Literal["waiting", "running", "ended", "left_alone"]
# The lists of receipts: their titles, and the states of what is on them.
LISTS: Mapping[List, tuple[str, Sequence[ReceiptState]]] = {
    "waiting": ("Next", ["waiting"]),
    "running": ("Running", ["running"]),
    "ended": ("Done", ["done", "gave_up", "failed"]),
    "left_alone": ("Left alone", ["left_alone"]),
}
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
        day=await work.sums(now - _DAY, among),
        maintainers=await _seen(services),
        alive_since=now - _ALIVE_FOR,
        worker_command=maintain_command(request),
        policy_text=policy_text,
        lists=await _lists(work, among),
        timeline=work_timeline(await work.events(now - TIMELINE, _DRAWN, among), now),
    )


@router.get(f"{ROOT}/receipts", dependencies=[READ])
async def show_receipts(
    request: Request,
    services: MaintenanceDep,
    principal: PrincipalDep,
    table: Annotated[str, Query(max_length=256, pattern=NO_NULLS)] = "",
    of: List = "ended",
    begin: Annotated[int | None, Query(ge=0, le=NEWEST)] = None,
) -> Response:
    """Show all of one list of receipts, page by page, of a table or of all that the caller may read.

    `begin` is where the page before ended.
    """
    among, work = principal.tables, services.work
    receipts, end = await _list(work, of, begin, among, table or None)
    counts = await work.counts(among, table or None)
    state = await work.shared()
    return await page(
        request,
        "all_receipts.html",
        asked={"table": table, "of": of},
        titles={one: title for one, (title, _) in LISTS.items()},
        counts={one: sum(counts[each] for each in states) for one, (_, states) in LISTS.items()},
        receipts=receipts,
        begin=begin,
        end=end if receipts.more else None,
        decided_at=None if state.round is None else state.round.began_at,
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
    policy, now, work = maintenance.policy, services.clock(), services.work
    events = await work.events(now - TIMELINE, _DRAWN, principal.tables, name)
    state = await work.shared()
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
        lists=await _lists(work, principal.tables, name),
        week=await work.sums(now - WEEK, principal.tables, name),
        timeline=work_timeline(events, now),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptList:
    """The first receipts of a list, and how many there are in all."""

    receipts: Sequence[MaintenanceReceipt]
    count: int


async def _lists(
    work: WorkStore, among: Names, table: str | None = None
) -> Mapping[str, ReceiptList]:
    """Return the lists of receipts, of a table or of several."""
    counts = await work.counts(among, table)
    return {
        one: ReceiptList(
            receipts=(await _list(work, one, None, among, table))[0],
            count=sum(counts[each] for each in states),
        )
        for one, (_, states) in LISTS.items()
    }


async def _list(
    work: WorkStore, of: List, begin: int | None, among: Names, table: str | None
) -> tuple[Page[MaintenanceReceipt], int]:
    """Return a page of a list, and where the next one begins."""
    if of == "waiting":
        receipts = await work.waiting(begin or 0, _SHOWN, among, table)
        return receipts, turn_of(receipts[-1]) if receipts else 0
    before = NEWEST if begin is None else begin
    receipts = await work.page(before, _SHOWN, among, table, LISTS[of][1])
    return receipts, receipts[-1].number if receipts else 0


async def _seen(services: MaintenanceServices) -> list[Maintainer]:
    """Return the workers that have asked for work in the last days, the latest first."""
    since = services.clock() - _SEEN_FOR
    return [one for one in await services.work.maintainers() if one.seen_at > since]
