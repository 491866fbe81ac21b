"""Spark job: take a table's inventory over the executors, and publish it.

For tables too large for one machine:

    spark-submit spark_jobs/windrow_jobs/inventory.py sales.events --coordinator URL
    python -m windrow_jobs.inventory sales.events --coordinator URL
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import typer
from pyspark.sql import SparkSession
from rich.table import Table

from windrow.calls.coordinator import Coordinator
from windrow.errors import TableChangedError
from windrow.models import PublishedSnapshot
from windrow.terminal.consoles import show, show_json
from windrow.terminal.options import AsJson, TableName
from windrow.terminal.render import seconds_text, size_text
from windrow_jobs.errors import TableMovedError
from windrow_jobs.reporting import OnProgress, now_and_then, tell_tasks, telling
from windrow_jobs.running import CoordinatorUrl, SparkWhenNeeded, client_of_command
from windrow_jobs.taking import take_inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedInventory:
    """What the job did.

    Attributes:
        table: Its name.
        snapshot: What was published.
        folder_count: Folders that were listed.
        empty_count: Files of 0 bytes, which were passed over.
        uncommitted_count: Files that the log of a streaming query does not name.
        seconds: How long it took, publishing included.
    """

    table: str
    snapshot: PublishedSnapshot
    folder_count: int
    empty_count: int
    uncommitted_count: int
    seconds: float


def publish_inventory(
    spark: SparkSession, client: Coordinator, name: str, on_progress: OnProgress = lambda _: None
) -> PublishedInventory:
    """Take a table's inventory over the executors and make it the current snapshot.

    Args:
        spark: A classic session; its executors must reach the table's location.
        client: Of the coordinator that knows the table.
        name: The table.
        on_progress: Told what begins now.

    Raises:
        UnfitTableError: The job cannot take the inventory of such a table.
        UnfitFilesError: The files are not a table, or one of them cannot be read.
        TableMovedError: The table was changed meanwhile.
        SparkConnectError: The session is one of Spark Connect.
        ProblemError: The coordinator refuses.
    """
    began_s = time.monotonic()
    # First, so that a change after it shows.
    version = client.table_version(name)
    max_footer_bytes = client.config().limits.max_footer_bytes
    taken = take_inventory(spark, client.table(name), on_progress, max_footer_bytes)
    on_progress(f"publishing {len(taken.files):,} files")
    try:
        snapshot = client.publish(name, taken.files, if_match=version, listed_at=taken.listed_at)
    except TableChangedError as error:
        raise TableMovedError(name) from error
    return PublishedInventory(
        table=name,
        snapshot=snapshot,
        folder_count=taken.folder_count,
        empty_count=taken.empty_count,
        uncommitted_count=taken.uncommitted_count,
        seconds=time.monotonic() - began_s,
    )


def run(
    name: str, client: Coordinator, *, master: str | None = None, as_json: bool = False
) -> None:
    """Start Spark, run the job and print what it did.

    Args:
        name: The table.
        client: Of the coordinator that knows it.
        master: Where Spark runs; what its configuration says by default.
        as_json: Print JSON, and nothing else, on stdout.

    Raises:
        WindrowError: As `publish_inventory` does.
    """
    # Before Spark starts, which takes seconds.
    client.table(name)
    with SparkWhenNeeded(f"windrow inventory {name}", master) as start_spark:
        spark = start_spark()
        tell = telling(name, quiet=as_json)
        with now_and_then(partial(tell_tasks, spark, tell)):
            published = publish_inventory(spark, client, name, tell)
    snapshot = published.snapshot
    if as_json:
        show_json(
            {
                "table": name,
                "snapshot": snapshot.model_dump(mode="json"),
                "folders_listed": published.folder_count,
                "files_empty": published.empty_count,
                "files_uncommitted": published.uncommitted_count,
                "seconds": round(published.seconds, 3),
            }
        )
        return
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_row("published", f"snapshot {snapshot.snapshot_id} of {name}")
    facts.add_row("files", f"{snapshot.file_count:,}")
    facts.add_row("added", f"{snapshot.files_added:,}")
    facts.add_row("removed", f"{snapshot.files_removed:,}")
    facts.add_row("rows", f"{snapshot.row_count:,}")
    facts.add_row("size", size_text(snapshot.size_bytes))
    facts.add_row("folders listed", f"{published.folder_count:,}")
    if published.empty_count:
        facts.add_row("of 0 bytes", f"{published.empty_count:,}, passed over")
    if published.uncommitted_count:
        facts.add_row("not committed", f"{published.uncommitted_count:,}, passed over")
    facts.add_row("took", seconds_text(published.seconds))
    show(facts)


def _main(
    name: TableName,
    coordinator: CoordinatorUrl,
    as_json: AsJson = False,
) -> None:
    """List a table's files and read their footers over Spark's executors; publish them."""
    with client_of_command(coordinator) as client:
        run(name, client, as_json=as_json)


if __name__ == "__main__":
    typer.run(_main)
