"""Measure what opening a file costs Windrow's reader, in bytes of reading.

    python benchmarks/open_file_cost.py [--quick] [--json FILE]

Tables with various numbers and sizes of files are read in various numbers of groups on warm Spark.
Then `core seconds = a * files + b * bytes + c * groups + d` is fitted to the medians by least
squares on relative errors, without negative coefficients. Core seconds are the CPU time of driver,
JVM, Python workers and coordinator together (`cpu.py`, Linux). The open cost is a / b: the planner's
`DEFAULT_OPEN_FILE_COST`. Bytes are those of whole files, whichever columns are read. With fewer
columns a byte costs less, so opening a file is worth more bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "open_file_cost"
TABLES = (
    table_of(1_000, 16 * KIB),
    table_of(5_000, 16 * KIB),
    table_of(10_000, 16 * KIB),
    table_of(4_000, 64 * KIB),
    table_of(1_000, 512 * KIB),
    table_of(40, 8 * MIB),
)
QUICK_TABLES = (table_of(40, 16 * KIB), table_of(4, 512 * KIB))
GROUPS = (2, 8, 32)
QUICK_GROUPS = (2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One table read in a number of groups."""

    table: str
    file_count: int
    size_bytes: int
    group_count: int
    core_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Costs of the reader, in seconds of one core."""

    file_s: float
    byte_s: float
    group_s: float
    read_s: float

    @property
    def open_file_cost(self) -> float:
        """Number of bytes that could be read in the time of opening one file."""
        return self.file_s / self.byte_s if self.byte_s else float("inf")

    def predict(self, entry: Measurement) -> float:
        """Return the core seconds that the fit expects."""
        return (
            self.file_s * entry.file_count
            + self.byte_s * entry.size_bytes
            + self.group_s * entry.group_count
            + self.read_s
        )


def main() -> None:
    """Measure, fit and report."""
    parser = arguments("Measure what opening a file costs, in bytes of reading.")
    parser.add_argument("--columns", help="columns to read, separated by ','; all by default")
    options = parser.parse_args()
    columns = options.columns.split(",") if options.columns else None
    require_java()
    tables, groups = (QUICK_TABLES, QUICK_GROUPS) if options.quick else (TABLES, GROUPS)
    data = options.data.resolve()
    work = data / "work"
    for spec in tables:
        generate(data, spec)
    measurements: list[Measurement] = []
    with spark_and_client(data, work) as (spark, client):
        for spec in tables:
            console.print(spec.title, style="dim")
            measurements += _measure(
                spark,
                client,
                data / spec.name,
                spec,
                columns,
                groups,
                options.runs,
                warm=not options.quick,
            )
    fitting = fit(measurements)
    show(_table(measurements, fitting), *_lines(fitting))
    if options.json is not None:
        results = [
            Result(
                case=f"{entry.table}, {entry.group_count} groups",
                metric="fitted against measured",
                unit="core s",
                windrow=fitting.predict(entry),
                peer="measured",
                peer_value=entry.core_seconds,
            )
            for entry in measurements
        ]
        costs = {
            "file_s": fitting.file_s,
            "byte_s": fitting.byte_s,
            "group_s": fitting.group_s,
            "read_s": fitting.read_s,
            "open_file_cost": fitting.open_file_cost,
        }
        write_json(
            options.json,
            NAME,
            results,
            quick=options.quick,
            runs=options.runs,
            columns=columns,
            costs=costs,
        )


def fit(measurements: Sequence[Measurement]) -> Fit:
    """Fit costs to measurements."""
    rows = np.array([[m.file_count, m.size_bytes, m.group_count, 1.0] for m in measurements])
    costs = fitted(rows, np.array([m.core_seconds for m in measurements]))
    return Fit(file_s=costs[0], byte_s=costs[1], group_s=costs[2], read_s=costs[3])


def _measure(
    spark: SparkSession,
    client: Client,
    folder: Path,
    spec: TableSpec,
    columns: Sequence[str] | None,
    groups: Sequence[int],
    runs: int,
    *,
    warm: bool,
) -> list[Measurement]:
    name = f"bench.{spec.name}"
    client.register_table(name, str(folder))
    client.refresh(name)
    measurements = []
    for parallelism in groups:
        plan = client.plan(name, parallelism=parallelism)
        seconds = []
        for _ in range(runs + warm):
            before_s = tree_cpu_seconds()
            table = client.read(
                spark, name, columns=columns, reader="grouped", parallelism=parallelism
            )
            # The noop sink accepts every row and discards it.
            write = table.write.format("noop").mode("overwrite")
            write.save()
            seconds.append(tree_cpu_seconds() - before_s)
        measurements.append(
            Measurement(
                table=spec.title,
                file_count=spec.file_count,
                size_bytes=plan.summary.size_bytes,
                group_count=plan.summary.group_count,
                core_seconds=median(seconds[warm:]),
            )
        )
    return measurements


def _table(measurements: Sequence[Measurement], costs: Fit) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("table", no_wrap=True)
    for name in ("size", "groups", "core seconds", "fitted"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in measurements:
        table.add_row(
            entry.table,
            size_text(entry.size_bytes),
            f"{entry.group_count:,}",
            seconds_text(entry.core_seconds),
            seconds_text(costs.predict(entry)),
        )
    return table


def _lines(costs: Fit) -> list[str]:
    return [
        f"a file   {costs.file_s * 1e6:8.0f} us",
        f"a MB     {costs.byte_s * MIB * 1e6:8.0f} us",
        f"a group  {costs.group_s * 1e6:8.0f} us",
        f"a read   {costs.read_s * 1e6:8.0f} us",
        f"open cost: {costs.open_file_cost:,.0f} bytes ({size_text(costs.open_file_cost)})",
    ]


if __name__ == "__main__":
    main()
