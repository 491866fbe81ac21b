"""The demo of writes: how a table explodes into small files, and how it does not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console

from windrow.connecting import connect
from windrow.demo.coordinator import running_coordinator
from windrow.demo.days import growing, write_events
from windrow.demo.measuring import Fingerprint, Side, fingerprint, timed
from windrow.models import WriteReport
from windrow.terminal.local_session import local_session, require_java
from windrow.terminal.progress import counting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "demo.events"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTable:
    """One way of writing the events, and what it made.

    Attributes:
        title: For people.
        sizes: Bytes of each file.
        write_s: Seconds to write it.
        read_s: Seconds in which Spark reads it, listing included.
        rows: What it holds, to tell that nothing was lost.
    """

    title: str
    sizes: pa.Array
    write_s: float
    read_s: float
    rows: Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class WritesOutcome:
    """All that the demo measured.

    Attributes:
        days: Partitions of the table.
        tasks: That wrote into all of them.
        target_bytes: Wanted of a file.
        source: The rows that were to be written.
        exploded: Written as most jobs do.
        planned: Written with a plan.
        report: What Windrow says of that write.
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
        """Whether both tables hold the rows that were to be written, each once."""
        return self.source == self.exploded.rows == self.planned.rows


def run_writes_demo(
    data: Path, *, tasks: int, days: int, row_count: int, target_bytes: int, console: Console
) -> WritesOutcome:
    """Run the demo; what it writes stays under `data`.

    Args:
        data: Folder for the events, both tables, the coordinator's state and the logs.
        tasks: Tasks that write without a plan.
        days: Days of the table.
        row_count: Rows of all days.
        target_bytes: Wanted of a file.
        console: Takes the progress.

    Raises:
        DemoError: The demo cannot run.
        MissingPackageError: A package that it needs is not installed.
        MissingJavaError: There is no Java 17 or newer.
        WindrowError: A request or the write failed.
    """
    require_java()
    data = data.resolve()
    work = data / "demo-writes"
    events = data / f"events-{days}-days-{row_count}-rows"
    for folder in ("state", "exploded", "planned"):
        shutil.rmtree(work / folder, ignore_errors=True)
    with counting(console, "Writing events", row_count) as progress:
        write_events(events, growing(days, row_count), progress.advance)
    with (
        running_coordinator(work / "state", [data], work / "coordinator.log") as url,
        connect(url) as client,
    ):
        console.print("Spark starts …", style="dim")
        with local_session("windrow demo writes", work / "spark.log") as spark:
            from windrow.spark import plain_errors

            with plain_errors():
                rows = spark.read.parquet(str(events))
                # It pays for the start of Spark, and for what is compiled at first.
                source = _fingerprint(spark, rows)

                def explode() -> None:
                    rows.repartition(tasks).write.partitionBy("ds").parquet(str(work / "exploded"))

                client.register_table(
                    TABLE,
                    str(work / "planned"),
                    partition_columns={"ds": "string"},
                )
                console.print(f"{tasks:,} tasks write into {days:,} days …", style="dim")
                exploded = _written(
                    spark, f"{tasks:,} tasks, as they come", work / "exploded", explode
                )
                console.print("Windrow counts, plans and writes …", style="dim")
                reports: list[WriteReport] = []
                planned = _written(
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
        exploded=exploded,
        planned=planned,
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
    # Partition columns come last when they are read again, and days as dates.
    plain = rows.selectExpr("id", "customer", "country", "amount", "cast(ds AS string) AS ds")
    side = Side(name="rows", title="rows", open=lambda _: plain, conf={})
    return fingerprint(spark, side, plain.columns)


def file_sizes_below(folder: Path) -> pa.Array:
    """Return the bytes of each Parquet file below a folder, in no order."""
    return pa.array(
        [
            os.path.getsize(os.path.join(where, name))
            for where, _, names in os.walk(folder)
            for name in names
            if name.endswith(".parquet")
        ],
        pa.int64(),
    )
