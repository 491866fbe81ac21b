"""Measure the time from SQL to the first task, on a table of 1,000,000 files in 20,000 partitions.

    python benchmarks/first_task.py [--quick] [--json FILE] [--files N] [--days N]

The inventory of `partition_numbers.py` is published to a coordinator in a process of its own, over
SQLite; its files do not exist, since no task runs. A session creates a view, and queries are taken
to the point where Spark would start their first task: analysed, optimized, planned, their
subqueries run. The peer is the same session's scan of the whole table, which is what a query costs
of which no condition is understood. Times are medians; the first query also fetches the partitions.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from common import Result, arguments, console, times_table, write_json
from partition_numbers import FIRST_DAY, TABLE, generated
from pyspark.sql import SparkSession
from sessions import spark_and_client

from windrow.client import Client
from windrow.spark import recent_scans
from windrow_calls.terminal.consoles import show
from windrow_core.sizes import size_text

NAME = "first_task"
_TYPES = {"ds": "date", "hour": "int", "region": "string"}


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure the time from SQL to the first task on very large tables.")
    parser.add_argument("--files", type=int, help="number of files; 1,000,000 by default")
    parser.add_argument("--days", type=int, help="number of days, of 40 partitions; 500 by default")
    options = parser.parse_args()
    files = options.files or (4_000 if options.quick else 1_000_000)
    days = options.days or (50 if options.quick else 500)
    options.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        folder = Path(name)
        with spark_and_client(folder, folder) as (spark, client):
            _publish(client, folder, files, days)
            _write_days(spark, folder / "days", days)
            results, planned = _measured(spark, client, options.runs)
            jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
            memory = {"Python": _peak_bytes(os.getpid()), "JVM": _peak_bytes(jvm)}
    show(times_table(results))
    for process, bytes_ in memory.items():
        console.print(f"peak memory of the driver's {process}: {size_text(bytes_)}")
    if options.json is not None:
        write_json(options.json, NAME, results, files=files, planned=planned, memory=memory)


def _publish(client: Client, folder: Path, files: int, days: int) -> None:
    client.register_table(TABLE, str(folder), columns={"id": "bigint"}, partition_columns=_TYPES)
    client.publish(TABLE, generated(files, days))


def _write_days(spark: SparkSession, folder: Path, days: int) -> None:
    """Write a small table with a row for each day, to be joined with the large one."""
    rows = spark.range(days).selectExpr(
        f"date_add(DATE '{FIRST_DAY}', cast(id AS int)) AS ds", "id % 100 AS hundred"
    )
    rows.coalesce(1).write.parquet(str(folder))
    spark.read.parquet(str(folder)).createOrReplaceTempView("days")


def _measured(
    spark: SparkSession, client: Client, runs: int
) -> tuple[list[Result], dict[str, int]]:
    """Return the times, and how many files each query plans."""
    views = [_seconds(lambda: client.create_view(spark, TABLE, "logs")) for _ in range(runs)]
    month = f"year(ds) = {FIRST_DAY.year} AND month(ds) = 2"
    queries = {
        "one day": f"ds = DATE '{FIRST_DAY}'",
        "a month by function": month,
        "a join with a day in a hundred": None,
    }
    cold = _seconds(lambda: _planned(spark, f"SELECT id FROM logs WHERE {month}"))
    whole = median(_seconds(lambda: _planned(spark, "SELECT id FROM logs")) for _ in range(runs))
    results = [
        Result.in_seconds("create_view", "median", median(views), "the whole table", whole),
        Result.in_seconds("the first query", "once", cold, "the whole table", whole),
    ]
    planned: dict[str, int] = {}
    for name, condition in queries.items():
        sql = (
            "SELECT id FROM logs JOIN days USING (ds) WHERE hundred = 7"
            if condition is None
            else f"SELECT id FROM logs WHERE {condition}"
        )
        seconds = median(_seconds(lambda sql=sql: _planned(spark, sql)) for _ in range(runs))
        planned[name] = recent_scans(TABLE)[0].plan.summary.files_planned
        console.print(f"{name}: {planned[name]:,} files planned", style="dim")
        results.append(Result.in_seconds(name, "median", seconds, "the whole table", whole))
    return results, planned


def _planned(spark: SparkSession, sql: str) -> None:
    """Take a query to the point where its first task would start."""
    spark.sql(sql)._jdf.queryExecution().toRdd().getNumPartitions()


def _peak_bytes(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    (kib,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kib) * 1024


def _seconds(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
