"""Run queries like those of TPC-H and TPC-DS over small files: Spark's own reader, and Windrow.

    python benchmarks/tpc.py [--quick] [--json FILE] [--queries h1,ds3,…] [--runs N] [--scale 0.05]

DuckDB's extensions (of the extra `benchmark`) generate tables and queries. Facts are partitioned as
in lakes: `lineitem` by the day of shipping, sales of stores and catalogs by the day of the sale, with
one small file a day; other large tables have 100 or 200 files.

The sides take turns in one session, as in `star.py`, in one round unless `--runs` says more, and
without an untimed one: each begins a third of the queries, and the better Spark is the better of two
runs. Limits of whole queries are left out, since their order is not total. Rows must be equal;
otherwise the exit code is 1.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from common import arguments, console, selected, write_json
from sessions import spark_and_client
from sql_turns import Comparison, compare, figures_table, registered, verdicts
from tpc_tables import TPCDS, TPCH, TpcSet, queries_of, tables_of, written

from windrow.client import Client
from windrow_calls.terminal.java import require_java
from windrow_demo.measuring import timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "tpc"
SETS = (TPCH, TPCDS)
_SCALE = 0.05
_QUICK_SCALE, _QUICK_PARTITIONS = 0.01, 24


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = arguments("Run queries like those of TPC-H and TPC-DS over many small files.")
    parser.add_argument("--sets", help="tpch, tpcds, or both, separated by ','")
    parser.add_argument("--queries", help="names of the queries, separated by ','")
    parser.add_argument("--scale", type=float, default=_SCALE, help="scale factor of the tables")
    parser.set_defaults(runs=1)
    options = parser.parse_args()
    require_java()
    data = options.data.resolve() / NAME
    sets = [
        (tpc, written(data, tpc, _QUICK_SCALE, _QUICK_PARTITIONS))
        if options.quick
        else (tpc, written(data, tpc, options.scale))
        for tpc in selected(SETS, options.sets)
    ]
    comparisons = []
    with spark_and_client(data, data / "work") as (spark, client):
        for tpc, folder in sets:
            some, time_s = timed(lambda tpc=tpc, at=folder: _run(spark, client, tpc, at, options))
            if some:
                lines = [f"## {folder.name}, {time_s:.0f} s", "", *figures_table(some)]
                print("\n".join([*lines, "", *verdicts(some), ""]))
            comparisons += some
    if options.json is not None:
        results = [result for one in comparisons for result in one.results()]
        figures = [asdict(one) for one in comparisons]
        write_json(options.json, NAME, results, runs=options.runs, queries=figures)
    return any(one.difference for one in comparisons)


def _run(
    spark: SparkSession, client: Client, tpc: TpcSet, folder: Path, options: Namespace
) -> list[Comparison]:
    queries = selected(queries_of(folder, tpc), options.queries)
    if not queries:
        return []
    console.print(f"Registering {folder.name}", style="dim")
    tables = [registered(spark, client, tpc.name, table) for table in tables_of(folder)]
    comparisons = []
    for at, query in enumerate(queries):
        runs = {"runs": options.runs, "warm": False, "first": at}
        comparisons.append(compare(spark, tables, query, **runs))
        console.print(str(comparisons[-1]), style="dim", markup=False)
    return comparisons


if __name__ == "__main__":
    sys.exit(main())
