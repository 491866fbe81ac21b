"""Timing the same queries on several sides of one Spark session, and counting their tasks."""

from __future__ import annotations

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
    """A question to a table.

    Attributes:
        name: For programs.
        title: For people.
        columns: What it needs of the table.
        ask: Turns the table into the answer; gives the same rows on every side, to the bit.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    ask: Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One way to read the table.

    Attributes:
        name: For programs.
        title: For people.
        open: Returns the table with these columns, or more; what it costs is part of the time.
        conf: Settings of the session while this side has its turn.
    """

    name: str
    title: str
    open: Callable[[tuple[str, ...]], DataFrame]
    conf: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one query cost on one side.

    Attributes:
        side: Name of the side.
        query: Name of the query.
        seconds: Of each timed run, opening included.
        open_seconds: The part of each that went by before there was a DataFrame.
        task_count: Tasks that Spark ran in the last timed run.
        answer: The rows of the answer, sorted.
    """

    side: str
    query: str
    seconds: tuple[float, ...]
    open_seconds: tuple[float, ...]
    task_count: int
    answer: tuple[tuple[Any, ...], ...]

    @property
    def median_s(self) -> float:
        """The middle of the timed runs, in seconds."""
        return median(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What one side says the whole table is: equal for equal rows in any order.

    Attributes:
        columns: Names and Spark types, by name.
        row_count: Rows.
        hash_sum: Sum of a 64-bit hash of each row; nulls count by their column.
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
    on_run: Callable[[], None],
    warm: bool = True,
) -> list[Timing]:
    """Run every query on every side, side after side and round after round.

    Args:
        spark: The session of all sides.
        sides: Who is compared.
        queries: What is asked.
        runs: Timed rounds.
        on_run: Called after each run, timed or not.
        warm: Whether an untimed round goes first.
    """
    kept: dict[tuple[str, str], list[_Run]] = {}
    for round_ in range(runs + warm):
        for query in queries:
            for side in sides:
                run = _run(spark, side, query)
                if round_ >= warm:
                    kept.setdefault((side.name, query.name), []).append(run)
                on_run()
    return [
        Timing(
            side=side,
            query=query,
            seconds=tuple(run.seconds for run in found),
            open_seconds=tuple(run.open_seconds for run in found),
            task_count=found[-1].task_count,
            answer=found[-1].rows,
        )
        for (side, query), found in kept.items()
    ]


def fingerprint(spark: SparkSession, side: Side, columns: Sequence[str]) -> Fingerprint:
    """Read all of these columns on one side and sum up what it returns."""
    from pyspark.sql import functions as F

    names = sorted(columns)
    with _settings(spark, side.conf):
        table = side.open(tuple(names)).select(*names)
        # xxhash64 passes over nulls, so that (null, 1) and (1, null) would look alike.
        row_hash = F.xxhash64(*names, *(F.col(name).isNull() for name in names))
        found = table.agg(
            F.count(F.lit(1)).alias("rows"),
            F.sum(row_hash.cast("decimal(38,0)")).alias("hashes"),
        ).collect()[0]
    return Fingerprint(
        columns=tuple((field.name, field.dataType.simpleString()) for field in table.schema),
        row_count=found["rows"],
        hash_sum=found["hashes"] if found["hashes"] is not None else Decimal(0),
    )


def timed(action: Callable[[], _T]) -> tuple[_T, float]:
    """Return what an action returns, and the seconds that it took."""
    began = time.perf_counter()
    result = action()
    return result, time.perf_counter() - began


def _run(spark: SparkSession, side: Side, query: Query) -> _Run:
    with _settings(spark, side.conf), _counting_tasks(spark) as task_count:
        began = time.perf_counter()
        table = side.open(query.columns)
        opened = time.perf_counter()
        rows = query.ask(table).collect()
        ended = time.perf_counter()
    return _Run(
        seconds=ended - began,
        open_seconds=opened - began,
        task_count=task_count(),
        rows=tuple(sorted((tuple(row) for row in rows), key=repr)),
    )


@contextmanager
def _settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
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


@contextmanager
def _counting_tasks(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """Give the jobs of the body a label; the yielded function counts their completed tasks."""
    context = spark.sparkContext
    label = f"windrow-run-{next(_labels)}"
    context.setJobGroup(label, label)
    try:
        yield lambda: _completed_tasks(context.statusTracker(), label)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def _completed_tasks(tracker: Any, label: str) -> int:
    # Spark's record of what ran follows the events at a short distance.
    give_up_at = time.monotonic() + _COUNT_TIMEOUT_S
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(label)]
    while time.monotonic() < give_up_at and not all(job and job.status in _ENDED for job in jobs):
        time.sleep(0.01)
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(label)]
    stages = {stage for job in jobs if job for stage in job.stageIds}
    found = [tracker.getStageInfo(stage) for stage in stages]
    return sum(stage.numCompletedTasks for stage in found if stage)
