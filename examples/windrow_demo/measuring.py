"""Timing queries in one Spark session on several sides, and counting their tasks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ENDED = ("SUCCEEDED", "FAILED")
_COUNT_TIMEOUT_S = 10.0
_labels = count()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query on the table.

    Attributes:
        name: Name for programs.
        title: Title for people.
        columns: Columns that it reads.
        ask: Turns the table into the answer, whose rows must be bit-identical on every side.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    ask: Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One way to read the table.

    Attributes:
        name: Name for programs.
        title: Title for people.
        open: Returns the table with at least these columns; its time is included in the timing.
        conf: Spark settings for this side's runs.
    """

    name: str
    title: str
    open: Callable[[tuple[str, ...]], DataFrame]
    conf: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times and the answer of one query on one side.

    Attributes:
        side: Name of the side.
        query: Name of the query.
        seconds: Seconds of each timed run, including opening.
        open_seconds: Seconds of each run until the DataFrame was open.
        task_count: Number of tasks that Spark ran in the last timed run.
        answer: Sorted rows of the answer.
    """

    side: str
    query: str
    seconds: tuple[float, ...]
    open_seconds: tuple[float, ...]
    task_count: int
    answer: tuple[tuple[Any, ...], ...]

    @property
    def median_s(self) -> float:
        """Median seconds of the timed runs."""
        return median(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A fingerprint of the whole table as one side reads it; the order of rows does not matter.

    Attributes:
        columns: Names and Spark types, sorted by name.
        row_count: Number of rows.
        hash_sum: Sum of a 64-bit hash of each row, which includes the positions of nulls.
    """

    columns: tuple[tuple[str, str], ...]
    row_count: int
    hash_sum: Decimal


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    open_seconds: float
    task_count: int
    rows: tuple[tuple[Any, ...], ...]


def time_in_turns(
    spark: SparkSession,
    sides: Sequence[Side],
    queries: Sequence[Query],
    *,
    runs: int,
    on_run: Callable[[Side, Query, float], None],
    warm: bool = True,
    end_by: float = math.inf,
) -> list[Timing]:
    """Run every query on every side in several rounds; the sides take turns.

    Args:
        spark: The session that all sides share.
        sides: The sides to compare.
        queries: The queries to run.
        runs: Number of timed rounds.
        on_run: Called with the seconds of each run, also in the untimed round.
        warm: Whether to run an untimed round first.
        end_by: No round after the first timed one begins that would end later, at the pace of the
            round before it; as `time.perf_counter` counts.
    """
    runs_of: dict[tuple[str, str], list[_Run]] = {}
    for round_ in range(runs + warm):
        began = time.perf_counter()
        for query in queries:
            for side in sides:
                run = _run(spark, side, query)
                if round_ >= warm:
                    runs_of.setdefault((side.name, query.name), []).append(run)
                on_run(side, query, run.seconds)
        now = time.perf_counter()
        if round_ >= warm and now + (now - began) > end_by:
            break
    return [
        Timing(
            side=side,
            query=query,
            seconds=tuple(run.seconds for run in side_runs),
            open_seconds=tuple(run.open_seconds for run in side_runs),
            task_count=side_runs[-1].task_count,
            answer=side_runs[-1].rows,
        )
        for (side, query), side_runs in runs_of.items()
    ]


def fingerprint(spark: SparkSession, side: Side, columns: Sequence[str]) -> Fingerprint:
    """Read these columns of all rows on one side and return their fingerprint."""
    from pyspark.sql import functions as F

    names = sorted(columns)
    with settings(spark, side.conf):
        table = side.open(tuple(names)).select(*names)
        # xxhash64 skips nulls: without their positions, (null, 1) and (1, null) would be equal.
        row_hash = F.xxhash64(*names, *(F.col(name).isNull() for name in names))
        sums = table.agg(
            F.count(F.lit(1)).alias("rows"),
            F.sum(row_hash.cast("decimal(38,0)")).alias("hashes"),
        ).collect()[0]
    return Fingerprint(
        columns=tuple((field.name, field.dataType.simpleString()) for field in table.schema),
        row_count=sums["rows"],
        hash_sum=sums["hashes"] if sums["hashes"] is not None else Decimal(0),
    )


def timed(action: Callable[[], _T]) -> tuple[_T, float]:
    """Return an action's result and its duration in seconds."""
    began = time.perf_counter()
    result = action()
    return result, time.perf_counter() - began


@contextmanager
def settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session, and set them back at the end of the block."""
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _run(spark: SparkSession, side: Side, query: Query) -> _Run:
    with settings(spark, side.conf), _counting_tasks(spark) as task_count:
        start_at = time.perf_counter()
        table = side.open(query.columns)
        open_at = time.perf_counter()
        rows = query.ask(table).collect()
        end_at = time.perf_counter()
    return _Run(
        seconds=end_at - start_at,
        open_seconds=open_at - start_at,
        task_count=task_count(),
        rows=tuple(sorted((tuple(row) for row in rows), key=repr)),
    )


@contextmanager
def _counting_tasks(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """Label the jobs of the block; the yielded function counts their completed tasks."""
    context = spark.sparkContext
    label = f"windrow-run-{next(_labels)}"
    context.setJobGroup(label, label)
    try:
        yield lambda: _completed_tasks(context.statusTracker(), label)
    finally:
        # Spark would describe later jobs by it, too.
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)


def _completed_tasks(tracker: Any, label: str) -> int:
    # Spark's status store lags slightly behind the events.
    give_up_at = time.monotonic() + _COUNT_TIMEOUT_S
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(label)]
    while time.monotonic() < give_up_at and not all(job and job.status in _ENDED for job in jobs):
        time.sleep(0.01)
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(label)]
    stages = {stage for job in jobs if job for stage in job.stageIds}
    infos = [tracker.getStageInfo(stage) for stage in stages]
    return sum(stage.numCompletedTasks for stage in infos if stage)
