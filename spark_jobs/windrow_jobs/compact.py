"""Spark job: rewrite the small files of a table as few, partition by partition.

windrow compact sales.events --master spark://spark:7077 --url URL
spark-submit spark_jobs/windrow_jobs/compact.py sales.events --coordinator URL
python -m windrow_jobs.compact sales.events --coordinator URL --filter "ds >= '2026-11-01'"
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import typer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.table import Table

from windrow.calls.compaction import DEFAULT_TARGET_SIZE
from windrow.calls.coordinator import Coordinator
from windrow.calls.plans import SplitPlan
from windrow.commits import begin, recover
from windrow.commits.errors import PartitionChangedError
from windrow.models import TableInfo
from windrow.spark.failures import cause_of, task_failure
from windrow.spark.placement import default_parallelism, require_classic
from windrow.terminal.consoles import show, show_json
from windrow.terminal.options import (
    AsJson,
    FilterText,
    MaxBatchBytes,
    MinFiles,
    TableName,
    TargetSize,
    WorthReads,
)
from windrow.terminal.render import seconds_text, size_text
from windrow_jobs.batches import Batch, Partition, rewrite
from windrow_jobs.errors import PartitionsLeftError
from windrow_jobs.reporting import Tell, now_and_then, tell_tasks, telling
from windrow_jobs.running import CoordinatorUrl, SparkWhenNeeded, client_of_command

StartSpark = Callable[[], SparkSession]


@dataclass(slots=True, kw_only=True)
class Compaction:
    """What the job did.

    Attributes:
        table: Its name.
        batches: That were committed.
        partitions: That were rewritten; a bucket is one of its own.
        files_before: Small files of those.
        files_after: What they became.
        bytes_before: Of the small files.
        bytes_after: Of the files that they became.
        rows: In those, before and after.
        left: Partitions that could not be rewritten, and why.
        seconds: How long it took.
    """

    table: str
    batches: int = 0
    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    left: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def compact(
    start_spark: StartSpark,
    client: Coordinator,
    table: str,
    *,
    target_file_size: int = DEFAULT_TARGET_SIZE,
    filter: str | None = None,
    on_progress: Tell = lambda _: None,
    **options: Any,
) -> Compaction:
    """Rewrite what is worth it, a batch at a time, until nothing is; run again, it has no work.

    Each batch is committed by itself: what a job that is stopped has not come to is done by the
    next one.

    Args:
        start_spark: Gives a classic session; not called if there is no work.
        client: Of the coordinator that knows the table.
        table: Its name.
        target_file_size: Bytes that a file should have.
        filter: On partition columns alone: which partitions to look at.
        on_progress: Told what begins, and what came of it.
        **options: See `windrow.models.CompactionRequest`, for example `max_batch_bytes="1GB"`.

    Raises:
        SparkConnectError: The session is one of Spark Connect.
        RowsDifferError: What was written is not what was read; nothing of it was moved in.
        WriteError: Nothing can be committed to the table.
        ProblemError: The coordinator refuses.
    """
    began_s = time.monotonic()
    # What another job has left half done is not yet in the snapshot.
    recover(client, table)
    work = _Work(
        start_spark,
        client,
        client.table(table),
        filter,
        {"target_file_size": target_file_size, **options},
        on_progress,
        Compaction(table=table),
    )
    while work.once_through():
        pass
    work.done.seconds = time.monotonic() - began_s
    return work.done


@dataclass(slots=True)
class _Work:
    """One run of the job.

    Attributes:
        start_spark: Gives a session.
        client: Of the coordinator.
        table: As it was at the beginning.
        filter: Which partitions to look at.
        options: Of the compaction plans.
        tell: Told of progress.
        done: What came of it.
        left: Partitions that are not tried again.
        scale: Bytes that rows take once they are rewritten, for each byte that was expected.
        refreshed: Whether the table was, since files were not as the snapshot has them.
    """

    start_spark: StartSpark
    client: Coordinator
    table: TableInfo
    filter: str | None
    options: dict[str, Any]
    tell: Tell
    done: Compaction
    left: set[Partition] = field(default_factory=set)
    scale: float = 1.0
    refreshed: bool = False

    def once_through(self) -> bool:
        """Rewrite what is worth it of the current snapshot; tell whether there may be more."""
        before = self.done.batches, len(self.left)
        read: SplitPlan | None = None
        for batch, snapshot_id in self._batches():
            spark = self.start_spark()
            require_classic(spark)
            if read is None:
                # All batches are of one snapshot, and so is the plan to read them by.
                read = self.client.plan(
                    self.table.name,
                    filter=self.filter,
                    snapshot_id=snapshot_id,
                    parallelism=default_parallelism(spark),
                )
            try:
                self._rewrite(spark, batch, read)
            except PartitionChangedError as error:
                # The others of the batch are tried once more, without it.
                changed = [one for one in batch.partitions if one[0] == error.partition]
                self._leave(changed, str(error))
            except (PySparkException, Py4JError) as error:
                failure = task_failure(error)
                if failure is None or self.refreshed:
                    self._leave(batch.partitions, str(failure or cause_of(error)))
                    continue
                # Most likely a file is another by now, or gone: the rest goes on with it.
                self.tell(f"{failure}; refreshing the table, and once more")
                self.client.refresh(self.table.name)
                self.refreshed = True
                return True
        return (self.done.batches, len(self.left)) != before

    def _batches(self) -> Iterator[tuple[Batch, int]]:
        is_bucketed = self.table.definition.bucket_spec is not None
        pages = self.client.plan_compaction(
            self.table.name, filter=self.filter, with_paths=True, **self.options
        )
        for page in pages:
            batch = Batch.of(page, self.left, is_bucketed=is_bucketed)
            if batch is not None:
                yield batch, page.snapshot_id

    def _rewrite(self, spark: SparkSession, batch: Batch, read: SplitPlan) -> None:
        self.tell(
            f"files: {len(batch.paths):,}, {size_text(batch.old_bytes)}; "
            f"partitions: {len(batch.partitions):,}"
        )
        target_bytes = int(self.options["target_file_size"])
        with begin(self.client, self.table.name, kind="compaction") as write:
            made = rewrite(spark, self.client, batch, read, write, target_bytes, self.scale)
            write.commit(made.report, replaces=batch.replaced(read))
        self.scale = made.scale
        done, report = self.done, made.report
        done.batches += 1
        done.partitions += len(batch.partitions)
        done.files_before += len(batch.paths)
        done.files_after += report.files
        done.bytes_before += batch.old_bytes
        done.bytes_after += report.bytes
        done.rows += report.rows
        noun = "file" if report.files == 1 else "files"
        self.tell(f"they became {report.files:,} {noun}, {size_text(report.bytes)}")

    def _leave(self, partitions: list[Partition], reason: str) -> None:
        self.left.update(partitions)
        for folder, bucket in partitions:
            name = folder or self.table.name
            self.done.left[name if bucket is None else f"{name}, bucket {bucket}"] = reason
        self.tell(f"partitions left as they are: {len(partitions):,}, since {reason}")


def run(
    table: str,
    client: Coordinator,
    *,
    master: str | None = None,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Run the job, with a Spark of its own if there is work, and print what it did.

    Args:
        table: The table.
        client: Of the coordinator that knows it.
        master: Where Spark runs; what its configuration says by default.
        as_json: Print JSON, and nothing else, on stdout.
        **options: As of `compact`.

    Raises:
        PartitionsLeftError: Partitions could not be rewritten.
        WindrowError: As `compact` does.
    """
    tell = telling(table, quiet=as_json)
    # Their statistics are of use, those of Spark 3's default are not.
    conf = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    with SparkWhenNeeded(f"windrow compact {table}", master, conf) as start_spark:

        def tell_tasks_once_started() -> None:
            if start_spark.started is not None:
                tell_tasks(start_spark.started, tell)

        with now_and_then(tell_tasks_once_started):
            done = compact(start_spark, client, table, on_progress=tell, **options)
    if as_json:
        show_json(asdict(done))
    else:
        show(_facts(done))
    if done.left:
        raise PartitionsLeftError(table, done.left)


def _facts(done: Compaction) -> Table:
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    if not done.batches:
        facts.add_row("nothing was rewritten", f"in {done.table}")
    else:
        before, after = size_text(done.bytes_before), size_text(done.bytes_after)
        facts.add_row("rewritten", f"{done.files_before:,} files ({before})")
        facts.add_row("they became", f"{done.files_after:,} ({after})")
        facts.add_row("partitions", f"{done.partitions:,}, in batches: {done.batches:,}")
        facts.add_row("rows", f"{done.rows:,}, the same before and after")
    if done.left:
        facts.add_row("partitions left", f"{len(done.left):,}")
    facts.add_row("took", seconds_text(done.seconds))
    return facts


def _main(
    table: TableName,
    coordinator: CoordinatorUrl,
    target_size: TargetSize = None,
    filter_: FilterText = None,
    min_files: MinFiles = None,
    worth_reads: WorthReads = None,
    max_batch_bytes: MaxBatchBytes = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite the small files of a table as few, where that is worth it."""
    options: dict[str, Any] = {
        "target_file_size": target_size,
        "filter": filter_,
        "min_files": min_files,
        "worth_reads": worth_reads,
        "max_batch_bytes": max_batch_bytes,
    }
    given = {name: value for name, value in options.items() if value is not None}
    with client_of_command(coordinator) as client:
        run(table, client, as_json=as_json, **given)


if __name__ == "__main__":
    typer.run(_main)
