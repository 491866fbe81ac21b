"""The page of a table: what is wrong with it, and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from windrow_core.models import CompactionRequest, SnapshotInfo
from windrow_core.sizes import WELL_SIZED_BYTES, size_text
from windrow_service.api.authorization import READ_TABLE, GuardedRouter
from windrow_service.api.dashboard.lookups import MAX_LOOKED_AT, looked_up
from windrow_service.api.html.charts import bars, lines
from windrow_service.api.html.rendering import ROOT, page_in_parts
from windrow_service.api.parameters import TableNamePath
from windrow_service.api.services import CachesDep, SnapshotsDep, TablesDep, UpkeepDep
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.planner.upkeep.health import excess_files

router = GuardedRouter(include_in_schema=False)

_SNAPSHOTS = 30
_WORST = 20
# A power of two, so that a snapshot's counts by size tell exactly how many files are smaller.
SMALL_BYTES = WELL_SIZED_BYTES // 2
# Sizes under this share one bar.
_FIRST_BITS = 10


def small_files(info: SnapshotInfo | None) -> int | None:
    """Return how many files of a snapshot are small; None if that is not known."""
    if info is None or info.file_sizes is None:
        return None
    return sum(info.file_sizes[: SMALL_BYTES.bit_length()])


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
        worst=lambda: looked_up(upkeep.find_worst_partitions(name, SMALL_BYTES, _WORST)),
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
    return _Figures(
        small=small_files(info),
        excess=excess_files(info.file_count, info.size_bytes, info.fewest_files),
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
