"""Spark job: do the work of maintenance that the coordinator has decided on.

Spark starts only for work that needs it: neither packing files nor dropping partitions does.

windrow maintain --once --master spark://spark:7077 --url URL
spark-submit spark_jobs/windrow_jobs/maintain.py --coordinator URL --once
python -m windrow_jobs.maintain --coordinator URL
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import (
    BusyError,
    ClaimLostError,
    CoordinatorUnreachableError,
    WriteInProgressError,
)
from windrow_calls.outcomes import Compaction
from windrow_calls.terminal.consoles import show, show_json
from windrow_calls.terminal.listings import FactTable
from windrow_calls.terminal.options import AsJson, LeaseSeconds, MaintainedTables, Once
from windrow_core.cards import count_text, seconds_text
from windrow_core.errors import StatedError
from windrow_core.models import ClaimUpdate, PartitionRemoval, WorkItem, WorkOutcome
from windrow_core.models.packs import PackingRequest
from windrow_core.sizes import size_text
from windrow_jobs.errors import JobError
from windrow_jobs.running import (
    CoordinatorUrl,
    SparkWhenNeeded,
    Tell,
    coordinator_of_command,
    now_and_then,
    tell_tasks,
    telling,
)
from windrow_tables.commits import drop_partitions
from windrow_tables.commits.errors import PartitionChangedError
from windrow_tables.packs.packing import PackOutcome, pack_table

if TYPE_CHECKING:
    from windrow_jobs.compact import StartSpark

# The coordinator has decided already what a rewrite is worth.
_ANY_READS = 10**9
# Somebody may have asked for work, and be waiting for it.
_POLL_S = 5.0
_RENEWALS = 3
_MOST_CHARACTERS = 2_000


@dataclass(slots=True, kw_only=True)
class Maintained:
    """What a worker has done.

    Attributes:
        done: Number of work items that it has done.
        gave_up: Number of those that it gave up because a writer was faster.
        failed: Number of those that failed.
        files_before: Number of small files that were rewritten.
        files_after: Number of files that replace them.
        bytes_before: Size of the small files.
        bytes_after: Size of the files that replace them.
        files_packed: Number of files whose rows were copied into packs.
        bytes_packed: Size of these files.
        files_dropped: Number of files of old partitions that were dropped.
        bytes_dropped: Size of these files.
        seconds: Duration.
        reason: Why the last failure happened; None if there was none.
    """

    done: int = 0
    gave_up: int = 0
    failed: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    files_packed: int = 0
    bytes_packed: int = 0
    files_dropped: int = 0
    bytes_dropped: int = 0
    seconds: float = 0.0
    reason: str | None = None

    @property
    def items(self) -> int:
        """Number of all work items."""
        return self.done + self.gave_up + self.failed


def maintain(
    start_spark: StartSpark,
    client: Coordinator,
    *,
    pattern: str = "*",
    once: bool = True,
    lease_seconds: int = 60,
    worker: str | None = None,
    without_spark: bool = False,
    processes: int | None = None,
    on_progress: Tell = lambda _: None,
) -> Maintained:
    """Do the work that is due, one item after another.

    Several workers share the work; that of one which dies is given to another once its lease has
    run out. An item is one or more commits, each of which is safe.

    Args:
        start_spark: Returns a classic session; not called if there is no work.
        client: Client of the coordinator.
        pattern: Only work on these tables.
        once: Whether to end when nothing is due; otherwise this waits for work for ever.
        lease_seconds: How long an item belongs to this worker unless it renews its lease.
        worker: Name of this worker, for receipts; host and process by default.
        without_spark: Only do work that needs no Spark: pack files, and drop old partitions.
        processes: How many processes pack files, as `pack_table` says.
        on_progress: Called with each step and its outcome.

    Raises:
        ProblemError: The coordinator refuses.
    """
    began_s = time.monotonic()
    name = worker or f"{socket.gethostname()}:{os.getpid()}"
    total = Maintained()
    client.decide_maintenance()
    while True:
        item = client.claim_work(
            name, pattern=pattern, lease_seconds=lease_seconds, without_spark=without_spark
        )
        if item is not None:
            _do(start_spark, client, item, lease_seconds, total, on_progress, processes)
        elif once:
            total.seconds = round(time.monotonic() - began_s, 3)
            return total
        else:
            time.sleep(_POLL_S)


def _do(
    start_spark: StartSpark,
    client: Coordinator,
    item: WorkItem,
    lease_seconds: int,
    total: Maintained,
    tell: Tell,
    processes: int | None,
) -> None:
    """Do one item, and report how it ended."""
    began_s = time.monotonic()
    what = "to pack" if item.packing else "to rewrite" if item.removal is None else "to drop"
    count = item.prediction.partitions
    files = count_text(item.prediction.files, "file")
    tell(f"{item.table}: {files} in {count_text(count, 'partition')} {what}")
    with _renewing(client, item, lease_seconds):
        if item.packing is not None:
            update = _pack(client, item, item.packing, began_s, processes)
        elif item.removal is not None:
            update = _drop(client, item, item.removal, began_s)
        else:
            update = _outcome(start_spark, client, item, began_s, tell)
    if update.state == "done":
        total.done += 1
    elif update.state == "gave_up":
        total.gave_up += 1
    else:
        total.failed += 1
        total.reason = f"{item.table}: {update.text}"
    if (outcome := update.outcome) is not None:
        if item.packing is not None:
            total.files_packed += outcome.files_before
            total.bytes_packed += outcome.bytes_before
        elif item.removal is None:
            total.files_before += outcome.files_before
            total.files_after += outcome.files_after
            total.bytes_before += outcome.bytes_before
            total.bytes_after += outcome.bytes_after
        else:
            total.files_dropped += outcome.files_before
            total.bytes_dropped += outcome.bytes_before
    tell(f"{item.table}: {update.text}")
    try:
        client.update_claim(item.claim_id, update)
    except ClaimLostError as error:
        # What was committed stays; whoever has the work now finds nothing left to do.
        tell(str(error))


def _pack(
    client: Coordinator,
    item: WorkItem,
    packing: PackingRequest,
    began_s: float,
    processes: int | None,
) -> ClaimUpdate:
    """Pack small files, without Spark; packs that were published before a failure stay."""
    try:
        # The policy says so where that is needed, or there would be no such work.
        options = packing.model_dump(exclude={"pieces"}) | {"rights_are_stated": True}
        done = pack_table(client, item.table, processes=processes, **options)
    except (CoordinatorUnreachableError, BusyError):
        # Nobody could be told; the work is given to another worker.
        raise
    except (StatedError, OSError) as error:
        return _update("failed", str(error))
    files, size_bytes = done.files, done.plan.size_bytes
    outcome = WorkOutcome(
        files_before=files,
        files_after=len(done.packs),
        bytes_before=size_bytes if files else 0,
        bytes_after=sum(one.size_bytes for one in done.packs),
        rows=sum(one.row_count for one in done.packs),
        core_seconds=round(done.core_seconds, 3),
        seconds=round(time.monotonic() - began_s, 3),
    )
    return _update("done", _packing_text(item, done, outcome), outcome)


def _packing_text(item: WorkItem, done: PackOutcome, outcome: WorkOutcome) -> str:
    if not done.packs:
        return "nothing was left to pack"
    packs = count_text(len(done.packs), "pack")
    text = (
        f"{count_text(done.files, 'file')} ({size_text(outcome.bytes_before)}) are in {packs} "
        f"({size_text(outcome.bytes_after)}): {seconds_text(outcome.core_seconds)} of one core, "
        f"predicted {seconds_text(item.prediction.cost_seconds)}"
    )
    if not done.left:
        return text
    path, reason = done.left[0]
    return f"{text}; left alone: {len(done.left):,}, such as {path}: {reason}"


def _drop(
    client: Coordinator, item: WorkItem, removal: PartitionRemoval, began_s: float
) -> ClaimUpdate:
    """Drop the partitions that a policy does not keep, in one commit, without Spark."""
    assert item.filter is not None
    doubt = doubt_about(removal, datetime.now(timezone.utc))
    if doubt is not None:
        return _update("failed", doubt)
    try:
        result = drop_partitions(client, item.table, item.filter.model_dump())
    except (WriteInProgressError, PartitionChangedError) as error:
        return _update("gave_up", f"a writer was faster: {error}")
    except (CoordinatorUnreachableError, BusyError):
        # Nobody could be told; the work is given to another worker.
        raise
    except StatedError as error:
        return _update("failed", str(error))
    outcome = WorkOutcome(
        partitions=len(result.folders),
        files_before=result.files,
        bytes_before=result.size_bytes,
        rows=result.rows or 0,
        seconds=round(time.monotonic() - began_s, 3),
    )
    if not result.files:
        return _update("done", "nothing was left to drop", outcome)
    rows = "" if result.rows is None else f", {count_text(result.rows, 'row')}"
    text = (
        f"dropped {count_text(len(result.folders), 'partition')} with "
        f"{count_text(result.files, 'file')} ({size_text(result.size_bytes)}{rows}): "
        f"{removal.column} before {removal.before} in {removal.zone}; {_folders_text(result.folders)}"
    )
    return _update("done", text, outcome)


def doubt_about(removal: PartitionRemoval, now: datetime) -> str | None:
    """Return why partitions should not be dropped by this worker's clock; None if they may.

    Args:
        removal: What a policy does not keep, as the coordinator says.
        now: Now by this worker's clock, with a time zone.
    """
    if removal.keep_days is None:
        # The coordinator is of an earlier version.
        return None
    try:
        zone: tzinfo = ZoneInfo(removal.zone)
    except (ZoneInfoNotFoundError, ValueError):
        zone = timezone.utc
    first = now.astimezone(zone).date() - timedelta(days=removal.keep_days)
    # Midnight may lie between the two looks at a clock, and the zone may not be known here.
    if removal.before > first + timedelta(days=1):
        return (
            f"nothing was dropped: the coordinator would drop days before {removal.before}, but by this "
            f"worker's clock the first day to keep is {first}: make sure that both clocks are right"
        )
    if not removal.may_drop_all and (removal.newest is None or removal.newest < removal.before):
        return (
            f"nothing was dropped: all days of the table are before {removal.before}, and its policy "
            "does not set --may-drop-all"
        )
    return None


def _folders_text(folders: Sequence[str]) -> str:
    return folders[0] if len(folders) == 1 else f"{folders[0]} to {folders[-1]}"


def _outcome(
    start_spark: StartSpark, client: Coordinator, item: WorkItem, began_s: float, tell: Tell
) -> ClaimUpdate:
    from windrow_jobs.compact import compact

    done = Compaction(table=item.table)
    try:
        compact(
            start_spark,
            client,
            item.table,
            target_file_size=item.target_file_size,
            readers_may_see_both=item.readers_may_see_both,
            quiet_seconds=item.min_age_seconds,
            on_progress=lambda text: tell(f"{item.table}: {text}"),
            done=done,
            folders=item.folders,
            small_file_size=item.small_file_size,
            min_files=item.min_files,
            worth_reads=_ANY_READS,
            max_batch_bytes=max(8 * 2**30, item.target_file_size),
        )
    except WriteInProgressError as error:
        return _update("gave_up", f"a writer was faster: {error}", _outcome_of(done, began_s))
    except (CoordinatorUnreachableError, BusyError):
        # Nobody could be told; the work is given to another worker.
        raise
    except StatedError as error:
        # Batches before it may have been committed.
        return _update("failed", str(error), _outcome_of(done, began_s))
    outcome = _outcome_of(done, began_s)
    if done.batches or not done.left:
        return _update("done", _text(item, done), outcome)
    if done.conflicts == len(done.left):
        return _update("gave_up", f"a writer was faster: {_first_reason(done)}", outcome)
    return _update("failed", _first_reason(done), outcome)


def _outcome_of(done: Compaction, began_s: float) -> WorkOutcome:
    return WorkOutcome(
        partitions=done.folders,
        files_before=done.files_before,
        files_after=done.files_after,
        bytes_before=done.bytes_before,
        bytes_after=done.bytes_after,
        rows=done.rows,
        core_seconds=round(done.core_seconds, 3),
        seconds=round(time.monotonic() - began_s, 3),
    )


def _update(state: str, text: str, outcome: WorkOutcome | None = None) -> ClaimUpdate:
    return ClaimUpdate.model_validate(
        {"state": state, "text": text[:_MOST_CHARACTERS], "outcome": outcome}
    )


def _text(item: WorkItem, done: Compaction) -> str:
    if not done.batches:
        return "nothing was left to rewrite"
    size = item.small_file_size
    below = "" if size is None else f" below {size_text(size)}"
    text = (
        f"{count_text(done.files_before, 'file')}{below} ({size_text(done.bytes_before)}) in "
        f"{count_text(done.folders, 'partition')} became {done.files_after:,} "
        f"({size_text(done.bytes_after)}): {seconds_text(done.core_seconds)} of one core, predicted "
        f"{seconds_text(item.prediction.cost_seconds)}"
    )
    return f"{text}; left alone: {len(done.left):,}, {_first_reason(done)}" if done.left else text


def _first_reason(done: Compaction) -> str:
    name, reason = next(iter(done.left.items()))
    return f"{name}: {reason}"


@contextmanager
def _renewing(client: Coordinator, item: WorkItem, lease_seconds: int) -> Iterator[None]:
    """Renew the lease of an item in a thread until the block ends."""
    end = threading.Event()
    renewal = ClaimUpdate(state="running", lease_seconds=lease_seconds)

    def renew() -> None:
        while not end.wait(lease_seconds / _RENEWALS):
            try:
                client.update_claim(item.claim_id, renewal)
            except ClaimLostError:
                return
            except StatedError:
                # The coordinator may be back before the lease runs out.
                continue

    keeper = threading.Thread(target=renew, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        end.set()
        keeper.join()


def run(
    client: Coordinator,
    *,
    pattern: str = "*",
    once: bool = False,
    lease_seconds: int = 60,
    master: str | None = None,
    without_spark: bool = False,
    as_json: bool = False,
) -> None:
    """Run the job, starting Spark only if there is work, and print the outcome.

    Args:
        client: Client of the coordinator.
        pattern: Only work on these tables.
        once: Whether to end when nothing is due.
        lease_seconds: How long an item belongs to this worker unless it renews its lease.
        master: Spark master; taken from Spark's configuration by default.
        without_spark: Only do work that needs no Spark.
        as_json: Print only JSON on stdout.
    """
    tell = telling("maintenance", quiet=as_json)
    with SparkWhenNeeded("windrow maintain", master) as start_spark:

        def tell_tasks_once_started() -> None:
            if start_spark.started is not None:
                tell_tasks(start_spark.started, tell)

        with now_and_then(tell_tasks_once_started):
            total = maintain(
                start_spark,
                client,
                pattern=pattern,
                once=once,
                lease_seconds=lease_seconds,
                without_spark=without_spark,
                processes=os.cpu_count(),
                on_progress=tell,
            )
    if as_json:
        show_json(asdict(total))
    else:
        show(_facts(total))
    if total.failed:
        raise JobError(
            f"work that failed: {total.failed:,}, such as {total.reason}; it is tried again after a "
            "while, and `windrow maintain --explain TABLE` shows how it went"
        )


def _facts(total: Maintained) -> FactTable:
    if not total.items:
        return FactTable([("nothing was due", "`windrow maintain --explain TABLE` says why")])
    items = f"{total.done:,} done, {total.gave_up:,} given up, {total.failed:,} failed"
    before, after = size_text(total.bytes_before), size_text(total.bytes_after)
    rows = [
        ("work items", items),
        ("rewritten", f"{count_text(total.files_before, 'file')} ({before})"),
        ("rewritten as", f"{count_text(total.files_after, 'file')} ({after})"),
    ]
    if total.files_packed:
        size = size_text(total.bytes_packed)
        rows.append(("packed", f"{count_text(total.files_packed, 'file')} ({size})"))
    if total.files_dropped:
        size = size_text(total.bytes_dropped)
        files = f"{count_text(total.files_dropped, 'file')} of old partitions ({size})"
        rows.append(("dropped", files))
    return FactTable([*rows, ("duration", seconds_text(total.seconds))])


def _main(
    coordinator: CoordinatorUrl,
    tables: MaintainedTables = "*",
    once: Once = False,
    lease_seconds: LeaseSeconds = 60,
    as_json: AsJson = False,
) -> None:
    """Do the work of maintenance that the coordinator has decided on."""
    with coordinator_of_command(coordinator) as client:
        run(client, pattern=tables, once=once, lease_seconds=lease_seconds, as_json=as_json)


if __name__ == "__main__":
    typer.run(_main)
