"""Figures and pictures of one table, for its pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from windrow_core.cards import count_text
from windrow_core.models import MaintenanceReceipt, SnapshotInfo
from windrow_core.sizes import WELL_SIZED_BYTES, size_text
from windrow_service.api.html.charts import Cell, Event, bars, heatmap, over_time, timeline
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.planner.splits import Ints
from windrow_service.planner.upkeep.arrivals import Arrivals

# A power of two, so that a snapshot's counts by size tell exactly how many files are smaller.
SMALL_BYTES = WELL_SIZED_BYTES // 2
# All tables have the same bars, from 1 KB to 8 GB, so that their charts can be compared.
_FIRST_BITS, _LAST_BITS = 10, 33
# Every so many bars have a label.
_LABEL_EVERY = 4
# Days and partitions of the picture of arrivals; its table has the latest rows.
ARRIVAL_DAYS, _FEWEST_DAYS, _PARTITIONS, _ROWS = 21, 7, 14, 100
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
class Arrived:
    """Files that came into a partition on one day."""

    folder: str
    day: date
    files: int
    size_bytes: int
    late_files: int


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
    of_today = arrivals.late_files[:, [day == today for day in arrivals.days]]
    return ArrivalView(
        chart=_arrival_chart(arrivals),
        rows=_arrived(arrivals, arrivals.files),
        cut=int(np.count_nonzero(arrivals.files)) > _ROWS,
        late=_arrived(arrivals, arrivals.late_files),
        late_today=int(np.count_nonzero(of_today)),
        late_files=int(of_today.sum()),
        names_days=arrivals.names_days,
    )


def _arrived(arrivals: Arrivals, counts: Ints) -> list[Arrived]:
    folder, day = np.nonzero(counts)
    latest = np.lexsort((-folder, -day))[:_ROWS]
    return [
        Arrived(
            folder=arrivals.folders[row],
            day=arrivals.days[column],
            files=int(arrivals.files[row, column]),
            size_bytes=int(arrivals.size_bytes[row, column]),
            late_files=int(arrivals.late_files[row, column]),
        )
        for row, column in zip(folder[latest].tolist(), day[latest].tolist(), strict=True)
    ]


def _arrival_chart(arrivals: Arrivals) -> Any:
    if not arrivals.folders:
        return None
    has_files = arrivals.files > 0
    latest = np.where(has_files, np.arange(len(arrivals.days)), -1).max(axis=1)
    # The partitions into which files came last, those with the last names first.
    newest = np.lexsort((-np.arange(len(latest)), -latest))[:_PARTITIONS]
    rows = sorted(newest.tolist(), reverse=True)
    names = [arrivals.folders[row] or "(no partition)" for row in rows]

    def cell(row: int, column: int) -> Cell | None:
        count = int(arrivals.files[row, column])
        if not count:
            return None
        late = int(arrivals.late_files[row, column])
        size = size_text(int(arrivals.size_bytes[row, column]))
        text = (
            f"{arrivals.folders[row]}, {arrivals.days[column]}: {count_text(count, 'file')}, {size}"
        )
        return Cell(count, f"{text}, {late:,} late" if late else text, late > 0)

    # Days before anything came say nothing.
    begin = min(int(np.argmax(has_files.any(axis=0))), len(arrivals.days) - _FEWEST_DAYS)
    columns = range(begin, len(arrivals.days))
    days = arrivals.days[begin:]
    labels = [f"{day:%d %b}" if at % 3 == 0 else "" for at, day in enumerate(days)]
    cells = [[cell(row, column) for column in columns] for row in rows]
    return heatmap("Files by partition and the day on which they came", names, labels, cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekOfWork:
    """What maintenance of a table did and cost in seven days."""

    done: int
    failed: int
    core_seconds: float
    size_bytes: int


def week_of(receipts: Iterable[MaintenanceReceipt], now: datetime) -> WeekOfWork:
    """Add up the work of the last seven days."""
    recent = [one for one in receipts if one.last_at > now - WEEK]
    outcomes = [one.outcome for one in recent if one.outcome is not None]
    return WeekOfWork(
        done=sum(one.state == "done" for one in recent),
        failed=sum(one.state == "failed" for one in recent),
        core_seconds=sum(one.core_seconds for one in outcomes),
        size_bytes=sum(one.bytes_before for one in outcomes),
    )


def work_timeline(receipts: Iterable[MaintenanceReceipt], now: datetime) -> Any:
    """Return a chart of the work of the last 30 days by its cost; None if there was none."""
    since = now - TIMELINE
    events = [
        Event(
            one.last_at,
            one.outcome.core_seconds if one.outcome else 0.0,
            f"{one.last_at:%Y-%m-%d %H:%M} UTC, {one.table}: {one.text}",
            _KINDS[one.state],
        )
        for one in receipts
        if one.last_at > since and one.state in _KINDS
    ]
    if not events:
        return None
    return timeline("Core seconds of maintenance, the last 30 days", events, since, now)
