"""The first page: all tables at a glance, what to do first, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, GuardedRouter
from windrow_service.api.dashboard.commands import url_of
from windrow_service.api.dashboard.lookups import looked_up
from windrow_service.api.html.charts import Box, over_time, treemap
from windrow_service.api.html.rendering import ROOT, page_in_parts
from windrow_service.api.html.units import duration_texts
from windrow_service.api.services import (
    CachesDep,
    MaintenanceDep,
    OperationsDep,
    TablesDep,
    UpkeepDep,
    WritesDep,
)
from windrow_service.planner.upkeep.health import READ_DAYS, health_of
from windrow_service.usecases.maintenance.work import NEWEST
from windrow_service.usecases.upkeep.overview import Candidate, HourFigures, Overview, thinned

router = GuardedRouter(include_in_schema=False)
# Tables of the list, failures of each kind, next work, and boxes of the picture.
_FIRST, _TROUBLES, _NEXT, _DRAWN = 10, 20, 5, 12
_READS_OF, _TREND_OF = timedelta(days=READ_DAYS), timedelta(days=30)
_POINTS = 60


@router.get(f"{ROOT}/overview", dependencies=[READ])
async def show_overview(
    request: Request,
    tables: TablesDep,
    writes: WritesDep,
    caches: CachesDep,
    upkeep: UpkeepDep,
    maintenance: MaintenanceDep,
    operations: OperationsDep,
    principal: PrincipalDep,
) -> Response:
    """Show totals, the tables that would gain most, failures, and trends.

    Each part is looked up while the browser already shows those before it.
    """
    now, among, overview = caches.clock(), principal.tables, upkeep.overview

    async def troubles() -> dict[str, Any]:
        return {
            "refreshes": await tables.refreshes.failed(_TROUBLES, among),
            "writes": await writes.writes.recent(_TROUBLES, among, dead_only=True),
            "gone": (await looked_up(caches.heartbeats.gone(now))).value or (),
            "failed": await maintenance.work.page(NEWEST, _NEXT, among, states=("failed",)),
        }

    async def next_work() -> dict[str, Any]:
        return {
            "due": await maintenance.work.waiting(0, _NEXT, among),
            "count": (await maintenance.work.counts(among))["waiting"],
            "budget": (await maintenance.policies.budget()).info,
        }

    async def trend(current: Overview | None) -> dict[str, Any]:
        hours = thinned(await overview.hours(now - _TREND_OF), _POINTS)
        excess = None if current is None else current.totals.excess_files
        return {"hours": list(reversed(hours)), "charts": _charts(hours, excess, now)}

    return page_in_parts(
        request,
        "overview.html",
        url=url_of(request),
        days=_READS_OF.days,
        shown=_FIRST,
        treemap=_treemap,
        sees_all=among.every,
        may_write=principal.grants.of("write"),
        # Every part is one lookup, which may fail without the others.
        figures=lambda: looked_up(overview.now(now - _READS_OF, _DRAWN, among)),
        troubles=lambda: looked_up(troubles()),
        next_work=lambda: looked_up(next_work()),
        trend=lambda current: looked_up(trend(current)),
        replicas=lambda: looked_up(operations.replicas.present(now)),
        database_bytes=lambda: looked_up(overview.database_bytes()),
    )


def _treemap(tables: Sequence[Candidate]) -> Any:
    """Return a picture of what the reads of tables lose; if nobody reads any, what one would."""
    is_read = any(one.reads for one in tables)
    values = {one: one.saves if is_read else one.gain_seconds for one in tables}
    largest = sorted((one for one in tables if values[one]), key=lambda one: -values[one])
    texts = duration_texts([values[one] for one in largest])
    ending = f"in {_READS_OF.days} days" if is_read else "each read"
    boxes = [
        Box(
            one.name,
            values[one],
            f"{text} {ending}",
            "bad" if health_of(one.excess, one.reads) == "poor" else "watch",
        )
        for one, text in zip(largest, texts, strict=True)
    ]
    return treemap("Time that reads lose to excess files, by table", boxes)


def _charts(hours: Sequence[HourFigures], excess: int | None, now: datetime) -> Sequence[Any]:
    """Return the trends until now; the last point of excess files is what there are."""
    if len(hours) < 2:
        return ()
    times = [one.began_at for one in hours]
    milliseconds = [
        [None if value is None else round(1_000 * value, 1) for value in values]
        for values in (
            [one.planning_seconds for one in hours],
            [one.slow_planning_seconds for one in hours],
        )
    ]
    return (
        over_time(
            "Excess files",
            [*times, now],
            {"excess files": [*(one.excess_files for one in hours), excess]},
            now,
        ),
        over_time(
            "Time of planning in milliseconds",
            times,
            {"median, ms": milliseconds[0], "95th percentile, ms": milliseconds[1]},
            now,
        ),
    )
