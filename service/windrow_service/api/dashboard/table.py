"""The page of a table: how well it can be read, what is wrong with it, and what happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from windrow_core.models import CompactionRequest, SnapshotInfo
from windrow_core.models.cards import definition_facts
from windrow_core.sizes import WELL_SIZED_BYTES, size_text
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ_TABLE, GuardedRouter
from windrow_service.api.dashboard.lookups import MAX_LOOKED_AT, looked_up
from windrow_service.api.html.charts import bars, over_time
from windrow_service.api.html.rendering import ROOT, page_in_parts
from windrow_service.api.parameters import TableNamePath
from windrow_service.api.services import (
    CachesDep,
    OperationsDep,
    PacksDep,
    PlansDep,
    SnapshotsDep,
    TablesDep,
    UpkeepDep,
    WritesDep,
)
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.usecases.plans.history import NEWEST, PlanConditions
from windrow_service.usecases.tables.lists import ListedTable
from windrow_service.usecases.upkeep.overview import opening_seconds
from windrow_service.usecases.writes.ports import NEWEST as NEWEST_WRITE

router = GuardedRouter(include_in_schema=False)

_SNAPSHOTS = 30
_WORST = 20
_PACKS = 50
# Of the latest writes, changes and plans.
_LATEST = 10
# A power of two, so that a snapshot's counts by size tell exactly how many files are smaller.
SMALL_BYTES = WELL_SIZED_BYTES // 2
# All tables have the same bars, from 1 KB to 8 GB, so that their charts can be compared.
_FIRST_BITS, _LAST_BITS = 10, 33
# Every so many bars have a label.
_LABEL_EVERY = 4


@router.get(f"{ROOT}/tables/{{name}}", dependencies=[READ_TABLE])
async def show_table(
    name: TableNamePath,
    request: Request,
    principal: PrincipalDep,
    services: TablesDep,
    snapshots: SnapshotsDep,
    upkeep: UpkeepDep,
    packs: PacksDep,
    caches: CachesDep,
    writes: WritesDep,
    plans: PlansDep,
    operations: OperationsDep,
) -> Response:
    """Show how well a table can be read, what would help, and what happened to it.

    Parts that look at each file come last, while the browser already shows the others.
    """
    table = await services.tables.get(name)
    trend = list(reversed(await snapshots.snapshots.newest(name, _SNAPSHOTS)))
    refresh = await looked_up(services.refreshes.latest(name))
    info = table.info.current_snapshot
    too_many = info is not None and info.file_count > MAX_LOOKED_AT
    listing = ListedTable(
        name,
        info,
        is_failing=refresh.value is not None and refresh.value.status == "failed",
        reads=(await looked_up(services.lists.reads(name))).value or 0,
    )
    sees_changes = principal.grants.of("admin").every
    return page_in_parts(
        request,
        "table.html",
        table=table,
        may_write=name in principal.grants.of("write"),
        info=info,
        health=listing,
        losses=(opening_seconds(listing.excess), opening_seconds(listing.daily_openings)),
        costs=_costs(info),
        small=small_files(info),
        settings=list(definition_facts(table.info.definition)),
        refresh=refresh.value,
        sizes=_sizes(info),
        trend=[(one, small_files(one)) for one in reversed(trend)],
        chart=_trend(trend, operations.clock()),
        too_many=too_many,
        most=MAX_LOOKED_AT,
        most_partitions=_WORST,
        well_sized_bytes=WELL_SIZED_BYTES,
        writes=lambda: looked_up(writes.writes.page(name, NEWEST_WRITE, _LATEST, open_only=False)),
        plans=lambda: looked_up(
            plans.look_back.page(principal, PlanConditions(table=name), _LATEST)
        ),
        sees_changes=sees_changes,
        changes=lambda: looked_up(operations.audit.page(NEWEST, _LATEST, table=name)),
        packs=lambda: looked_up(packs.packs.of_table(table.table_id, _PACKS)),
        cached=lambda: looked_up(caches.show(name)),
        worst=lambda: looked_up(upkeep.find_worst_partitions(name, SMALL_BYTES, _WORST)),
        advise=lambda: looked_up(upkeep.advise(name, WELL_SIZED_BYTES)),
        compact=lambda: looked_up(upkeep.plan_compaction(name, CompactionRequest())),
    )


def small_files(info: SnapshotInfo | None) -> int | None:
    """Return how many files of a snapshot are small; None if that is not known."""
    if info is None or info.file_sizes is None:
        return None
    return sum(info.file_sizes[: SMALL_BYTES.bit_length()])


@dataclass(frozen=True, slots=True)
class _Costs:
    open_seconds: float
    read_seconds: float


def _costs(info: SnapshotInfo | None) -> _Costs | None:
    if info is None:
        return None
    return _Costs(
        open_seconds=info.file_count * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND,
        read_seconds=info.size_bytes / READ_BYTES_PER_SECOND,
    )


def _sizes(info: SnapshotInfo | None) -> dict[str, Any] | None:
    if info is None or not info.file_sizes:
        return None
    counts = info.file_sizes + [0] * max(_LAST_BITS + 1 - len(info.file_sizes), 0)
    inner = range(_FIRST_BITS + 1, _LAST_BITS)
    heights = [
        sum(counts[: _FIRST_BITS + 1]),
        *(counts[bits] for bits in inner),
        sum(counts[_LAST_BITS:]),
    ]
    names = [
        f"under {size_text(2**_FIRST_BITS)}",
        *(f"{size_text(2 ** (bits - 1))} to {size_text(2**bits)}" for bits in inner),
        f"{size_text(2 ** (_LAST_BITS - 1))} or more",
    ]
    labels = [
        size_text(2 ** (bits - 1)) if (bits - _FIRST_BITS - 1) % _LABEL_EVERY == 0 else ""
        for bits in range(_FIRST_BITS, _LAST_BITS + 1)
    ]
    target = (WELL_SIZED_BYTES.bit_length() - _FIRST_BITS, f"target {size_text(WELL_SIZED_BYTES)}")
    return {
        "rows": [row for row in zip(names, heights, strict=True) if row[1]],
        "chart": bars("Files by size", labels, heights, names=names, mark=target),
    }


def _trend(trend: list[SnapshotInfo], until: datetime) -> Any:
    if len(trend) < 2:
        return None
    return over_time(
        "Files over time",
        [one.created_at for one in trend],
        {
            "files": [one.file_count for one in trend],
            "small files": [small_files(one) for one in trend],
        },
        until=until,
    )
