"""Measure the cost of rewriting small files, and compare it with the compaction plan's estimate.

    python benchmarks/compaction_cost.py [--quick] [--json FILE]

Tables of files of various sizes are compacted to files of 64 MB on warm Spark. Core seconds are the
CPU time of driver, JVM, Python workers and coordinator together (`cpu.py`, Linux). The fixed cost
of a job is measured first and subtracted, and so is the plan's estimate for reading; then
`core seconds = a * bytes + b * new files` is fitted to the rest. The planner's
`REWRITE_BYTES_PER_SECOND` is 1 / a, and its `NEW_FILE_SECONDS` is b.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from common import Result, arguments, console, write_json
from cpu import tree_cpu_seconds
from fitting import fitted
from rich import box
from rich.table import Table as RichTable
from sessions import spark_and_client
from tables import KIB, MIB, TableSpec, generate, table_of

from windrow.client import Client
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_core.sizes import size_text
from windrow_jobs.compact import compact
from windrow_service.planner.upkeep.compaction import NEW_FILE_SECONDS, REWRITE_BYTES_PER_SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "compaction_cost"
LITTLE = table_of(10, 16 * KIB)
TABLES = (
    table_of(10_000, 4 * KIB),
    table_of(20_000, 4 * KIB),
    table_of(5_000, 16 * KIB),
    table_of(2_000, 64 * KIB),
    table_of(500, 512 * KIB),
    table_of(200, MIB),
    table_of(60, 4 * MIB),
)
# Large enough to stand out from the noise between two jobs.
QUICK_TABLES = (table_of(1_000, 4 * KIB), table_of(20, MIB))
# Rewrite everything that can become fewer files, whether it pays or not.
EVERYTHING = {"target_file_size": 64 * MIB, "worth_reads": 10**9, "min_files": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """One table that was compacted.

    Attributes:
        table: Title of the table.
        size_bytes: Size of its small files.
        planned_files: Planned number of new files.
        planned_s: Core seconds estimated by the plan.
        measured_s: Measured core seconds.
    """

    table: str
    size_bytes: int
    planned_files: int
    planned_s: float
    measured_s: float

    @property
    def reading_s(self) -> float:
        """Core seconds of reading, estimated by the plan."""
        written_s = self.planned_files * NEW_FILE_SECONDS
        return self.planned_s - written_s - self.size_bytes / REWRITE_BYTES_PER_SECOND


def main() -> None:
    """Measure and report."""
    options = arguments(
        "Compare the cost of rewriting files with the plans' estimates."
    ).parse_args()
    require_java()
    specs, runs = (QUICK_TABLES, 1) if options.quick else (TABLES, options.runs)
    data = options.data.resolve()
    for spec in (LITTLE, *specs):
        generate(data, spec)
    work = data / "work-compaction-cost"
    shutil.rmtree(work, ignore_errors=True)
    with spark_and_client(data, work) as (spark, client):
        # The first job also loads and compiles classes.
        _, little, *done = _measured(spark, client, data, work, (LITTLE, LITTLE, *specs), runs)
    shutil.rmtree(work)
    job_s = little.measured_s
    byte_s, file_s = fitted(
        np.array([[one.size_bytes, one.planned_files] for one in done], np.float64),
        np.array([one.measured_s - job_s - one.reading_s for one in done]),
    ).tolist()
    rate = 1 / byte_s if byte_s else float("inf")
    show(
        _table(done, job_s),
        f"a job that rewrites next to nothing: {seconds_text(job_s)}",
        f"one core rewrites {size_text(rate)} a second, and takes {seconds_text(file_s)} a file",
    )
    if options.json is not None:
        results = [
            Result(
                case=one.table,
                metric="planned against measured",
                unit="core s",
                windrow=one.planned_s,
                peer="measured",
                peer_value=one.measured_s - job_s,
            )
            for one in done
        ]
        costs = {"job_s": job_s, "byte_s": byte_s, "file_s": file_s}
        write_json(options.json, NAME, results, quick=options.quick, runs=runs, costs=costs)


def _measured(
    spark: SparkSession,
    client: Client,
    data: Path,
    work: Path,
    specs: Sequence[TableSpec],
    runs: int,
) -> Iterator[Rewritten]:
    for spec in specs:
        console.print(spec.title, style="dim")
        tries = [_rewritten(spark, client, data / spec.name, work, spec) for _ in range(runs)]
        yield sorted(tries, key=lambda one: one.measured_s)[len(tries) // 2]


def _rewritten(
    spark: SparkSession, client: Client, table: Path, work: Path, spec: TableSpec
) -> Rewritten:
    copy, name = work / "table", f"bench.{spec.name}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    client.register_table(name, str(copy))
    client.refresh(name)
    pages = list(client.plan_compaction(name, **EVERYTHING))
    before_s = tree_cpu_seconds()
    done = compact(lambda: spark, client, name, **EVERYTHING)
    return Rewritten(
        table=spec.title,
        size_bytes=done.bytes_before,
        planned_files=sum(sum(page.partitions.becomes) for page in pages),
        planned_s=sum(sum(page.partitions.cost_seconds) for page in pages),
        measured_s=tree_cpu_seconds() - before_s,
    )


def _table(done: Sequence[Rewritten], job_s: float) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("table", no_wrap=True)
    for name in ("size", "new files", "planned", "measured"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in done:
        table.add_row(
            one.table,
            size_text(one.size_bytes),
            f"{one.planned_files:,}",
            seconds_text(one.planned_s),
            seconds_text(one.measured_s - job_s),
        )
    return table


if __name__ == "__main__":
    main()
