"""Measure the cost of a checked write, compared with Spark's own write of the same partitions.

    python benchmarks/write_cost.py [--quick] [--json FILE] [--runs N]

1,000,000 rows in 99 partitions, from files. The peer is
`df.repartition(key).write.partitionBy(key)`, which checks nothing. The sides take turns, so that
other load on the machine affects all of them; ratios are medians over the turns. CPU time is that
of driver, JVM and coordinator together (`cpu.py`, Linux); other load changes it less than the time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from common import Result, arguments, console, write_json
from cpu import tree_cpu_seconds
from pyspark.sql import functions as F
from rich import box
from rich.table import Table as RichTable
from writes import place_of_work

from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_demo.progress import counting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "write_cost"
PARTITIONS, QUICK_PARTITIONS = 99, 5
PEER = "Spark: repartition(key), partitionBy(key)"
COUNTED, HISTORY = "client.write", 'client.write, counts="history"'


def main() -> None:
    """Run the benchmark."""
    given = arguments("Write 99 partitions, checked and unchecked.").parse_args()
    require_java()
    row_count, partitions = (1_000, QUICK_PARTITIONS) if given.quick else (1_000_000, PARTITIONS)
    seconds: dict[str, list[float]] = {}
    cpu_seconds: dict[str, list[float]] = {}
    steps: dict[str, list[str]] = {}
    with place_of_work(given.data) as (spark, client, folder):
        rows = rows_in_partitions(spark, folder / "rows", row_count, partitions)
        client.register_table("bench.cost", str(folder / "table"), partition_columns={"k": "int"})

        def spark_alone() -> str:
            rows.repartition("k").write.partitionBy("k").parquet(str(folder / "peer"))
            shutil.rmtree(folder / "peer")
            return ""

        def checked(counts: str | None) -> Callable[[], str]:
            def write() -> str:
                report = client.write(
                    rows, "bench.cost", "overwrite", counts=counts, target_rows=row_count
                )
                return (
                    f"count {report.count_seconds:.2f} s, write {report.write_seconds:.2f} s, "
                    f"check {report.check_seconds:.2f} s, commit {report.commit_seconds:.2f} s"
                )

            return write

        ways = {PEER: spark_alone, COUNTED: checked(None), HISTORY: checked("history")}
        # The first turn loads and compiles classes.
        warm = not given.quick
        with counting(console, "Writing in turns", (given.runs + warm) * len(ways)) as progress:
            for turn in range(given.runs + warm):
                for way, write in ways.items():
                    began, cpu_before = time.perf_counter(), tree_cpu_seconds()
                    said = write()
                    if turn >= warm:
                        seconds.setdefault(way, []).append(time.perf_counter() - began)
                        cpu_seconds.setdefault(way, []).append(tree_cpu_seconds() - cpu_before)
                        steps.setdefault(way, []).append(said)
                    progress.advance()
    what = f"{row_count:,} rows, {partitions} partitions"
    show(_table(what, seconds, cpu_seconds))
    for way in (COUNTED, HISTORY):
        console.print(f"{way}, last turn: {steps[way][-1]}", style="dim")
    if given.json is not None:
        results = [
            Result(
                case=f"{what}: {way}",
                metric=metric,
                unit="s",
                windrow=median(times[way]),
                peer=PEER,
                peer_value=median(times[PEER]),
            )
            for metric, times in (("time", seconds), ("CPU time", cpu_seconds))
            for way in (COUNTED, HISTORY)
        ]
        write_json(
            given.json,
            NAME,
            results,
            quick=given.quick,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
            steps=steps,
        )


def rows_in_partitions(spark: SparkSession, folder: Path, count: int, partitions: int) -> DataFrame:
    """Write rows of a table with the partition column `k`, and return them as files."""
    rows = spark.range(count).select(
        "id",
        F.sha2(F.col("id").cast("string"), 256).alias("name"),
        (F.col("id") * 0.37 % 1000).alias("amount"),
        F.timestamp_seconds(F.lit(1_700_000_000) + F.col("id")).alias("at"),
        (F.xxhash64("id") % 50_000).alias("user"),
        F.pmod(F.xxhash64(F.col("id") + 1), F.lit(partitions)).cast("int").alias("k"),
    )
    rows.repartition(8).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def _table(
    what: str, seconds: dict[str, list[float]], cpu_seconds: dict[str, list[float]]
) -> RichTable:
    table = RichTable(title=what, box=box.SIMPLE_HEAD, title_style="")
    table.add_column("")
    for head in ("median", "shortest", "ratio to Spark", "CPU time", "ratio to Spark"):
        table.add_column(head, justify="right")
    for way, times in seconds.items():
        cpu = cpu_seconds[way]
        table.add_row(
            way,
            f"{median(times):.2f} s",
            f"{min(times):.2f} s",
            f"{ratio(times, seconds[PEER]):.2f}",
            f"{median(cpu):.2f} s",
            f"{ratio(cpu, cpu_seconds[PEER]):.2f}",
        )
    return table


def ratio(mine: list[float], peers: list[float]) -> float:
    """Return the median ratio of the times of each turn."""
    return median(one / peer for one, peer in zip(mine, peers, strict=True))


if __name__ == "__main__":
    main()
