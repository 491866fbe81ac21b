"""The demo of writes: a table that explodes into small files, and one that does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console

from windrow.connecting import connect
from windrow_calls.terminal.java import require_java
from windrow_core.models import WriteReport
from windrow_demo.coordinator import running_coordinator
from windrow_demo.events import growing, write_events
from windrow_demo.local_session import local_session
from windrow_demo.measuring import Fingerprint, Side, fingerprint, timed
from windrow_demo.progress import counting
from windrow_demo.write_once import begin_anew

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "demo.events"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTable:
    """One way to write the events, and the table that it made.

    Attributes:
        title: Title for people.
        sizes: Bytes of each file.
        write_s: Seconds to write the table.
        read_s: Seconds that Spark takes to list and read the table.
        rows: Fingerprint of the rows, to show that none was lost.
    """

    title: str
    sizes: pa.Array
    write_s: float
    read_s: float
    rows: Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class WritesOutcome:
    """The demo's results.

    Attributes:
        days: Number of days, each a partition of the table.
        tasks: Number of tasks that each wrote into all partitions.
        target_bytes: Target size of a file.
        source: Fingerprint of the rows to write.
        exploded: The table written without a plan, as most jobs do.
        planned: The table written with a plan.
        report: Windrow's report of the planned write.
    """

    days: int
    tasks: int
    target_bytes: int
    source: Fingerprint
    exploded: WrittenTable
    planned: WrittenTable
    report: WriteReport

    @property
    def agreed(self) -> bool:
        """Whether both tables hold exactly the source rows."""
        return self.source == self.exploded.rows == self.planned.rows


def run_writes_demo(
    data: Path, *, tasks: int, days: int, row_count: int, target_bytes: int, console: Console
) -> WritesOutcome:
    """Run the demo; all its files stay under `data`.

    Args:
        data: Folder for the events, both tables, the coordinator's state and the logs.
        tasks: Number of tasks that write without a plan.
        days: Number of days in the table.
        row_count: Number of rows of all days together.
        target_bytes: Target size of a file.
        console: Console for progress.
    """
    require_java()
    data = data.resolve()
    work = data / "demo-writes"
    events = data / f"events-{days}-days-{row_count}-rows"
    for folder in ("state", "exploded", "planned"):
        begin_anew(work / folder)
    with counting(console, "Writing events", row_count) as progress:
        write_events(events, growing(days, row_count), progress.advance)
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
    ):
        console.print("Starting Spark …", style="dim")
        with local_session("windrow_demo writes", work / "spark.log") as spark:
            from windrow.spark import plain_errors

            with plain_errors():
                rows = spark.read.parquet(str(events))
                # This also warms up Spark, whose first job is slow.
                source = _fingerprint(spark, rows)

                def explode() -> None:
                    writer = rows.repartition(tasks).write.mode("append").partitionBy("ds")
                    writer.parquet(str(work / "exploded"))

                client.register_table(
                    TABLE,
                    str(work / "planned"),
                    partition_columns={"ds": "string"},
                )
                console.print(f"Writing {days:,} days from {tasks:,} tasks …", style="dim")
                unplanned_table = _written(
                    spark, f"{tasks:,} tasks without a plan", work / "exploded", explode
                )
                console.print("Counting, planning and writing with Windrow …", style="dim")
                reports: list[WriteReport] = []
                planned_table = _written(
                    spark,
                    "client.write",
                    work / "planned",
                    lambda: reports.append(
                        client.write(rows, TABLE, target_file_size=target_bytes)
                    ),
                )
    return WritesOutcome(
        days=days,
        tasks=tasks,
        target_bytes=target_bytes,
        source=source,
        exploded=unplanned_table,
        planned=planned_table,
        report=reports[0],
    )


def _written(
    spark: SparkSession, title: str, folder: Path, write: Callable[[], None]
) -> WrittenTable:
    _, write_s = timed(write)
    rows, read_s = timed(lambda: _fingerprint(spark, spark.read.parquet(str(folder))))
    return WrittenTable(
        title=title, sizes=file_sizes_below(folder), write_s=write_s, read_s=read_s, rows=rows
    )


def _fingerprint(spark: SparkSession, rows: DataFrame) -> Fingerprint:
    # When read again, partition columns come last, and days become dates.
    plain = rows.selectExpr("id", "customer", "country", "amount", "cast(ds AS string) AS ds")
    side = Side(name="rows", title="rows", open=lambda _: plain, conf={})
    return fingerprint(spark, side, plain.columns)


def file_sizes_below(folder: Path) -> pa.Array:
    """Return the size in bytes of each Parquet file below a folder, in no particular order."""
    return pa.array(
        [
            os.path.getsize(os.path.join(where, name))
            for where, _, names in os.walk(folder)
            for name in names
            if name.endswith(".parquet")
        ],
        pa.int64(),
    )
