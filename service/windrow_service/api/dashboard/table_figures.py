"""Figures and pictures of one table, for its pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from windrow_core.cards import count_text
from windrow_core.models import SnapshotInfo
from windrow_core.sizes import WELL_SIZED_BYTES, size_text
from windrow_service.api.html.charts import Cell, Event, bars, heatmap, over_time, timeline
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.planner.upkeep.arrivals import ArrivalLimits, Arrivals, Arrived
from windrow_service.usecases.maintenance.work import WorkEvent
from windrow_service.usecases.ports import Page

# A power of two, so that a snapshot's counts by size tell exactly how many files are smaller.
SMALL_BYTES = WELL_SIZED_BYTES // 2
# All tables have the same bars, from 1 KB to 8 GB, so that their charts can be compared.
_FIRST_BITS, _LAST_BITS = 10, 33
# Every so many bars have a label.
_LABEL_EVERY = 4
# Days and partitions of the picture of arrivals, and the latest rows of its table.
ARRIVAL_LIMITS = ArrivalLimits(days=21, partitions=14, rows=100)
# Days that the picture has at least.
_FEWEST_DAYS = 7
WEEK, TIMELINE = timedelta(days=7), timedelta(days=30)
_KINDS = {"done": "first", "failed": "bad", "gave_up": "gave-up"}


def small_files(info: SnapshotInfo | None) -> int | None:
    """Return how many files of a snapshot are small; None if that is not known."""
    if info is None or info.file_sizes is None:
        return None
    return sum(info.file_sizes[: SMALL_BYTES.bit_length()])


@dataclass(frozen=True, slots=True)
class Costs:
    """What one core needs for a table by the cost model: to open its files, and to read them."""

    open_seconds: float
    read_seconds: float


def costs_of(info: SnapshotInfo | None) -> Costs | None:
    """Return what reading a snapshot costs."""
    if info is None:
        return None
    return Costs(
        open_seconds=info.file_count * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND,
        read_seconds=info.size_bytes / READ_BYTES_PER_SECOND,
    )


def sizes_of(info: SnapshotInfo | None) -> dict[str, Any] | None:
    """Return the files of a snapshot by size, as rows and as a chart."""
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


def trend_of(trend: Sequence[SnapshotInfo], until: datetime) -> Any:
    """Return a chart of the files of snapshots, the oldest first; None if there is only one."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalView:
    """When files came into partitions.

    Attributes:
        chart: Partitions by day, late data marked.
        rows: What came, the latest first; not all of it if `cut`.
        cut: Whether `rows` leaves some out.
        late: What came late, the latest first.
        late_today: Number of partitions into which files came late today.
        late_files: How many files these are.
        names_days: Whether partitions name days, without which nothing is late.
    """

    chart: Any
    rows: Sequence[Arrived]
    cut: bool
    late: Sequence[Arrived]
    late_today: int
    late_files: int
    names_days: bool


def arrival_view(arrivals: Arrivals, today: date) -> ArrivalView:
    """Return what pages show of arrivals; `today` is in UTC, as are the days."""
    of_today = arrivals.days.index(today) if today in arrivals.days else None
    return ArrivalView(
        chart=_arrival_chart(arrivals),
        rows=arrivals.latest,
        cut=arrivals.count > len(arrivals.latest),
        late=arrivals.late,
        late_today=0 if of_today is None else arrivals.late_partitions[of_today],
        late_files=0 if of_today is None else arrivals.late_files[of_today],
        names_days=arrivals.names_days,
    )


def _arrival_chart(arrivals: Arrivals) -> Any:
    if not arrivals.newest:
        return None
    # Days before anything came say nothing.
    first = min(rows[0].day for _, rows in arrivals.newest)
    begin = min(arrivals.days.index(first), max(len(arrivals.days) - _FEWEST_DAYS, 0))
    days = arrivals.days[begin:]
    labels = [f"{day:%d %b}" if at % 3 == 0 else "" for at, day in enumerate(days)]
    names, cells = [], []
    # The last names are at the top.
    for folder, rows in reversed(arrivals.newest):
        by_day = {one.day: _arrival_cell(one) for one in rows}
        names.append(folder or "(no partition)")
        cells.append([by_day.get(day) for day in days])
    return heatmap("Files by partition and the day on which they came", names, labels, cells)


def _arrival_cell(of: Arrived) -> Cell:
    text = f"{of.folder}, {of.day}: {count_text(of.files, 'file')}, {size_text(of.size_bytes)}"
    if of.late_files:
        text += f", {of.late_files:,} late"
    return Cell(of.files, text, of.late_files > 0)


def work_timeline(work: Page[WorkEvent], now: datetime) -> Any:
    """Return a chart of the work of the last 30 days by its cost; None if there was none.

    If there was more than is drawn, the chart begins with the first piece that is.
    """
    if not work:
        return None
    since = work[-1].at if work.more else now - TIMELINE
    events = [
        Event(
            one.at,
            one.core_seconds,
            f"{one.at:%Y-%m-%d %H:%M} UTC, {one.table}: {one.text}",
            _KINDS[one.state],
        )
        for one in work
    ]
    title = f"Core seconds of maintenance since {since:%Y-%m-%d}"
    return timeline(title, events, since, now)
