"""Measure aggregates of partitions that packs answer without reading.

    python benchmarks/pack_figures.py [--files N] [--runs N] [--json FILE]

Writes files of one row group, most of them links to a few, in 1,000 partitions of a day; packs them,
and asks Spark for counts, sums and extremes by month. By turns, packs tell the answer, packs are
read, and Spark reads the files by its defaults, if they are at most 20,000. All answers are equal.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from common import ROOT, Result, arguments, console, times_table, write_json
from pyspark.sql import DataFrame, SparkSession

import windrow
from windrow_calls.terminal.consoles import show
from windrow_demo.local_session import local_session
from windrow_tables.packs.packing import pack_table

# The tests start the same servers.
sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import coordinator_process

NAME = "pack_figures"
TABLE = "bench.figures"
FILES, QUICK_FILES, MOST_OF_SPARK = 100_000, 2_000, 20_000
_PARTITIONS, _MODELS, _ROWS = 1_000, 50, 40
# Packing leaves files that were written just now.
_SETTLED_S = 2.5
TOLD, READ, SPARK = "told by packs", "read from packs", "Spark, defaults"


def write(location: Path, files: int) -> None:
    """Write files: links are as good as copies, as each path is a file of its own."""
    models = location.with_name("models")
    models.mkdir(parents=True)
    for at in range(_MODELS):
        ids = range(at * _ROWS, (at + 1) * _ROWS)
        rows = {"id": list(ids), "amount": [one % 977 - 300 for one in ids]}
        pq.write_table(pa.table(rows), models / f"{at}.parquet")
    for at in range(files):
        day = date(2023, 1, 1) + timedelta(days=at % _PARTITIONS)
        folder = location / f"ds={day}"
        if at < _PARTITIONS:
            folder.mkdir(parents=True)
        os.link(models / f"{at % _MODELS}.parquet", folder / f"{at}.parquet")


def question(rows: DataFrame) -> DataFrame:
    """Return what dashboards ask."""
    return (
        rows.selectExpr("year(ds) y", "month(ds) m", "amount")
        .groupBy("y", "m")
        .agg({"*": "count", "amount": "sum"})
    )


def ways(
    spark: SparkSession, client: windrow.Client, location: Path, files: int
) -> dict[str, Callable[[], DataFrame]]:
    """Return the ways to ask, each of which sets what it needs."""

    def ours(figures: str) -> DataFrame:
        spark.conf.set("spark.windrow.figures", figures)
        return question(client.read(spark, TABLE))

    some = {TOLD: lambda: ours("true"), READ: lambda: ours("false")}
    if files <= MOST_OF_SPARK:
        own = spark.read.parquet(str(location))
        some[SPARK] = lambda: question(own)
    return some


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure aggregates that packs answer.")
    parser.add_argument("--files", type=int, help=f"so many files; {FILES:,} by default")
    options = parser.parse_args()
    files = options.files or (QUICK_FILES if options.quick else FILES)
    options.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        folder = Path(name)
        location = folder / "table"
        write(location, files)
        time.sleep(_SETTLED_S)
        with (
            coordinator_process(folder / "state", folder) as process,
            windrow.connect(process.url, timeout_s=600) as client,
            local_session("windrow-figures", folder / "spark.log") as spark,
        ):
            client.register_table(TABLE, str(location), partition_columns={"ds": "date"})
            client.refresh(TABLE)
            outcome = pack_table(client, TABLE)
            console.print(f"packed {outcome.files:,} files in {outcome.core_seconds:.0f} CPU s")
            results = measured(spark, client, location, files, options.runs)
    show(times_table(results))
    if options.json is not None:
        write_json(options.json, NAME, results, files=files)


def measured(
    spark: SparkSession, client: windrow.Client, location: Path, files: int, runs: int
) -> list[Result]:
    """Return the seconds of each way, planning included, beside those of the first."""
    seconds: dict[str, list[float]] = {}
    answers = set()
    for _ in range(runs + 1):
        for way, ask in ways(spark, client, location, files).items():
            began_s = time.perf_counter()
            rows = sorted(map(str, ask().collect()))
            seconds.setdefault(way, []).append(time.perf_counter() - began_s)
            answers.add(str(rows))
    if len(answers) != 1:
        raise SystemExit("the answers differ")
    told = median(seconds[TOLD][1:])
    case = f"{files:,} files, by month"
    return [
        Result.in_seconds(case, "time", told, way, median(some[1:]))
        for way, some in seconds.items()
        if way != TOLD
    ]


if __name__ == "__main__":
    main()
