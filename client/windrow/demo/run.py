"""The demo from end to end: write, serve, register, refresh, plan, read three ways, compare."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

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
from windrow.models import RefreshStatus
from windrow.terminal.local_session import local_session, require_java
from windrow.terminal.progress import counting, refreshing
from windrow.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "demo.flights"
SPARK_DEFAULT, SPARK_TUNED, WINDROW = "spark-default", "spark-tuned", "windrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """All that the demo measured.

    Attributes:
        sides: The ways of reading, in the order of their turns.
        queries: The questions.
        timings: One per side and query.
        fingerprints: The whole table as each side reads it, by the side's name.
        listing_s: Seconds in which Spark listed the folders, to make its DataFrame.
        refresh: What Windrow's own listing, footers included, came to.
        refresh_s: Seconds for it, as the caller waits.
        plan: How Windrow reads the columns of the first query.
        plan_s: Seconds to ask for that plan and to receive it.
        environment: Versions and settings that matter, for people.
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
    environment: dict[str, str]

    def timing(self, side: str, query: str) -> Timing:
        """Return what a query cost on a side."""
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
        runs: Timed runs of each query.
        days: How many days of the year the table holds.
        console: Takes the progress.

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
    # An empty state, so that the refresh has all of its work before it.
    shutil.rmtree(work / "state", ignore_errors=True)
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
    ):
        client.register_table(TABLE, str(table))
        with refreshing(console, TABLE) as on_progress:
            refresh, refresh_s = timed(partial(client.refresh, TABLE, on_progress=on_progress))
        console.print("Spark starts …", style="dim")
        with local_session("windrow demo", work / "spark.log") as spark:
            from windrow.spark import plain_errors

            with plain_errors():
                return _compare(
                    spark, client, table, runs, console, refresh=refresh, refresh_s=refresh_s
                )


def flight_queries() -> tuple[Query, ...]:
    """Return the questions of the demo."""
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
    """Return the ways to read a table: Spark as it is, Spark tuned by hand, and Windrow.

    Args:
        listed: Spark's own DataFrame of the table, whose files it has listed.
        client: Plans for Windrow.
        table: Its name.
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
        console.print(f"The flights are written to {table}, once …", style="dim", markup=False)
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
    # Its first job pays for the start of Spark's threads, which is not the listing's fault.
    spark.range(10).count()
    listed, listing_s = timed(partial(spark.read.parquet, str(table)))
    queries, contestants = flight_queries(), sides(listed, client, TABLE)
    # Each side makes its plans for the parallelism of this session, and so does this one.
    plan, plan_s = timed(
        lambda: client.plan(
            TABLE, columns=queries[0].columns, parallelism=spark.sparkContext.defaultParallelism
        )
    )
    console.print("Spark reads …", style="dim")
    steps = len(contestants) * (1 + len(queries) * runs)
    with counting(console, "Reading on Spark", steps) as progress:
        # Each side reads every column of the whole table once: that is its warming up too.
        fingerprints = {}
        for side in contestants:
            fingerprints[side.name] = fingerprint(spark, side, listed.columns)
            progress.advance()
        timings = time_in_turns(
            spark, contestants, queries, runs=runs, on_run=progress.advance, warm=False
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
        environment=_environment(spark),
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
