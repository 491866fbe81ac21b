"""Show where the CPU time of a read goes: driver, JVM, Python workers, coordinator.

    python benchmarks/read_cost.py [--quick] [--json FILE] [--cases NAME,…]

Windrow and Spark with `openCostInBytes=0` take turns in one session. Core seconds hardly depend on
the machine's other load (`cpu.py`, Linux), but those of the coordinator, which both sides share,
include its upkeep.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from common import Result, arguments, console, selected, write_json
from cpu import cpu_seconds_by_program
from peers import queries
from rich import box
from rich.table import Table as RichTable
from sessions import spark_and_client
from tables import KIB, TableSpec, generate, table_of

from windrow.client import Client
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_demo.measuring import Query, Side
from windrow_demo.sides import SPARK_TUNED, WINDROW, sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "read_cost"
CASES = (
    table_of(1, 16 * KIB),
    table_of(300, 16 * KIB),
    table_of(2_000, 64 * KIB),
    table_of(10_000, 16 * KIB),
)
QUICK_CASES = (table_of(20, 16 * KIB),)
PROGRAMS = ("driver", "jvm", "workers", "coordinator")

Cost = Mapping[str, float]


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Show where the CPU time of a read goes.")
    parser.add_argument("--cases", help="names of the cases to run, separated by ','")
    options = parser.parse_args()
    require_java()
    cases = selected(QUICK_CASES if options.quick else CASES, options.cases)
    data = options.data.resolve()
    work = data / "work"
    results: list[Result] = []
    for case in cases:
        generate(data, case)
    with spark_and_client(data, work) as (spark, client):
        for case in cases:
            console.print(case.title, style="dim")
            results += _measure(
                spark, client, data / case.name, case, options.runs, warm=not options.quick
            )
    show(_table(results))
    if options.json is not None:
        write_json(options.json, NAME, results, quick=options.quick, runs=options.runs)


def _asked() -> tuple[Query, ...]:
    from pyspark.sql import functions as F

    def four(table: DataFrame) -> DataFrame:
        return table.groupBy("region").agg(
            F.countDistinct("customer"), F.sum("amount"), F.max("score")
        )

    columns = ("region", "customer", "amount", "score")
    return (
        *queries(),
        Query(name="four", title="four columns, shuffle", columns=columns, ask=four),
    )


def _measure(
    spark: SparkSession,
    client: Client,
    folder: Path,
    case: TableSpec,
    runs: int,
    *,
    warm: bool,
) -> list[Result]:
    table = f"bench.{case.name}"
    client.register_table(table, str(folder))
    client.refresh(table)
    contestants = sides(spark.read.parquet(str(folder)), client, table)[1:]
    results = []
    for query in _asked():
        costs: dict[str, list[Cost]] = {side.name: [] for side in contestants}
        for _ in range(runs + warm):
            for side in contestants:
                costs[side.name].append(_cost(spark, side, query))
        middle = {
            name: {
                part: median(cost[part] for cost in runs_of_side[warm:]) for part in runs_of_side[0]
            }
            for name, runs_of_side in costs.items()
        }
        results += [
            Result(
                case=f"{case.title}, {query.title}",
                metric=part,
                unit="s" if part == "time" else "core s",
                windrow=middle[WINDROW][part],
                peer=SPARK_TUNED,
                peer_value=middle[SPARK_TUNED][part],
            )
            for part in ("time", "all", *PROGRAMS)
            # The system counts in steps of 10 ms.
            if middle[WINDROW][part]
        ]
    return results


def _cost(spark: SparkSession, side: Side, query: Query) -> Cost:
    before, began = cpu_seconds_by_program(), time.perf_counter()
    for key, value in side.conf.items():
        spark.conf.set(key, value)
    query.ask(side.open(query.columns)).collect()
    for key in side.conf:
        spark.conf.unset(key)
    taken_s, after = time.perf_counter() - began, cpu_seconds_by_program()
    parts = {name: after[name] - before[name] for name in PROGRAMS}
    return {"time": taken_s, "all": sum(parts.values()), **parts}


def _table(results: list[Result]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case", overflow="fold")
    table.add_column("side", no_wrap=True)
    parts = list(dict.fromkeys(result.metric for result in results))
    for part in parts:
        table.add_column(part, justify="right", no_wrap=True)
    for case in dict.fromkeys(result.case for result in results):
        by_part = {result.metric: result for result in results if result.case == case}
        cells = [by_part.get(part) for part in parts]
        ours = [seconds_text(result.windrow) if result else "" for result in cells]
        theirs = [seconds_text(result.peer_value) if result else "" for result in cells]
        table.add_row(case, WINDROW, *ours)
        table.add_row("", SPARK_TUNED, *theirs)
    return table


if __name__ == "__main__":
    main()
