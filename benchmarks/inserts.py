"""Measure `INSERT INTO` a table of Windrow, compared with Spark's own insert of the same rows.

    python benchmarks/inserts.py [--quick] [--json FILE] [--runs N]

1,000,000 rows in 99 partitions, from files. The peer is `INSERT INTO` a table of Spark's catalog
with the hint `REPARTITION(k)`, which makes a file for each partition and checks nothing. The sides
take turns, so that other load on the machine affects both; ratios are medians over the turns. Each
turn adds to the same tables, whose rows and files are compared at the end.
"""

from __future__ import annotations

import time
from statistics import median

from common import Result, arguments, console, write_json
from cpu import tree_cpu_seconds
from rich import box
from rich.table import Table as RichTable
from write_cost import PARTITIONS, QUICK_PARTITIONS, ratio, rows_in_partitions
from writes import LostRowsError, place_of_work

import windrow
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_demo.progress import counting

NAME = "inserts"
PEER = "Spark: INSERT INTO … SELECT /*+ REPARTITION(k) */"
INSERT = "INSERT INTO windrow.bench.inserts"
_COLUMNS = "id BIGINT, name STRING, amount DOUBLE, at TIMESTAMP, user BIGINT"


def main() -> None:
    """Run the benchmark."""
    given = arguments("Insert into 99 partitions, planned and by Spark.").parse_args()
    require_java()
    row_count, partitions = (1_000, QUICK_PARTITIONS) if given.quick else (1_000_000, PARTITIONS)
    seconds: dict[str, list[float]] = {PEER: [], INSERT: []}
    cpu_seconds: dict[str, list[float]] = {PEER: [], INSERT: []}
    with place_of_work(given.data) as (spark, client, folder):
        rows_in_partitions(spark, folder / "rows", row_count, partitions).createOrReplaceTempView(
            "new_rows"
        )
        windrow.register(spark, client)
        for table, location in (("windrow.bench.inserts", "ours"), ("peer", "peer")):
            provider = "windrow" if location == "ours" else "parquet"
            spark.sql(
                f"CREATE TABLE {table} ({_COLUMNS}, k INT) USING {provider} "
                f"PARTITIONED BY (k) LOCATION '{folder / location}'"
            )
        statements = {
            PEER: "INSERT INTO peer SELECT /*+ REPARTITION(k) */ * FROM new_rows",
            INSERT: "INSERT INTO windrow.bench.inserts SELECT * FROM new_rows",
        }
        # The first turn loads and compiles classes.
        warm = not given.quick
        turns = given.runs + warm
        with counting(console, "Inserting in turns", turns * len(statements)) as progress:
            for turn in range(turns):
                for side, statement in statements.items():
                    began, cpu_before = time.perf_counter(), tree_cpu_seconds()
                    spark.sql(statement)
                    if turn >= warm:
                        seconds[side].append(time.perf_counter() - began)
                        cpu_seconds[side].append(tree_cpu_seconds() - cpu_before)
                    progress.advance()
        sums = [
            spark.sql(f"SELECT count(*), sum(id), count(DISTINCT k) FROM {table}").collect()
            for table in ("windrow.bench.inserts", "peer")
        ]
        files = [len(list((folder / side).rglob("*.parquet"))) for side in ("ours", "peer")]
    if sums[0] != sums[1]:
        raise LostRowsError(f"{sums[0]} instead of {sums[1]}")
    what = f"{row_count:,} rows, {partitions} partitions"
    table = RichTable(title=what, box=box.SIMPLE_HEAD, title_style="")
    for head in ("", "median", "ratio to Spark", "CPU time", "ratio to Spark", "files a turn"):
        table.add_column(head, justify="right" if head else "left")
    for side, count in ((PEER, files[1]), (INSERT, files[0])):
        table.add_row(
            side,
            f"{median(seconds[side]):.2f} s",
            f"{ratio(seconds[side], seconds[PEER]):.2f}",
            f"{median(cpu_seconds[side]):.2f} s",
            f"{ratio(cpu_seconds[side], cpu_seconds[PEER]):.2f}",
            f"{count / turns:,.0f}",
        )
    show(table)
    if given.json is not None:
        results = [
            Result(
                case=f"{what}: {INSERT}",
                metric=metric,
                unit="s",
                windrow=median(times[INSERT]),
                peer=PEER,
                peer_value=median(times[PEER]),
            )
            for metric, times in (("time", seconds), ("CPU time", cpu_seconds))
        ]
        write_json(
            given.json,
            NAME,
            results,
            quick=given.quick,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
        )


if __name__ == "__main__":
    main()
