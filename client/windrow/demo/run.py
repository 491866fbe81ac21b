"""The whole demo: write, serve, register, refresh, plan, read in three ways, compare."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from windrow.calls.plans import SplitPlan
from windrow.client import Client
from windrow.connecting import connect
from windrow.demo.coordinator import running_coordinator
from windrow.demo.flights import DAYS_IN_THE_YEAR, write_flights
from windrow.demo.measuring import (
    Fingerprint,
    Query,
    Side,
    Timing,
    fingerprint,
    time_in_turns,
    timed,
)
from windrow.models import Plan, RefreshStatus
from windrow.terminal.interrupts import kept_interrupts
from windrow.terminal.local_session import local_session, require_java
from windrow.terminal.progress import counting, refreshing
from windrow.terminal.render import seconds_text
from windrow.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "demo.flights"
SPARK_DEFAULT, SPARK_TUNED, WINDROW = "spark-default", "spark-tuned", "windrow"


SQL = """SELECT carrier, count(*) AS late, max(dep_delay) AS longest FROM flights
WHERE day = 1 AND dep_delay > 60 GROUP BY carrier ORDER BY late DESC LIMIT 3"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlOutcome:
    """What a query in SQL returned, and what Windrow planned for it.

    Attributes:
        text: The query.
        answer: Its rows, as mappings.
        columns: The columns that it read.
        all_columns: How many the table has.
        plan: The plan, without groups.
    """

    text: str
    answer: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    all_columns: int
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The demo's results.

    Attributes:
        sides: The ways to read the table, in the order of their turns.
        queries: The queries.
        timings: One per side and query.
        fingerprints: Fingerprint of the whole table by name of the side that read it.
        listing_s: Seconds that Spark took to list the folders for its DataFrame.
        refresh: Outcome of Windrow's refresh, which lists the folders and reads all footers.
        refresh_s: Seconds that the caller waited for the refresh.
        plan: Windrow's plan for the columns of the first query.
        plan_s: Seconds to request and receive that plan.
        sql: A query in SQL on a view, which names no columns or files by itself.
        environment: Relevant versions and settings, for people.
    """

    sides: tuple[Side, ...]
    queries: tuple[Query, ...]
    timings: tuple[Timing, ...]
    fingerprints: dict[str, Fingerprint]
    listing_s: float
    refresh: RefreshStatus
    refresh_s: float
    plan: SplitPlan
    plan_s: float
    sql: SqlOutcome
    environment: dict[str, str]

    def timing(self, side: str, query: str) -> Timing:
        """Return the timing of a query on a side."""
        return next(t for t in self.timings if (t.side, t.query) == (side, query))

    @property
    def agreed(self) -> bool:
        """Whether all sides returned the same rows and the same answers."""
        answers = {(timing.query, timing.answer) for timing in self.timings}
        return len(set(self.fingerprints.values())) == 1 and len(answers) == len(self.queries)


def run_demo(data: Path, *, runs: int, days: int, console: Console) -> DemoOutcome:
    """Run the demo; what it writes stays under `data`.

    Args:
        data: Folder for the table, the coordinator's state and the logs.
        runs: Number of timed runs of each query.
        days: Number of days of the year that the table holds.
        console: Console for progress.

    Raises:
        DemoError: The demo cannot run.
        MissingPackageError: A package that it needs is not installed.
        MissingJavaError: There is no Java 17 or newer.
        WindrowError: A request or a read failed.
    """
    require_java()
    data = data.resolve()
    table = data / ("flights" if days == DAYS_IN_THE_YEAR else f"flights-{days}-days")
    work = data / "demo"
    _write(table, days, console)
    # Start from an empty state, so that the refresh has to do all of its work.
    shutil.rmtree(work / "state", ignore_errors=True)
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
    ):
        client.register_table(TABLE, str(table))
        console.print("Taking Windrow's inventory: folders and footers …", style="dim")
        with refreshing(console, TABLE) as on_progress:
            refresh, refresh_s = timed(partial(client.refresh, TABLE, on_progress=on_progress))
        console.print("Starting Spark …", style="dim")
        with local_session("windrow demo", work / "spark.log") as spark:
            from windrow.spark import plain_errors

            with plain_errors():
                return _compare(
                    spark, client, table, runs, console, refresh=refresh, refresh_s=refresh_s
                )


def flight_queries() -> tuple[Query, ...]:
    """Return the demo's queries."""
    from pyspark.sql import functions as F

    def totals(flights: DataFrame) -> DataFrame:
        return flights.agg(
            F.count(F.lit(1)),
            F.count("dep_delay"),
            F.sum("dep_delay"),
            F.avg("dep_delay"),
            F.max("dep_delay"),
            F.sum("distance"),
        )

    def by_carrier(flights: DataFrame) -> DataFrame:
        return flights.groupBy("carrier").agg(
            F.countDistinct("tailnum"), F.count("dep_delay"), F.avg("dep_delay")
        )

    return (
        Query(
            name="aggregate",
            title="Plain aggregate",
            columns=("dep_delay", "distance"),
            ask=totals,
        ),
        Query(
            name="shuffle",
            title="With a shuffle: distinct aircraft and delays by carrier",
            columns=("carrier", "tailnum", "dep_delay"),
            ask=by_carrier,
        ),
    )


def sides(listed: DataFrame, client: Client, table: str) -> tuple[Side, ...]:
    """Return the ways to read a table: Spark with defaults, Spark tuned by hand, and Windrow.

    Args:
        listed: Spark's own DataFrame of the table, whose files are already listed.
        client: Client that plans Windrow's reads.
        table: Name of the table.
    """
    session = listed.sparkSession
    return (
        Side(
            name=SPARK_DEFAULT,
            title="Spark, defaults",
            open=lambda _: listed,
            conf={},
        ),
        Side(
            name=SPARK_TUNED,
            title="Spark, openCostInBytes=0",
            open=lambda _: listed,
            conf={"spark.sql.files.openCostInBytes": "0"},
        ),
        Side(
            name=WINDROW,
            title="Windrow, planning included",
            open=lambda columns: client.read(session, table, columns=columns),
            conf={},
        ),
    )


def _write(table: Path, days: int, console: Console) -> None:
    if not table.exists():
        console.print(f"Writing the flights once to {table} …", style="dim", markup=False)
    with counting(console, "Writing files") as progress:
        write_flights(table, days, progress.expect, progress.advance)


def _compare(
    spark: SparkSession,
    client: Client,
    table: Path,
    runs: int,
    console: Console,
    *,
    refresh: RefreshStatus,
    refresh_s: float,
) -> DemoOutcome:
    # Spark's first job also starts its threads; this keeps that out of the listing's time.
    spark.range(10).count()
    console.print("Listing the folders on Spark …", style="dim")
    listed, listing_s = timed(partial(spark.read.parquet, str(table)))
    queries, contestants = flight_queries(), sides(listed, client, TABLE)
    # The same parallelism as the plans that the timed reads make.
    plan, plan_s = timed(
        lambda: client.plan(
            TABLE, columns=queries[0].columns, parallelism=spark.sparkContext.defaultParallelism
        )
    )
    console.print("Reading on Spark …", style="dim")
    steps = len(contestants) * (1 + len(queries) * runs)
    with (
        kept_interrupts() as check_interrupted,
        counting(console, "Reading on Spark", steps) as progress,
    ):
        told: set[tuple[str, str]] = set()

        def tell(side: Side, what: str, seconds: float) -> None:
            check_interrupted()
            # Only the first run of each query, since the report shows the medians.
            if (side.name, what) not in told:
                told.add((side.name, what))
                console.print(f"  {what:<56}  {side.title:<27}  {seconds_text(seconds):>8}")
            progress.advance()

        # The fastest side first, so that there is something to see while the others run.
        in_turn = contestants[::-1]
        # Each side reads the whole table once here, which also warms it up.
        fingerprints = {}
        for side in in_turn:
            fingerprints[side.name], taken_s = timed(
                partial(fingerprint, spark, side, listed.columns)
            )
            tell(side, "All columns of all rows, cold", taken_s)
        timings = time_in_turns(
            spark,
            in_turn,
            queries,
            runs=runs,
            on_run=lambda side, query, seconds: tell(side, query.title, seconds),
            warm=False,
        )
    return DemoOutcome(
        sides=contestants,
        queries=queries,
        timings=tuple(timings),
        fingerprints=fingerprints,
        listing_s=listing_s,
        refresh=refresh,
        refresh_s=refresh_s,
        plan=plan,
        plan_s=plan_s,
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
