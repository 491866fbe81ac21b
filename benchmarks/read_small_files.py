"""Read tables of small files: Spark alone, Spark with Windrow, DuckDB and Polars.

    python benchmarks/read_small_files.py [--quick] [--json FILE] [--cases NAME,…]

Warm: one session for all sides, one untimed round, then timed rounds in turns. Spark's warm figures
exclude its listing, since its DataFrame is made once; Windrow's include planning, and those of
DuckDB and Polars include listing. Cold: see `benchmarks/cold_read.py`. Windrow's inventory is taken
beforehand; the `know the files` rows show the time for that.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from cold_read import cold_answer
from common import Result, arguments, console, selected, write_json
from peers import ENGINES, normal, queries, timed_answer
from rich import box
from rich.table import Table as RichTable
from tables import KIB, MIB, Part, TableSpec, generate, table_of

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_demo.coordinator import running_coordinator
from windrow_demo.local_session import local_session
from windrow_demo.measuring import fingerprint, time_in_turns, timed
from windrow_demo.sides import SPARK_DEFAULT, SPARK_TUNED, WINDROW, sides

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "read_small_files"
COLD_READ = Path(__file__).with_name("cold_read.py")
COLUMNS = ("id", "region", "customer", "amount", "score", "day")
PEERS = (SPARK_DEFAULT, SPARK_TUNED, *ENGINES)

CASES = (
    table_of(1_000, 16 * KIB),
    table_of(10_000, 16 * KIB),
    table_of(50_000, 16 * KIB),
    table_of(100, 8 * MIB),
    TableSpec("mix", "2,000 x 16 KB + 10 x 32 MB", (Part(2_000, 16 * KIB), Part(10, 32 * MIB))),
    table_of(300, 16 * KIB),
    TableSpec("smallmix", "100 x 16 KB + 2 x 8 MB", (Part(100, 16 * KIB), Part(2, 8 * MIB))),
)
QUICK_CASES = (
    table_of(12, 16 * KIB),
    TableSpec("quickmix", "6 x 16 KB + 1 x 256 KB", (Part(6, 16 * KIB), Part(1, 256 * KIB))),
)


class DisagreementError(Exception):
    """Two sides gave different answers, so their figures are meaningless."""


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read tables of small files with Spark, Windrow, DuckDB and Polars.")
    parser.add_argument("--cases", help="names of the cases to run, separated by ','")
    parser.add_argument("--no-cold", action="store_true", help="skip the cold runs")
    options = parser.parse_args()
    require_java()
    cases = selected(QUICK_CASES if options.quick else CASES, options.cases)
    runs = 1 if options.quick else options.runs
    data = options.data.resolve()
    work = data / "work"
    shutil.rmtree(work / "state", ignore_errors=True)
    for case in cases:
        generate(data, case)
    results: list[Result] = []
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
    ):
        with local_session("windrow benchmark", work / "spark.log") as spark:
            # Spark's first job also starts its threads.
            spark.range(10).count()
            for case in cases:
                results += _warm(spark, client, data, case, runs, options.quick)
        if not options.no_cold:
            for case in cases[:1] if options.quick else cases:
                results += _cold(url, data, case, options.quick)
    show(_table(results))
    if options.json is not None:
        write_json(options.json, NAME, results, quick=options.quick, runs=runs)


def _warm(
    spark: SparkSession, client: Client, data: Path, case: TableSpec, runs: int, quick: bool
) -> list[Result]:
    console.print(f"{case.title}: warm", style="dim")
    folder, table = data / case.name, f"bench.{case.name}"
    client.register_table(table, str(folder))
    _, refresh_s = timed(partial(client.refresh, table))
    listed, listing_s = timed(partial(spark.read.parquet, str(folder)))
    contestants = sides(listed, client, table)
    fingerprints = {side.name: fingerprint(spark, side, COLUMNS) for side in contestants}
    _require_equal(case.title, fingerprints)
    if fingerprints[WINDROW].row_count != case.row_count:
        raise DisagreementError(f"{case.title}: {fingerprints} and {case.row_count:,} were written")
    all_queries = queries()[:1] if quick else queries()
    timings = time_in_turns(
        spark, contestants, all_queries, runs=runs, on_run=lambda *_: None, warm=not quick
    )
    results = [_result(case, "", "know the files", "s", refresh_s, SPARK_DEFAULT, listing_s)]
    for query in all_queries:
        spark_timings = {timing.side: timing for timing in timings if timing.query == query.name}
        answers = {side: normal(timing.answer) for side, timing in spark_timings.items()}
        seconds = {side: timing.median_s for side, timing in spark_timings.items()}
        for engine, ask in ENGINES.items():
            tries = [timed_answer(ask, folder, query.name) for _ in range(runs + (not quick))]
            answers[engine] = tries[0][0]
            seconds[engine] = median(time_s for _, time_s in tries[not quick :])
        _require_equal(f"{case.title}, {query.title}", answers)
        ours = seconds[WINDROW]
        results += [
            _result(case, query.title, "warm read", "s", ours, peer, seconds[peer])
            for peer in PEERS
        ]
        results += [
            _result(
                case,
                query.title,
                "tasks",
                "tasks",
                spark_timings[WINDROW].task_count,
                peer,
                spark_timings[peer].task_count,
            )
            for peer in (SPARK_DEFAULT, SPARK_TUNED)
        ]
    return results


def _cold(url: str, data: Path, case: TableSpec, quick: bool) -> list[Result]:
    console.print(f"{case.title}: cold", style="dim")
    # Only data on disk can be dropped from memory. Called once: it waits for files of all programs.
    os.sync()
    results = []
    for query in queries()[:1] if quick else queries():
        folder, table = data / case.name, f"bench.{case.name}"
        seconds, answers = {}, {}
        # In a quick run, starting Spark in further processes would take longer than all reads.
        here = (WINDROW, SPARK_DEFAULT) if quick else ()
        for side in here:
            rows, seconds[side] = cold_answer(side, query.name, folder, url, table)
            answers[side] = repr(rows)
        for side in ("duckdb",) if quick else (WINDROW, *PEERS):
            command = [sys.executable, str(COLD_READ), side, query.name, str(folder)]
            command += ["--url", url, "--table", table]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            answer = json.loads(done.stdout)
            seconds[side], answers[side] = answer["seconds"], answer["rows"]
        _require_equal(f"{case.title}, {query.title}, cold", answers)
        results += [
            _result(case, query.title, "cold read", "s", seconds[WINDROW], peer, seconds[peer])
            for peer in PEERS
            if peer in seconds
        ]
    return results


def _require_equal(what: str, answers: Mapping[str, object]) -> None:
    if len({repr(answer) for answer in answers.values()}) != 1:
        raise DisagreementError(f"{what}: the sides do not agree: {answers}")


def _result(
    case: TableSpec, query: str, metric: str, unit: str, ours: float, peer: str, peer_value: float
) -> Result:
    return Result(
        case=f"{case.title}, {query}" if query else case.title,
        metric=metric,
        unit=unit,
        windrow=ours,
        peer=peer,
        peer_value=peer_value,
    )


def _table(results: list[Result]) -> RichTable:
    """Return a table with a row per case and metric, and a column per side."""
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case", overflow="fold")
    table.add_column("metric", no_wrap=True)
    for name in (WINDROW, *PEERS):
        table.add_column(name, justify="right", overflow="fold")
    rows: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        rows.setdefault((result.case, result.metric), []).append(result)
    for (case, metric), of_row in rows.items():
        peers = {result.peer: result for result in of_row}
        cells = [_figure(of_row[0].windrow, of_row[0].unit)]
        for peer in PEERS:
            beside = peers.get(peer)
            cells.append(
                f"{_figure(beside.peer_value, beside.unit)} ({beside.ratio:.1f}x)"
                if beside is not None
                else ""
            )
        table.add_row(case, metric, *cells)
    return table


def _figure(value: float, unit: str) -> str:
    return seconds_text(value) if unit == "s" else f"{value:,.0f}"


if __name__ == "__main__":
    main()
