"""Run everyday SQL on a year of small files: Spark's own reader alone, and Windrow.

    python benchmarks/star.py [--quick] [--json FILE] [--queries day,limit,…] [--files N] [--runs N]
                              [--opening]

The table `events` has 4,380 Parquet files of 32 KB in folders by day, `visits` and `readings` have
a few hundred by hour, and the others are small. Each of 25 queries runs on the same temporary views in
one session: Windrow's, Spark's, and Spark's with `openCostInBytes=0`, warm, in turns. Spark's
figures exclude its listing, while Windrow's include a plan for each query; with `--opening`, each
run opens its tables anew on all sides, as a job does that reads them once. Rows must be equal;
otherwise the exit code is 1.

Files are those that a query's scans plan, and that its tasks read. Spark counts only the former.
"""

from __future__ import annotations

import sys
from dataclasses import asdict

from common import arguments, console, selected, write_json
from sessions import spark_and_client
from sql_turns import compare, figures_table, registered, verdicts
from star_queries import QUERIES, register_functions
from star_tables import YEAR_OF_FILES, star_tables

from windrow_calls.terminal.java import require_java

NAME = "star"
_QUICK_FILES = 24


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = arguments("Run everyday SQL on a year of small files with Spark, and with Windrow.")
    parser.add_argument("--queries", help="names of the queries to run, separated by ','")
    parser.add_argument("--files", type=int, help="number of files of events")
    parser.add_argument(
        "--opening", action="store_true", help="open the tables of each query in its time"
    )
    options = parser.parse_args()
    require_java()
    files = options.files or (_QUICK_FILES if options.quick else YEAR_OF_FILES)
    runs = 1 if options.quick else options.runs
    data = options.data.resolve() / NAME
    tables = star_tables(data, files)
    comparisons = []
    with spark_and_client(data, data / "work") as (spark, client):
        register_functions(spark)
        views = [registered(spark, client, NAME, table) for table in tables]
        for query in selected(QUERIES, options.queries):
            comparison = compare(
                spark, views, query, runs=runs, warm=not options.quick, opening=options.opening
            )
            comparisons.append(comparison)
            console.print(str(comparisons[-1]), style="dim", markup=False)
    print("\n".join([*figures_table(comparisons), "", *verdicts(comparisons)]))
    if options.json is not None:
        results = [result for one in comparisons for result in one.results()]
        figures = [asdict(one) for one in comparisons]
        write_json(options.json, NAME, results, files=files, runs=runs, queries=figures)
    return any(one.difference for one in comparisons)


if __name__ == "__main__":
    sys.exit(main())
