"""Outcomes of jobs: a compaction, and the warming of caches."""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow_core.cards import Card, Grid, Shown, card_of, count_text, seconds_text
from windrow_core.sizes import size_text

_UNPLACED = "{:,}: none has room, or none is running"


@dataclass(slots=True, kw_only=True, repr=False)
class Compaction(Shown):
    """The outcome of a compaction.

    Attributes:
        table: Name of the table.
        batches: Number of committed batches.
        partitions: Number of rewritten partitions; each bucket counts separately.
        folders: Number of their folders.
        files_before: Number of small files before.
        files_after: Number of files that replace them.
        bytes_before: Size of the small files.
        bytes_after: Size of the files that replace them.
        rows: Number of rows in them, the same before and after.
        left: Partitions that could not be rewritten, and why.
        conflicts: Number of those that a writer was at.
        core_seconds: Seconds that tasks worked, and that the driver did while it did not wait for
            them, together.
        alone: Why the other partitions were left alone, as sentences with their numbers.
        seconds: Duration of the job.
    """

    table: str
    batches: int = 0
    partitions: int = 0
    folders: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    left: dict[str, str] = field(default_factory=dict)
    conflicts: int = 0
    core_seconds: float = 0.0
    alone: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True, repr=False)
class Warmth(Shown):
    """The outcome of warming caches, in files, and in bytes of fetched and already cached files.

    Attributes:
        table: Name of the table.
        rule: The requested rule; None means all rules.
        cacheable_files: Files that the rules mark.
        fetched_files: Files that their chosen workers have fetched.
        present_files: Files that their chosen workers already held.
        unplaced_files: Files without a worker, since none is running or has room.
        elsewhere_files: Files whose tasks Spark ran on other hosts at every attempt; there is one
            attempt where the session runs no tasks on their host.
        failed_files: Files that could not be fetched or stored.
        reasons: Reasons for a few of the failures.
        seconds: Duration of the job.
    """

    table: str
    rule: str | None
    cacheable_files: int = 0
    fetched_files: int = 0
    fetched_bytes: int = 0
    present_files: int = 0
    present_bytes: int = 0
    unplaced_files: int = 0
    elsewhere_files: int = 0
    failed_files: int = 0
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0


@card_of.register
def _(done: Compaction) -> Card:
    facts = [("took", seconds_text(done.seconds))]
    if done.batches:
        facts[:0] = [
            ("before", f"{count_text(done.files_before, 'file')}, {size_text(done.bytes_before)}"),
            ("after", f"{count_text(done.files_after, 'file')}, {size_text(done.bytes_after)}"),
            (
                "partitions",
                f"{done.partitions:,} in {count_text(done.batches, 'batch', 'batches')}",
            ),
            ("rows", f"{done.rows:,}, the same before and after"),
        ]
    elif not done.left:
        facts[:0] = [("files", "none was worth rewriting")]
    if done.left:
        facts.append(("left unchanged", count_text(len(done.left), "partition")))
    grids = (
        [Grid(("partition…", "why…"), list(done.left.items()), "Left unchanged")]
        if done.left
        else []
    )
    facts += [("left alone", text) for text in done.alone]
    return Card(f"Compaction of {done.table}", facts, grids)


@card_of.register
def _(warmth: Warmth) -> Card:
    facts = [
        ("cacheable files", f"{warmth.cacheable_files:,}"),
        ("fetched", f"{warmth.fetched_files:,}, {size_text(warmth.fetched_bytes)}"),
        ("already cached", f"{warmth.present_files:,}, {size_text(warmth.present_bytes)}"),
        *(
            [("without a worker", _UNPLACED.format(warmth.unplaced_files))]
            * (warmth.unplaced_files > 0)
        ),
        ("failed", f"{warmth.failed_files + warmth.elsewhere_files:,}"),
        ("took", seconds_text(warmth.seconds)),
    ]
    return Card(f"Warming of {warmth.table}", facts, remark="; ".join(warmth.reasons))
