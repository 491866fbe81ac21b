"""Why a read took as long as it did: what its plan and its driver's report say, as causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow_core.cards import count_text
from windrow_core.models import PastPlan, PlanSummary, ScanReport
from windrow_core.sizes import size_text
from windrow_service.planner.policy import (
    DEFAULT_OPEN_FILE_COST,
    MIB,
    READ_BYTES_PER_SECOND,
    TASK_COST,
)

CauseKind: TypeAlias = Literal[
    "planning", "single_files", "nothing_pruned", "no_condition", "small_files", "cold_cache",
    "slow_store", "uneven", "elsewhere",
]  # fmt: skip

# A cause that explains less than this part of the time is not worth a sentence.
_LEAST_PART = 0.05
_LEAST_SECONDS = 0.1
_MOST = 4
# What reading all of a table might have been spared, if its condition had left out files.
_SPARED = 0.9
# Requests of one task that wait for a store at the same time; see `executor/prefetching.py`.
_SIDE_BY_SIDE = 16
# Files are many from here on, and small below this mean size.
_MANY_FILES, _SMALL_MEAN = 100, MIB


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a read took long.

    Attributes:
        kind: What sort of reason.
        seconds: How much shorter the read might have been without it; an estimate.
        text: What was the case, in a sentence.
        remedy: What to do about it, in a sentence.
    """

    kind: CauseKind
    seconds: float
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Durations:
    """How long a read took or was predicted to take.

    Attributes:
        planning: Seconds until the driver had the plan.
        tasks: Seconds of all tasks together.
        slots: Number of tasks that run at the same time.
        query: Seconds of the query after that; predicted for reading alone if nobody reported it.
    """

    planning: float
    tasks: float
    slots: int
    query: float

    @property
    def reading(self) -> float:
        """Seconds that reading takes if all slots are busy until the end."""
        return self.tasks / max(self.slots, 1)

    @property
    def total(self) -> float:
        """Seconds from the request for a plan until the end."""
        return self.planning + self.query


def durations_of(plan: PastPlan) -> Durations | None:
    """Return how long the read of a plan took; None if nothing is known about it."""
    summary, scan = plan.summary, plan.scan
    if summary is None or plan.options is None:
        return None
    slots = plan.options.parallelism
    if scan is not None:
        tasks = scan.groups.seconds + scan.native.seconds
        return Durations(scan.planning_seconds, tasks, slots, scan.seconds)
    if summary.slowest_slot_seconds is None or summary.all_tasks_seconds is None:
        return None
    planning = summary.planning_seconds if plan.seconds is None else plan.seconds
    return Durations(planning, summary.all_tasks_seconds, slots, summary.slowest_slot_seconds)


def causes_of(plan: PastPlan) -> Sequence[Cause]:
    """Return why the read of a plan took long, the weightiest cause first; often none.

    Args:
        plan: A plan, with its driver's report if there is one; else causes follow from what was
            predicted.
    """
    took = durations_of(plan)
    if took is None or plan.summary is None:
        return []
    least = max(_LEAST_PART * took.total, _LEAST_SECONDS)
    causes = [one for one in _causes(plan, plan.summary, plan.scan, took) if one.seconds >= least]
    return sorted(causes, key=lambda one: -one.seconds)[:_MOST]


def _causes(
    plan: PastPlan, summary: PlanSummary, scan: ScanReport | None, took: Durations
) -> Iterator[Cause]:
    yield from _of_planning(took)
    yield from _of_groups(plan, summary, took)
    yield from _of_conditions(plan, summary, took)
    yield from _of_files(plan, summary, took)
    yield from _of_caches(summary, scan, took)
    if scan is not None:
        yield from _of_store(scan, took)
        yield from _of_query(took)
    elif summary.slowest_slot_seconds is not None:
        yield from _of_balance(summary, took)


def _of_planning(took: Durations) -> Iterator[Cause]:
    yield Cause(
        "planning",
        took.planning,
        f"The query waited {_seconds(took.planning)} for its plan",
        "the times of planning, below, show in which phase; a table that is refreshed first waits "
        "for its storage",
    )


def _of_groups(plan: PastPlan, summary: PlanSummary, took: Durations) -> Iterator[Cause]:
    assert plan.options is not None
    alone = min(summary.cacheable_files, summary.group_count)
    if plan.options.cached_splits != "separate" or alone <= 2 * took.slots:
        return
    yield Cause(
        "single_files",
        alone * TASK_COST / READ_BYTES_PER_SECOND / max(took.slots, 1),
        f"{alone:,} of {count_text(summary.group_count, 'group')} hold one file each, since "
        "`cached_splits=separate` gives every cacheable file a task of its own",
        "set `cached_splits=by_worker`, which joins the files that one worker holds",
    )


def _of_conditions(plan: PastPlan, summary: PlanSummary, took: Durations) -> Iterator[Cause]:
    total = summary.files_total
    if total < 2 or summary.files_planned < total or plan.limit is not None:
        return
    if plan.filter is not None:
        yield Cause(
            "nothing_pruned",
            _SPARED * took.reading,
            f"The condition `{plan.filter[:300]}` left out nothing: all {total:,} files are read",
            "compare partition columns themselves with constants, rather than what a function makes "
            "of them, or sort the files by the columns that are compared",
        )
    elif plan.partition_count is None:
        yield Cause(
            "no_condition",
            _SPARED * took.reading / 2,
            f"The query has no condition that a plan can use, so all {total:,} files are read",
            "add a condition on a partition column, if not all rows are needed",
        )


def _of_files(plan: PastPlan, summary: PlanSummary, took: Durations) -> Iterator[Cause]:
    assert plan.options is not None
    # Rows that come from packs open no file.
    files = summary.files_planned - (summary.in_packs.files if summary.in_packs else 0)
    mean = summary.size_bytes / max(summary.files_planned, 1)
    if files < _MANY_FILES or mean >= _SMALL_MEAN:
        return
    opening = files * (plan.options.open_file_cost or DEFAULT_OPEN_FILE_COST)
    yield Cause(
        "small_files",
        took.reading * opening / max(opening + summary.size_bytes, 1),
        f"{files:,} files of {size_text(mean)} on average are opened, which is "
        f"{100 * opening / max(opening + summary.size_bytes, 1):.0f} % of the work",
        "compact the table",
    )


def _of_caches(summary: PlanSummary, scan: ScanReport | None, took: Durations) -> Iterator[Cause]:
    cacheable = summary.cacheable_files
    hits = summary.cached_files if scan is None else scan.cache_hits
    if not cacheable or 2 * hits >= cacheable:
        return
    yield Cause(
        "cold_cache",
        took.reading * min((cacheable - hits) / max(summary.files_planned, 1), 1.0),
        f"Only {hits:,} of {count_text(cacheable, 'cacheable file')} "
        + ("came from a cache" if scan is not None else "lay in a cache when it was planned"),
        "the first read fills the caches, and so does `windrow cache warm` before it; look whether "
        "the workers have room for them",
    )


def _of_store(scan: ScanReport, took: Durations) -> Iterator[Cause]:
    yield Cause(
        "slow_store",
        min(scan.waited_seconds / _SIDE_BY_SIDE / max(took.slots, 1), took.reading),
        f"The object store made requests wait {_seconds(scan.waited_seconds)} in all, and "
        "repeated requests "
        f"were {scan.retries:,} of {scan.requests:,}",
        "read fewer and larger files, or set `requests_per_second` to what the store allows",
    )


def _of_query(took: Durations) -> Iterator[Cause]:
    yield Cause(
        "elsewhere",
        took.query - took.reading,
        f"Reading took {_seconds(took.tasks)} of all tasks together, {_seconds(took.reading)} on "
        f"{count_text(took.slots, 'slot')}; the rest of {_seconds(took.query)} the query spent elsewhere",
        "look at its other stages in Spark's UI, and whether it waited for free slots",
    )


def _of_balance(summary: PlanSummary, took: Durations) -> Iterator[Cause]:
    assert summary.slowest_slot_seconds is not None
    yield Cause(
        "uneven",
        summary.slowest_slot_seconds - took.reading,
        f"{count_text(summary.group_count, 'group')} keep {took.slots:,} "
        f"slots busy unevenly: the last ends after {_seconds(summary.slowest_slot_seconds)}, and "
        f"all could end after {_seconds(took.reading)}",
        "a lower `max_split_size` makes more groups, if the files are large",
    )


def _seconds(value: float) -> str:
    if value < 1:
        return f"{1_000 * value:,.0f} ms"
    return f"{value:,.1f} s" if value < 120 else f"{value / 60:,.0f} min"
