"""SQL run by Windrow and by Spark's own reader in turns: times, files and rows."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from common import Result

from windrow.client import Client
from windrow_demo.measuring import settings
from windrow_demo.sides import SPARK_DEFAULT, SPARK_TUNED, WINDROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.spark import Scan

PEERS = (SPARK_DEFAULT, SPARK_TUNED)
_NO_SLOWER, _NO_SLOWER_S = 1.05, 0.1
_TOLERANCE = 1e-9

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query, whose answer is the same with every reader.

    Attributes:
        name: Name in options.
        sql: Its text.
        any_rows: Whether it may answer with any rows of the table, so that only their number counts.
    """

    name: str
    sql: str
    any_rows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFolder:
    """A folder of Parquet files, and what both sides are told about it.

    Attributes:
        name: The table's name in SQL.
        folder: Its folder.
        columns: Names and Spark types of all columns; those of partitions last.
        partition_columns: Names and types of the columns in names of folders.
    """

    name: str
    folder: Path
    columns: Mapping[str, str]
    partition_columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table under the name that queries use, as each side reads it.

    Attributes:
        name: Name of the view.
        open: Opens it for a side, `WINDROW` or another; Spark then lists its files.
        by_spark: The table as Spark reads it, opened before.
        by_windrow: The table as Windrow reads it, opened before.
    """

    name: str
    open: Callable[[str], DataFrame]
    by_spark: DataFrame
    by_windrow: DataFrame

    def is_named_in(self, query: SqlQuery) -> bool:
        """Return whether a query reads it."""
        return re.search(rf"\b{self.name}\b", query.sql) is not None


@dataclass(frozen=True, slots=True)
class FileCounts:
    """How many files a query planned to read, and read; Spark only counts the former."""

    planned: int
    read: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A query on all sides.

    Attributes:
        query: Name of the query.
        seconds: Median seconds of each side; Windrow's include planning.
        files: Files of each side, in the last run.
        rows: Number of rows of the answer.
        difference: How Windrow's answer differs from Spark's, or why there is none; empty if equal.
    """

    query: str
    seconds: Mapping[str, float]
    files: Mapping[str, FileCounts]
    rows: int
    difference: str = ""

    @property
    def better_s(self) -> float:
        """Seconds of the better of Spark's two settings."""
        return min(self.seconds[side] for side in PEERS)

    @property
    def ratio(self) -> float:
        """How many times as fast as the better Spark Windrow is; 0 if it failed."""
        return self.better_s / self.seconds[WINDROW] if WINDROW in self.seconds else 0.0

    @property
    def is_slower(self) -> bool:
        """Whether Windrow takes longer than what counts as equal."""
        limit = max(_NO_SLOWER * self.better_s, self.better_s + _NO_SLOWER_S)
        return self.seconds.get(WINDROW, math.inf) > limit

    @property
    def has_more_files(self) -> bool:
        """Whether Windrow plans files that Spark does not."""
        fewest = min(self.files[side].planned for side in PEERS)
        return WINDROW in self.files and self.files[WINDROW].planned > fewest

    def __str__(self) -> str:
        """What is shown as soon as the query has run."""
        times = ", ".join(f"{side} {time_s:.2f} s" for side, time_s in self.seconds.items())
        return f"{self.query}: {times}; {self.difference or 'rows equal'}"

    def results(self) -> Iterator[Result]:
        """Yield the times in the form that all benchmarks share."""
        for peer in PEERS if WINDROW in self.seconds else ():
            yield Result.in_seconds(
                self.query, "warm read", self.seconds[WINDROW], peer, self.seconds[peer]
            )


def registered(spark: SparkSession, client: Client, schema: str, folder: TableFolder) -> SqlTable:
    """Return a table after registering it with the coordinator and having Spark list it.

    Args:
        spark: A session.
        client: A client of the coordinator.
        schema: First part of the table's name at the coordinator.
        folder: The table.
    """
    table = f"{schema}.{folder.name}"
    data = {
        name: kind for name, kind in folder.columns.items() if name not in folder.partition_columns
    }
    client.register_table(
        table,
        str(folder.folder),
        columns=data,
        partition_columns=folder.partition_columns or None,
    )
    client.refresh(table)
    columns = ", ".join(f"`{name}` {kind}" for name, kind in folder.columns.items())

    def opened(side: str) -> DataFrame:
        if side == WINDROW:
            return client.read(spark, table)
        return spark.read.schema(columns).parquet(str(folder.folder))

    return SqlTable(folder.name, opened, opened(SPARK_DEFAULT), opened(WINDROW))


def compare(
    spark: SparkSession,
    tables: Sequence[SqlTable],
    query: SqlQuery,
    *,
    runs: int,
    warm: bool,
    first: int = 0,
    opening: bool = False,
) -> Comparison:
    """Run a query on all sides in turns, and compare their answers.

    Args:
        spark: The session of the tables.
        tables: Tables that the query may name.
        query: The query.
        runs: Number of timed rounds; each begins with another side.
        warm: Whether to run an untimed round first.
        first: Number of the side that begins the first round.
        opening: Whether each run opens the tables that it names, as a job does that reads a path.
    """
    seconds: dict[str, list[float]] = {}
    files: dict[str, FileCounts] = {}
    answers: dict[str, Rows] = {}
    sides, failure = [*PEERS, WINDROW], ""
    for round_ in range(runs + warm):
        begin = (first + round_) % len(sides)
        for side in [*sides[begin:], *sides[:begin]]:
            if side == WINDROW and failure:
                continue
            try:
                time_s, files[side], answers[side] = _run(
                    spark, tables, query, side, opening=opening
                )
            except Exception as error:
                if side != WINDROW:
                    raise
                failure = f"failed: {str(error).strip().partition(chr(10))[0]}"
                continue
            if round_ >= warm:
                seconds.setdefault(side, []).append(time_s)
    if failure:
        seconds.pop(WINDROW, None)
    rows = answers[SPARK_DEFAULT]
    return Comparison(
        query=query.name,
        seconds={side: median(times) for side, times in seconds.items()},
        files=files,
        rows=len(rows),
        difference=failure or difference(rows, answers[WINDROW], any_rows=query.any_rows),
    )


def difference(expected: Rows, rows: Rows, *, any_rows: bool = False) -> str:
    """Return how rows differ from what was expected, whatever their order; empty if they do not.

    Floats may differ by a relative 1e-9, since sums depend on the order of their terms.
    """
    if len(rows) != len(expected):
        return f"{len(rows):,} rows instead of {len(expected):,}"
    if any_rows:
        return ""
    for wanted, row in zip(sorted(expected, key=_order), sorted(rows, key=_order), strict=True):
        if len(wanted) != len(row) or not all(map(_equal, wanted, row)):
            return f"{row} instead of {wanted}"
    return ""


def _order(row: tuple[Any, ...]) -> tuple[str, list[float]]:
    """Sort by what is exact first: floats that differ in their last digits stay in place."""
    exact = repr([None if isinstance(value, float) else value for value in row])
    return exact, [value for value in row if isinstance(value, float)]


def _equal(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, float) and isinstance(value, float):
        both_nan = math.isnan(wanted) and math.isnan(value)
        return both_nan or math.isclose(wanted, value, rel_tol=_TOLERANCE)
    return type(wanted) is type(value) and bool(wanted == value)


def _run(
    spark: SparkSession,
    tables: Sequence[SqlTable],
    query: SqlQuery,
    side: str,
    *,
    opening: bool,
) -> tuple[float, FileCounts, Rows]:
    from windrow.spark import recent_scans

    for table in tables:
        rows = table.by_windrow if side == WINDROW else table.by_spark
        rows.createOrReplaceTempView(table.name)
    latest = recent_scans()[:1]
    conf = {"spark.sql.files.openCostInBytes": "0"} if side == SPARK_TUNED else {}
    with settings(spark, conf):
        began = time.perf_counter()
        for table in tables:
            if opening and table.is_named_in(query):
                table.open(side).createOrReplaceTempView(table.name)
        answer = spark.sql(query.sql)
        collected = answer.collect()
        time_s = time.perf_counter() - began
        if side == WINDROW:
            counts = _counts_of_scans(list(takewhile(_is_not(latest), recent_scans())))
        else:
            counts = _counts_of_spark(answer)
    return time_s, counts, [tuple(row) for row in collected]


def _is_not(scans: Sequence[Scan]) -> Callable[[Scan], bool]:
    return lambda scan: all(scan is not one for one in scans)


def _counts_of_scans(scans: Sequence[Scan]) -> FileCounts:
    return FileCounts(
        sum(scan.plan.summary.files_planned for scan in scans),
        sum(scan.read.files for scan in scans),
    )


def _counts_of_spark(answer: DataFrame) -> FileCounts:
    """Return the sum of the metric of all scans of a query that has run; each counts once."""
    plan = answer._jdf.queryExecution().executedPlan()
    plans = [plan]
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        # Stages may have run and then been left out, because they had no rows.
        plans += _elements(plan.context().stageCache().values().toSeq())
    counts = {metric.id(): metric.value() for one in plans for metric in _files_metrics(one)}
    return FileCounts(sum(counts.values()))


def _files_metrics(plan: Any) -> Iterator[Any]:
    """Yield the number of files of each of Spark's scans below a node of a plan."""
    name = plan.getClass().getSimpleName()
    if name.startswith("Reused"):
        return
    if name == "FileSourceScanExec":
        yield plan.metrics().apply("numFiles")
    children = [*_elements(plan.children()), *_elements(plan.subqueries())]
    if name == "AdaptiveSparkPlanExec":
        children.append(plan.executedPlan())
    elif name.endswith("QueryStageExec"):
        children.append(plan.plan())
    for child in children:
        yield from _files_metrics(child)


def _elements(seq: Any) -> Iterator[Any]:
    return (seq.apply(at) for at in range(seq.size()))


def figures_table(comparisons: Sequence[Comparison]) -> list[str]:
    """Return times and files as Markdown, with the queries where Windrow gains least first."""
    lines = [
        "| query | rows | Windrow | Spark, defaults | Spark, `openCostInBytes=0` "
        "| files planned | read | Spark's files | compared with the better Spark |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(comparisons, key=lambda one: one.ratio):
        cells = [f"`{one.query}`", f"{one.rows:,}"]
        cells += [
            f"{one.seconds[side]:.2f} s" if side in one.seconds else ""
            for side in (WINDROW, *PEERS)
        ]
        ours = one.files.get(WINDROW, FileCounts(0, 0))
        cells += [f"{ours.planned:,}", f"{ours.read:,}", f"{_files_of_spark(one):,}"]
        marks = {
            "rows differ": bool(one.difference),
            "slower": one.is_slower,
            "more files": one.has_more_files,
        }
        faults = ", ".join(mark for mark, holds in marks.items() if holds)
        cells.append(f"{one.ratio:.2f}x" + (f" ({faults})" if faults else ""))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _files_of_spark(one: Comparison) -> int:
    return min(one.files[side].planned for side in PEERS)


def verdicts(comparisons: Sequence[Comparison]) -> list[str]:
    """Return for each goal how many queries reach it, and which do not."""

    def verdict(what: str, losers: Sequence[Comparison]) -> str:
        reached = f"{what}: {len(comparisons) - len(losers)} of {len(comparisons)} queries"
        names = ", ".join(one.query for one in losers)
        return f"{reached}; not {names}" if losers else reached

    totals = {
        side: sum(one.seconds.get(side, 0.0) for one in comparisons) for side in (WINDROW, *PEERS)
    }
    best_s = sum(one.better_s for one in comparisons)
    ratios = sorted(one.ratio for one in comparisons)
    return [
        verdict("rows equal to Spark's", [one for one in comparisons if one.difference]),
        verdict("no more files than Spark", [one for one in comparisons if one.has_more_files]),
        verdict(
            f"no slower than {_NO_SLOWER} x the better Spark or by {_NO_SLOWER_S * 1_000:.0f} ms",
            [one for one in comparisons if one.is_slower],
        ),
        f"median compared with the better Spark: {median(ratios):.2f}x, from {ratios[0]:.2f}x to "
        f"{ratios[-1]:.2f}x",
        f"all queries: Windrow {totals[WINDROW]:.1f} s, Spark with defaults "
        f"{totals[SPARK_DEFAULT]:.1f} s, with `openCostInBytes=0` {totals[SPARK_TUNED]:.1f} s, the better for each "
        f"{best_s:.1f} s",
    ]
