"""Spark job: merge the small files of a table, partition by partition.

windrow compact sales.events --master spark://spark:7077 --url URL
spark-submit spark_jobs/windrow_jobs/compact.py sales.events --coordinator URL
python -m windrow_jobs.compact sales.events --coordinator URL --filter "ds >= '2026-11-01'"
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow.compute as pc
import typer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windrow_calls.compaction import DEFAULT_TARGET_SIZE
from windrow_calls.coordinator import Coordinator
from windrow_calls.outcomes import Compaction
from windrow_calls.terminal.consoles import show, show_json
from windrow_calls.terminal.fields import CompactionFields, ReadersMaySeeBoth, with_fields
from windrow_calls.terminal.options import (
    AsJson,
    TableName,
)
from windrow_calls.terminal.render import drawn
from windrow_core.cards import count_text
from windrow_core.files.places import place_of
from windrow_core.files.remote import contents_of
from windrow_core.files.table_paths import absolute_path, is_outside
from windrow_core.models import CompactionPlan, TableInfo
from windrow_core.sizes import size_text
from windrow_jobs.batches import Batch, Partition, rewrite
from windrow_jobs.errors import JobError, NoConsentError
from windrow_jobs.running import (
    CoordinatorUrl,
    SparkWhenNeeded,
    Tell,
    coordinator_of_command,
    now_and_then,
    tell_tasks,
    telling,
)
from windrow_spark.failures import stated_cause, task_failure
from windrow_spark.placement import require_classic
from windrow_tables.commits import begin, recover
from windrow_tables.commits.errors import PartitionChangedError
from windrow_tables.commits.locations import writable_location
from windrow_tables.commits.summaries import Summaries, why_unchanged
from windrow_tables.merging.quiet import why_busy

_UNSEEN_REMEDY = (
    "give all executors the table's folder under the same path, or refresh the table if it is gone"
)

# Folders on stores that are listed at once.

StartSpark = Callable[[], SparkSession]


def compact(
    start_spark: StartSpark,
    client: Coordinator,
    table: str,
    *,
    target_file_size: int = DEFAULT_TARGET_SIZE,
    filter: str | None = None,
    readers_may_see_both: bool = False,
    quiet_seconds: float = 0.0,
    on_progress: Tell = lambda _: None,
    done: Compaction | None = None,
    **options: Any,
) -> Compaction:
    """Rewrite all worthwhile partitions, batch by batch; a second run has no work.

    Each batch is committed separately, so that the next run continues where a stopped one ended.
    Each partition is rewritten once, whatever writers add to it meanwhile.

    Args:
        start_spark: Returns a classic session; not called if there is no work.
        client: Client of the coordinator that knows the table.
        table: Name of the table.
        target_file_size: Target size of a file in bytes.
        filter: Filter on partition columns only, which selects the partitions to consider.
        readers_may_see_both: Whether readers that list folders may find old and new files, and so
            rows twice, until the old ones are removed; needed for tables on HDFS and S3, and not elsewhere.
        quiet_seconds: A partition that was written to within that time, before its turn comes, is
            left.
        on_progress: Called with each step and its outcome.
        done: The outcome, filled in step by step, for callers that want it if this fails too.
        **options: See `windrow_core.models.CompactionRequest`, for example `max_batch_bytes="1GB"`.

    Raises:
        NoConsentError: The table needs `readers_may_see_both`.
        SparkConnectError: The session is one of Spark Connect.
        WriteError: Nothing can be committed to the table.
        ProblemError: The coordinator refuses.
    """
    began_s = time.monotonic()
    done = Compaction(table=table) if done is None else done
    if place_of(writable_location(client.table(table))).shows_both and not readers_may_see_both:
        raise NoConsentError(table)
    # Commits that another job left unfinished are not yet in the snapshot.
    recover(client, table)
    info = client.table(table)
    work = _Work(
        start_spark,
        client,
        info,
        filter,
        {"target_file_size": target_file_size, **options},
        client.config().limits.max_footer_bytes,
        on_progress,
        done,
        writable_location(info),
        quiet_seconds,
    )
    try:
        while work.rewrite_snapshot():
            pass
    finally:
        done.seconds = time.monotonic() - began_s
        done.core_seconds = done.seconds - work.idle_seconds + work.task_seconds
    return done


@dataclass(slots=True)
class _Work:
    """One run of the job.

    Attributes:
        start_spark: Returns a session.
        client: The coordinator's client.
        table: The table as it was at the start.
        filter: Filter that selects the partitions to consider.
        options: Options of the compaction plans.
        max_footer_bytes: Files with longer footers are left as they are.
        tell: Called with progress.
        done: The outcome so far.
        location: Absolute path, or URI, of the table.
        quiet_seconds: Partitions that were written to within that time are left.
        left: Partitions that are not tried again.
        busy: Those of them that somebody writes to.
        turns: Partitions that had their turn, and were rewritten.
        own: Texts in the names of the new files.
        scale: Actual size of rewritten rows, as a multiple of the expected size.
        refreshed: Whether the table was refreshed because files differed from the snapshot.
        idle_seconds: How long the driver waited for a session, and for tasks.
        task_seconds: How long the tasks worked, together.
    """

    start_spark: StartSpark
    client: Coordinator
    table: TableInfo
    filter: str | None
    options: dict[str, Any]
    max_footer_bytes: int
    tell: Tell
    done: Compaction
    location: str
    quiet_seconds: float
    left: set[Partition] = field(default_factory=set)
    busy: set[Partition] = field(default_factory=set)
    turns: set[Partition] = field(default_factory=set)
    own: list[str] = field(default_factory=list)
    scale: float = 1.0
    refreshed: bool = False
    idle_seconds: float = 0.0
    task_seconds: float = 0.0

    def rewrite_snapshot(self) -> bool:
        """Rewrite the worthwhile partitions of a snapshot; return whether more may follow."""
        before = self.done.batches, len(self.left)
        # Files that have come to these since then are left to the next run.
        past = frozenset(self.turns)
        for page in self._pages():
            self.done.alone = [
                f"{count_text(one.partitions, 'partition')}: {one.explanation}"
                for one in page.left_alone
            ]
            if (batch := Batch.of(page, self.left | past)) is not None:
                self._leave_unfit(batch)
                batch = Batch.of(page, self.left | past)
            if batch is None:
                continue
            began_s = time.monotonic()
            spark = self.start_spark()
            self.idle_seconds += time.monotonic() - began_s
            require_classic(spark)
            try:
                if self._rewrite(spark, batch):
                    return True
            except PartitionChangedError as error:
                # The other partitions of the batch are tried again without it.
                self._leave(batch.partitions_in(error.partition), str(error), is_busy=True)
            except (PySparkException, Py4JError) as error:
                self._leave(list(batch.partitions), str(task_failure(error) or stated_cause(error)))
        return (self.done.batches, len(self.left)) != before

    def _leave_unfit(self, batch: Batch) -> None:
        """Leave the partitions that a summary lists, or that somebody writes to."""
        summaries = Summaries(self.location)

        def reason(folders: Collection[str]) -> tuple[str, bool] | None:
            for folder in folders:
                if is_outside(folder):
                    return "it lies elsewhere than the table, where nothing is changed", False
                _, files = contents_of(absolute_path(self.location, folder))
                if (summary := summaries.of(folder, files)) is not None:
                    return why_unchanged(summary), False
                if (text := why_busy(files, self.quiet_seconds, self.own)) is not None:
                    return text, True
            return None

        folders = batch.folders()
        with ThreadPoolExecutor(place_of(self.location).listings) as threads:
            reasons = zip(folders, threads.map(reason, folders.values()), strict=True)
            for partition, unfit in reasons:
                if unfit is not None:
                    text, is_busy = unfit
                    self._leave([partition], text, is_busy=is_busy)

    def _pages(self) -> Iterator[CompactionPlan]:
        return self.client.plan_compaction(
            self.table.name, filter=self.filter, with_paths=True, **self.options
        ).stream()

    def _rewrite(self, spark: SparkSession, batch: Batch) -> bool:
        """Rewrite a batch; return whether the table was refreshed, as files of it are gone."""
        self.tell(
            f"files: {len(batch.paths):,}, {size_text(batch.old_bytes)}; "
            f"partitions: {len(batch.partitions):,}"
        )
        target_bytes = int(self.options["target_file_size"])
        with begin(self.client, self.table.name, kind="compaction") as write:
            rewritten = rewrite(
                spark,
                batch,
                write,
                target_bytes,
                self.scale,
                self.max_footer_bytes,
                self.quiet_seconds,
                self.own,
            )
            self.idle_seconds += rewritten.job_seconds
            self.task_seconds += rewritten.task_seconds
            if rewritten.report.files:
                write.commit(rewritten.report, replaces=rewritten.replaces)
        for partition, reason in rewritten.left.items():
            self._leave([partition], reason, is_busy=partition in rewritten.busy)
        done, report = self.done, rewritten.report
        if report.files:
            self.scale = rewritten.scale
            self.turns.update(rewritten.partitions)
            self.own.append(str(uuid.UUID(write.write_id)))
            done.batches += 1
            done.partitions = len(self.turns)
            done.folders = len({folder for folder, _ in self.turns})
            done.files_before += len(rewritten.replaces)
            done.files_after += report.files
            done.bytes_before += int(pc.sum(rewritten.replaces["size_bytes"]).as_py())
            done.bytes_after += report.bytes
            done.rows += report.rows
            self.tell(f"rewritten as {count_text(report.files, 'file')}, {size_text(report.bytes)}")
        if not rewritten.vanished:
            return False
        if self.refreshed:
            for partition, path in rewritten.vanished.items():
                self._leave([partition], f"{path} is not seen by Spark's tasks: {_UNSEEN_REMEDY}")
            return False
        path = next(iter(rewritten.vanished.values()))
        self.tell(f"{path} is gone; refreshing the table and trying again")
        self.client.refresh(self.table.name)
        self.refreshed = True
        return True

    def _leave(self, partitions: list[Partition], reason: str, *, is_busy: bool = False) -> None:
        self.left.update(partitions)
        self.busy.update(partitions if is_busy else ())
        self.done.conflicts = len(self.busy)
        for folder, bucket in partitions:
            name = folder or self.table.name
            self.done.left[name if bucket is None else f"{name}, bucket {bucket}"] = reason
        self.tell(f"left {count_text(len(partitions), 'partition')} unchanged: {reason}")


def run(
    table: str,
    client: Coordinator,
    *,
    master: str | None = None,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Run the job, starting Spark only if there is work, and print the outcome.

    Args:
        table: Name of the table.
        client: Client of the coordinator that knows the table.
        master: Spark master; taken from Spark's configuration by default.
        as_json: Print only JSON on stdout.
        **options: See `compact`.
    """
    tell = telling(table, quiet=as_json)
    with SparkWhenNeeded(f"windrow compact {table}", master) as start_spark:

        def tell_tasks_once_started() -> None:
            if start_spark.started is not None:
                tell_tasks(start_spark.started, tell)

        try:
            with now_and_then(tell_tasks_once_started):
                done = compact(start_spark, client, table, on_progress=tell, **options)
        except KeyboardInterrupt as error:
            tell(f"{str(error) or 'stopped'}; the same command continues after the last commit")
            raise
    if as_json:
        show_json(asdict(done))
    else:
        show(drawn(done))
    if done.left:
        name, reason = next(iter(done.left.items()))
        raise JobError(
            f"partitions of table {table!r} that could not be rewritten: {len(done.left):,}, such "
            f"as {name} ({reason}); the same command tries them again"
        )


@with_fields
def _main(
    table: TableName,
    coordinator: CoordinatorUrl,
    fields: CompactionFields,
    readers_may_see_both: ReadersMaySeeBoth = False,
    as_json: AsJson = False,
) -> None:
    """Merge small files of a table where that pays off."""
    with coordinator_of_command(coordinator) as client:
        run(table, client, as_json=as_json, readers_may_see_both=readers_may_see_both, **fields)


if __name__ == "__main__":
    typer.run(_main)
