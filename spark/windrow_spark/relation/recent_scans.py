"""The latest scans: what queries asked for, what was planned, and what was read."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext

from windrow_core.cards import Card, Cell, Shown, ShownList, card_of, count_text, field_text, row_of
from windrow_core.filter_text import filter_text
from windrow_core.models import Plan, ScanReport, WayFigures
from windrow_core.models.plan_cards import pruning_of
from windrow_core.sizes import size_text
from windrow_spark.relation.counting import counted, counter_of, counts_of, forget_others
from windrow_spark.relation.filters import Tree
from windrow_tables.executor.prefetching import most_prefetched_bytes
from windrow_tables.executor.shipping import Count

_KEPT = 100
_MOST_REPORTED = 100


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Figures(Shown):
    """What a scan's tasks have read; a task counts once, when it has ended, despite retries.

    Attributes:
        files: Number of files.
        bytes: Their bytes, whichever columns were asked for.
        rows: Rows read from them, before the query's own conditions were applied.
        cache_hits: Number of files that were in the cache of the host that read them.
        delete_files: How often files that name deleted rows were opened.
        requests: Number of requests to object stores.
        retries: Number of requests that were repetitions.
        waited_s: Seconds that requests waited because the store asked for it or was in trouble, or
            to keep to `requests_per_second`; summed over all requests, which wait side by side.
        prefetched_bytes: Most bytes of files that a task held before it decoded them, in whole MiB.
    """

    files: int
    bytes: int
    rows: int
    cache_hits: int
    delete_files: int = 0
    requests: int = 0
    retries: int = 0
    waited_s: float = 0.0
    prefetched_bytes: int = 0


@dataclass(slots=True, kw_only=True, repr=False)
class Scan(Shown):
    """One use of a table in a query.

    Attributes:
        table: The table.
        columns: The columns that the query needs from it.
        conditions: Conditions from the query's filters that the plan applied, as trees joined by
            AND.
        plan: The plan, without groups; `plan.summary` counts files, bytes, rows and groups, and
            `client.explain(plan.plan_id)` explains them.
        context: The Spark context of the application that reads it.
        planning_seconds: How long the query waited for the plan.
        native_files: How many of its files Spark's own reader reads; all others are read in groups,
            or from packs.
        packed_files: How many files have their rows read from packs.
        why_files: Why files are read by themselves though packs may hold them; empty if nothing
            keeps the scan from packs.
        unreadable_packs: Paths of packs that cannot be read.
    """

    table: str
    columns: tuple[str, ...]
    conditions: tuple[Tree, ...]
    plan: Plan
    context: SparkContext = field(repr=False, compare=False)
    planning_seconds: float = field(default=0.0, compare=False)
    native_files: int = field(default=0, init=False, compare=False)
    packed_files: int = field(default=0, init=False, compare=False)
    why_files: str = field(default="", init=False, compare=False)
    unreadable_packs: Sequence[str] = field(default=(), init=False, compare=False)
    _began_at: float = field(default_factory=time.time, init=False, repr=False, compare=False)
    _native: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def read(self) -> Figures:
        """What has been read so far, both ways and in all queries that share the scan."""
        groups = counts_of(self.context, self.plan.plan_id)
        files, bytes_, rows, _ = self._native_counts()
        return Figures(
            files=groups["files"] + files,
            bytes=groups["bytes"] + bytes_,
            rows=groups["rows"] + rows,
            cache_hits=groups["cache_hits"],
            delete_files=groups["delete_files"],
            requests=groups["requests"],
            retries=groups["retries"],
            waited_s=groups["waited_ms"] / 1_000,
            prefetched_bytes=most_prefetched_bytes(groups),
        )

    def _native_counts(self) -> tuple[int, int, int, int]:
        """Return files, bytes, rows and nanoseconds of Spark's own reader."""
        native = [list(map(int, reader.counts().split())) for reader in self._native]
        files, bytes_, rows, nanos = map(sum, zip((0, 0, 0, 0), *native, strict=True))
        return files, bytes_, rows, nanos

    def report(self, ended_at: float) -> ScanReport:
        """Return what the scan took, as its coordinator is told.

        Args:
            ended_at: When its query ended, in seconds since 1970.
        """
        groups = counts_of(self.context, self.plan.plan_id)
        files, bytes_, rows, nanos = self._native_counts()
        return ScanReport(
            plan_id=self.plan.plan_id,
            seconds=max(ended_at - self._began_at, 0.0),
            planning_seconds=self.planning_seconds,
            groups=WayFigures(
                files=groups["files"],
                bytes=groups["bytes"],
                rows=groups["rows"],
                seconds=groups["read_us"] / 1e6,
            ),
            native=WayFigures(files=files, bytes=bytes_, rows=rows, seconds=nanos / 1e9),
            cache_hits=groups["cache_hits"],
            requests=groups["requests"],
            retries=groups["retries"],
            waited_seconds=groups["waited_ms"] / 1_000,
            unreadable_packs=list(self.unreadable_packs[:_MOST_REPORTED]),
        )

    def count_groups(self) -> Count:
        """Return the function to which tasks report what they have read of groups."""
        return counted(counter_of(self.context), self.plan.plan_id)

    def count_native(self, relation: Any, files: int) -> None:
        """Include what the JVM's relation of some files reads, whose format counts it."""
        self.native_files += files
        self._native.append(relation.fileFormat())

    def count_packed(
        self, relation: Any, files: int, why_files: str, unreadable: Sequence[str]
    ) -> None:
        """Include what the JVM's relation of some packs reads, and why files are read by themselves."""
        self.packed_files, self.why_files = files, why_files
        self.unreadable_packs = unreadable
        if relation is not None:
            self._native.append(relation.fileFormat())

    def __str__(self) -> str:
        """Its description in Spark's UI."""
        summary = self.plan.summary
        return (
            f"windrow {self.table} snapshot {self.plan.snapshot_id}, plan {self.plan.plan_id}: "
            f"{count_text(summary.files_planned, 'file')} in "
            f"{count_text(summary.group_count, 'group')}"
        )


@card_of.register
def _(scan: Scan) -> Card:
    plan, read = scan.plan, scan.read
    conditions = " AND ".join(filter_text(tree) for tree in scan.conditions)
    facts = [
        ("snapshot", str(plan.snapshot_id)),
        ("conditions", conditions or "none that the plan could use"),
        ("columns", field_text("", scan.columns)),
        *card_of(plan.summary).facts,
        ("by Spark's own reader", count_text(scan.native_files, "file")),
        ("rows from packs", _packed_text(scan)),
        (
            "read so far",
            f"{count_text(read.files, 'file')}, {count_text(read.rows, 'row')}, {size_text(read.bytes)}",
        ),
        ("plan", plan.plan_id),
    ]
    return Card(f"Scan of {scan.table}", facts, [pruning_of(plan.summary)])


def _packed_text(scan: Scan) -> str:
    text = f"of {count_text(scan.packed_files, 'file')}"
    return f"{text}: {scan.why_files}" if scan.why_files else text


@row_of.register
def _(scan: Scan) -> Mapping[str, Cell]:
    summary = scan.plan.summary
    return {
        "table": scan.table,
        "snapshot>": str(scan.plan.snapshot_id),
        "conditions": " AND ".join(map(filter_text, scan.conditions)),
        "files>": f"{summary.files_planned:,} of {summary.files_total:,}",
        "groups>": f"{summary.group_count:,}",
        "plan": scan.plan.plan_id[:8],
    }


_scans: deque[Scan] = deque(maxlen=_KEPT)
_of_thread = threading.local()


def note(scan: Scan) -> None:
    """Keep a scan as the latest of this process and of this thread."""
    _scans.append(scan)
    forget_others(scan.context, {one.plan.plan_id for one in _scans.copy()})
    _of_thread.scan = scan


def last_scan() -> Scan:
    """Return the latest scan of this thread."""
    scan: Scan = _of_thread.scan
    return scan


def recent_scans(table: str | None = None) -> list[Scan]:
    """Return the latest scans of this process, at most 100, the newest first.

    Args:
        table: Name of a table, to return only its scans.

    Example:
        client.read(spark, "sales.events").where("ds = '2026-11-01'").count()
        scans = windrow.spark.recent_scans("sales.events")
        scans[0].read.files
    """
    scans = (scan for scan in reversed(_scans.copy()) if table in (None, scan.table))
    return ShownList(scans, "scans")
