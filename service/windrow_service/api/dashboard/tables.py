"""Pages about tables: a list, the worst first, and the problems of one table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from windrow_core.models import CompactionRequest, SnapshotInfo
from windrow_core.sizes import size_text
from windrow_service.api.authentication import PrincipalDep
from windrow_service.api.authorization import READ, READ_TABLE, GuardedRouter
from windrow_service.api.dashboard.lookups import MAX_LOOKED_AT, looked_up
from windrow_service.api.html.charts import bars, lines
from windrow_service.api.html.rendering import ROOT, page, page_in_parts
from windrow_service.api.parameters import NO_NULLS, TableNamePath
from windrow_service.api.services import CachesDep, SnapshotsDep, TablesDep, UpkeepDep
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.telemetry.meters import WELL_SIZED_BYTES

router = GuardedRouter(include_in_schema=False)

_ON_PAGE = 50
_SNAPSHOTS = 30
_WORST = 20
# A power of two, so that a snapshot's counts by size tell exactly how many files are smaller.
_SMALL_BYTES = WELL_SIZED_BYTES // 2
# Sizes under this share one bar.
_FIRST_BITS = 10


@router.get(f"{ROOT}/tables", dependencies=[READ])
async def list_tables(
    request: Request,
    services: TablesDep,
    principal: PrincipalDep,
    find: Annotated[str, Query(max_length=256, pattern=NO_NULLS)] = "",
    at: Annotated[int, Query(ge=1, le=10_000_000)] = 1,
) -> Response:
    """List the tables that the caller may read, those with the most excess files first."""
    count, tables = await services.tables.worst(
        find, (at - 1) * _ON_PAGE, _ON_PAGE, principal.tables
    )
    rows = [(table, _figures(table.current_snapshot)) for table in tables]
    return await page(
        request,
        "tables.html",
        find=find,
        count=count,
        rows=rows,
        well_sized_bytes=WELL_SIZED_BYTES,
        small_bytes=_SMALL_BYTES,
        at=at,
        pages=max(math.ceil(count / _ON_PAGE), 1),
    )


@router.get(f"{ROOT}/tables/{{name}}", dependencies=[READ_TABLE])
async def show_table(
    name: TableNamePath,
    request: Request,
    services: TablesDep,
    snapshots: SnapshotsDep,
    upkeep: UpkeepDep,
    caches: CachesDep,
) -> Response:
    """Show what is wrong with a table, and what would help.

    Parts that look at each file come last, while the browser already shows the others.
    """
    table = await services.tables.get(name)
    trend = list(reversed(await snapshots.snapshots.newest(name, _SNAPSHOTS)))
    info = table.info.current_snapshot
    too_many = info is not None and info.file_count > MAX_LOOKED_AT
    return page_in_parts(
        request,
        "table.html",
        table=table,
        info=info,
        figures=_figures(info),
        sizes=_sizes(info),
        trend=[(one, _figures(one)) for one in reversed(trend)],
        chart=_trend(trend),
        too_many=too_many,
        most=MAX_LOOKED_AT,
        most_partitions=_WORST,
        cached=lambda: looked_up(caches.show(name)),
        worst=lambda: looked_up(upkeep.find_worst_partitions(name, _SMALL_BYTES, _WORST)),
        advise=lambda: looked_up(upkeep.advise(name, WELL_SIZED_BYTES)),
        compact=lambda: looked_up(upkeep.plan_compaction(name, CompactionRequest())),
    )


@dataclass(frozen=True, slots=True)
class _Figures:
    small: int | None
    excess: int
    mean_bytes: float
    open_seconds: float
    read_seconds: float


def _figures(info: SnapshotInfo | None) -> _Figures | None:
    if info is None:
        return None
    ideal = math.ceil(info.size_bytes / WELL_SIZED_BYTES)
    small_bits = _SMALL_BYTES.bit_length()
    return _Figures(
        small=None if info.file_sizes is None else sum(info.file_sizes[:small_bits]),
        excess=max(info.file_count - ideal, 0),
        mean_bytes=info.size_bytes / max(info.file_count, 1),
        open_seconds=info.file_count * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND,
        read_seconds=info.size_bytes / READ_BYTES_PER_SECOND,
    )


def _sizes(info: SnapshotInfo | None) -> dict[str, Any] | None:
    if info is None or not info.file_sizes:
        return None
    counts = info.file_sizes
    first = min(_FIRST_BITS, len(counts) - 1)
    heights = [sum(counts[: first + 1]), *counts[first + 1 :]]
    names = [f"under {size_text(2**first)}"]
    names += [
        f"{size_text(2 ** (bits - 1))} to {size_text(2**bits)}"
        for bits in range(first + 1, len(counts))
    ]
    begin = next(at for at, count in enumerate(heights) if count)
    heights, names = heights[begin:], names[begin:]
    labels = [name.split(" to ")[0].replace("under ", "<") for name in names]
    return {
        "rows": list(zip(names, heights, strict=True)),
        "chart": bars("Files by size", labels, heights),
    }


def _trend(trend: list[SnapshotInfo]) -> Any:
    if len(trend) < 2:
        return None
    figures = [_figures(one) for one in trend]
    return lines(
        "Files of the latest snapshots",
        [str(one.snapshot_id) for one in trend],
        {
            "files": [one.file_count for one in trend],
            "small files": [one.small if one else None for one in figures],
        },
    )
