"""Measure what a scan costs in groups and with Spark's own reader: the constants of `cost.py`.

    python benchmarks/read_calibration.py [--quick] [--json FILE] [--format orc]

Tables with various numbers and sizes of files are read either way on warm Spark: two columns of
numbers, and one of text. Then `core seconds = a * files + b * MB of numbers + c * MB of text + d`
is fitted to the medians by least squares on relative errors, without negative coefficients. Core
seconds are the CPU time of driver, JVM, Python workers and coordinator (`cpu.py`, Linux), which
hardly depends on other load. The fixed cost of a scan is the time of a query on one small file,
which is correct only on a quiet machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from common import Result, arguments, console, write_json
from cpu import tree_cpu_seconds
from fitting import fitted
from grid_tables import Cell, cell_of, written
from sessions import spark_and_client
from tables import KIB, MIB

from windrow.client import Client
from windrow_calls.terminal.java import require_java
from windrow_spark.relation.cost import GROUPED, NATIVE, Way, fractions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "read_calibration"
SMALLEST = cell_of(1, 4 * KIB)
CELLS = (
    SMALLEST,
    cell_of(1_000, 4 * KIB),
    cell_of(1_000, 16 * KIB),
    cell_of(1_000, 64 * KIB),
    cell_of(200, 256 * KIB),
    cell_of(64, MIB),
    cell_of(10, 8 * MIB),
    cell_of(4, 32 * MIB),
)
QUICK_CELLS = (SMALLEST, cell_of(40, 16 * KIB), cell_of(2, 512 * KIB))
WAYS = {"grouped": GROUPED, "native": NATIVE}
_HELD = (pa.int64(), pa.int32(), pa.string(), pa.int64(), pa.float32())
_ASKED = {"numbers": (pa.int64(), pa.int64()), "text": (pa.string(),)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One table read one way by one query."""

    cell: Cell
    way: str
    query: str
    core_s: float
    wall_s: float

    @property
    def work(self) -> tuple[float, float, float, float]:
        """Scans, files, megabytes of numbers and megabytes of text."""
        columns = fractions_of(_ASKED[self.query], _HELD)
        megabytes = sum(part.file_count * part.file_bytes for part in self.cell.parts) / 1e6
        return 1.0, self.cell.files, megabytes * columns.numbers, megabytes * columns.text


def main() -> None:
    """Measure, fit and report."""
    parser = arguments("Measure what a scan costs in groups and with Spark's own reader.")
    parser.add_argument("--format", default="parquet", choices=("parquet", "orc"))
    options = parser.parse_args()
    require_java()
    cells = QUICK_CELLS if options.quick else CELLS
    runs = 1 if options.quick else options.runs
    data = options.data.resolve() / "grid"
    work = data / "work"
    measurements: list[Measurement] = []
    with spark_and_client(data, work) as (spark, client):
        for cell in cells:
            console.print(cell.title, style="dim")
            table = f"grid.t{cell.name}"
            client.register_table(table, str(written(data, cell, options.format)), options.format)
            client.refresh(table)
            measurements += _measured(spark, client, table, cell, runs, warm=not options.quick)
    fits = {way: _fit([entry for entry in measurements if entry.way == way]) for way in WAYS}
    for way, costs in fits.items():
        print(f"{way.upper()} = {costs.way}")
    for entry in measurements:
        predicted = _predicted(fits[entry.way], entry)
        print(
            f"{entry.cell.title}, {entry.query}, {entry.way}: {entry.core_s:.2f} core s, fitted "
            f"{predicted:.2f}, {entry.wall_s:.2f} s"
        )
    if options.json is not None:
        results = [
            Result(
                case=f"{entry.cell.title}, {entry.query}, {entry.way}",
                metric="fitted against measured",
                unit="core s",
                windrow=_predicted(fits[entry.way], entry),
                peer="measured",
                peer_value=entry.core_s,
            )
            for entry in measurements
        ]
        write_json(options.json, NAME, results, quick=options.quick, runs=runs)


def _measured(
    spark: SparkSession, client: Client, table: str, cell: Cell, runs: int, *, warm: bool
) -> list[Measurement]:
    from pyspark.sql import functions as F

    queries: dict[str, Callable[[DataFrame], DataFrame]] = {
        "numbers": lambda rows: rows.agg(F.sum("id"), F.sum("amount")),
        "text": lambda rows: rows.agg(F.max("customer")),
    }
    opened = {way: client.read(spark, table, reader=way) for way in WAYS}
    tries: dict[tuple[str, str], list[tuple[float, float]]] = {}
    # The warm-up round is not counted.
    for round_ in range(runs + warm):
        for query, ask in queries.items():
            for way, rows in opened.items():
                cpu, began = tree_cpu_seconds(), time.perf_counter()
                ask(rows).collect()
                times = tree_cpu_seconds() - cpu, time.perf_counter() - began
                if round_ >= warm:
                    tries.setdefault((way, query), []).append(times)
    return [
        Measurement(
            cell=cell,
            way=way,
            query=query,
            core_s=median(core_s for core_s, _ in times),
            wall_s=median(wall_s for _, wall_s in times),
        )
        for (way, query), times in tries.items()
    ]


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted costs of one way, and the core seconds of a scan in addition."""

    way: Way
    scan_core_s: float


def _fit(measurements: Sequence[Measurement]) -> Fit:
    rows = np.array([entry.work for entry in measurements])
    # CPU time is counted in ticks of 10 ms.
    seconds = np.array([max(entry.core_s, 0.01) for entry in measurements])
    scan_core_s, file_s, number_mb_s, text_mb_s = (float(cost) for cost in fitted(rows, seconds))
    scan_s = median(entry.wall_s for entry in measurements if entry.cell == SMALLEST)
    way = Way(scan_s=scan_s, file_s=file_s, number_mb_s=number_mb_s, text_mb_s=text_mb_s)
    return Fit(way, scan_core_s)


def _predicted(fit: Fit, entry: Measurement) -> float:
    scans, files, numbers, text = entry.work
    way = fit.way
    of_bytes = way.number_mb_s * numbers + way.text_mb_s * text
    return fit.scan_core_s * scans + way.file_s * files + of_bytes


if __name__ == "__main__":
    main()
