"""The whole demo: write, serve, register, refresh, pack, plan, read in four ways, compare."""

from __future__ import annotations

import math
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.progress import refreshing
from windrow_core.cards import seconds_text
from windrow_core.models import RefreshStatus
from windrow_core.version import __version__
from windrow_demo.coordinator import running_coordinator
from windrow_demo.flights import DAYS_IN_THE_YEAR, write_flights
from windrow_demo.local_session import local_session
from windrow_demo.measuring import Query, Side, fingerprint, time_in_turns, timed
from windrow_demo.outcome import DemoOutcome, SqlOutcome
from windrow_demo.progress import counting
from windrow_demo.report import first_table
from windrow_demo.sides import SPARK_DEFAULT, flight_queries, sides
from windrow_demo.write_once import begin_anew
from windrow_spark.interrupts import kept_interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "demo.flights"
_USUAL_RUNS = 3
_SETTLED_S = 2.5
# Leaves a quarter of a minute of the five for the last answer, and for Spark to stop.
_USUAL_S = 285.0
SQL = """SELECT carrier, count(*) AS late, max(dep_delay) AS longest FROM flights
WHERE day = 1 AND dep_delay > 60 GROUP BY carrier ORDER BY late DESC LIMIT 3"""


def run_demo(data: Path, *, runs: int | None, days: int, console: Console) -> DemoOutcome:
    """Run the demo; all its files stay under `data`.

    Args:
        data: Folder for the table, the coordinator's state and the logs.
        runs: Number of timed runs of each query; by default three, or fewer where the demo would
            take more than five minutes.
        days: Number of days of the year that the table holds.
        console: Console for progress.
    """
    require_java()
    end_by = time.perf_counter() + _USUAL_S if runs is None else math.inf
    data = data.resolve()
    table = data / ("flights" if days == DAYS_IN_THE_YEAR else f"flights-{days}-days")
    work = data / "demo"
    _write(table, days, console)
    # Start from an empty state, so that the refresh has to do all of its work.
    begin_anew(work / "state")
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
    ):
        client.register_table(TABLE, str(table))
        console.print("Taking Windrow's inventory: folders and footers …", style="dim")
        with refreshing(console, TABLE) as on_progress:
            refresh, refresh_s = timed(partial(client.refresh, TABLE, on_progress=on_progress))
        console.print("Packing the table's small files …", style="dim")
        _, pack_s = timed(partial(client.pack, TABLE))
        console.print("Starting Spark …", style="dim")
        with local_session("windrow_demo", work / "spark.log") as spark:
            from windrow.spark import plain_errors

            with plain_errors():
                return _compare(
                    spark,
                    client,
                    table,
                    runs or _USUAL_RUNS,
                    console,
                    end_by=end_by,
                    refresh=refresh,
                    refresh_s=refresh_s,
                    pack_s=pack_s,
                )


def _write(table: Path, days: int, console: Console) -> None:
    if not table.exists():
        console.print(f"Writing the flights once to {table} …", style="dim", markup=False)
    is_new = not table.exists()
    with counting(console, "Writing files") as progress:
        write_flights(table, days, progress.expect, progress.advance)
    if is_new:
        # Of files that were written just now, a refresh cannot tell whether they stay as they are.
        time.sleep(_SETTLED_S)


def _compare(
    spark: SparkSession,
    client: Client,
    table: Path,
    runs: int,
    console: Console,
    *,
    end_by: float,
    refresh: RefreshStatus,
    refresh_s: float,
    pack_s: float,
) -> DemoOutcome:
    # Spark's first job also starts its threads; this keeps that out of the listing's time.
    spark.range(10).count()
    console.print("Listing the folders on Spark …", style="dim")
    table_rows, listing_s = timed(partial(spark.read.parquet, str(table)))
    queries, contestants = flight_queries(), sides(table_rows, client, TABLE)
    # The same parallelism as the plans that the timed reads make.
    plan, plan_s = timed(
        lambda: client.plan(
            TABLE, columns=queries[0].columns, parallelism=spark.sparkContext.defaultParallelism
        )
    )
    console.print("Reading on Spark …", style="dim")
    # The fastest side first, so that there is something to see while the others run.
    in_turn = contestants[::-1]
    # Both of Spark's sides read by one DataFrame, and differ in the cut of its tasks alone.
    readers = [side for side in in_turn if side.name != SPARK_DEFAULT]
    steps = len(contestants) * (1 + len(queries) * runs) + len(readers)
    with (
        kept_interrupts() as check_interrupted,
        counting(console, "Reading on Spark", steps) as progress,
    ):
        lines: set[tuple[str, str]] = set()

        def tell(side: Side, what: str, seconds: float) -> None:
            check_interrupted()
            # Only the first of several runs, since the report shows their medians.
            if (side.name, what) not in lines:
                lines.add((side.name, what))
                if side is in_turn[0]:
                    console.print(what)
                console.print(f"  {side.title:<27}  {seconds_text(seconds):>8}")
            progress.advance()

        def first_run(side: Side, query: Query, seconds: float) -> None:
            tell(side, f"{query.title}, cold", seconds)

        first = time_in_turns(spark, in_turn, queries[:1], runs=1, on_run=first_run, warm=False)
        console.print(first_table(queries[0], contestants, first))
        fingerprints = {}
        for side in readers:
            fingerprints[side.name], taken_s = timed(
                partial(fingerprint, spark, side, table_rows.columns)
            )
            tell(side, "All columns of all rows", taken_s)
        # Reading the whole table has warmed up every side.
        timings = time_in_turns(
            spark,
            in_turn,
            queries,
            runs=runs,
            on_run=lambda side, query, seconds: tell(side, query.title, seconds),
            warm=False,
            end_by=end_by,
        )
    return DemoOutcome(
        sides=contestants,
        queries=queries,
        timings=tuple(timings),
        fingerprints=fingerprints,
        listing_s=listing_s,
        refresh=refresh,
        refresh_s=refresh_s,
        pack_s=pack_s,
        plan=plan,
        plan_s=plan_s,
        is_cut_short=len(timings[0].seconds) < runs,
        sql=_sql(spark, client),
        environment=_environment(spark),
    )


def _sql(spark: SparkSession, client: Client) -> SqlOutcome:
    from windrow.spark import recent_scans

    view = client.create_view(spark, TABLE)
    answer = spark.sql(SQL).collect()
    scan = recent_scans(TABLE)[0]
    return SqlOutcome(
        text=SQL,
        answer=tuple(row.asDict() for row in answer),
        columns=scan.columns,
        all_columns=len(view.columns),
        plan=scan.plan,
    )


def _environment(spark: SparkSession) -> dict[str, str]:
    adaptive = spark.conf.get("spark.sql.adaptive.enabled", "true") == "true"
    return {
        "Spark": spark.version,
        "PyArrow": version("pyarrow"),
        "Windrow": __version__,
        "master": str(spark.sparkContext.master),
        "parallelism": str(spark.sparkContext.defaultParallelism),
        "adaptive execution": "on" if adaptive else "off",
        "shuffle partitions": str(spark.conf.get("spark.sql.shuffle.partitions", "200")),
    }
