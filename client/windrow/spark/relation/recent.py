"""The latest scans: what queries asked of their tables, and the plans made for them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from windrow.models import Plan
from windrow.spark.relation.filters import Tree

_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One use of a table in a query.

    Attributes:
        table: The table.
        columns: The columns that the query needs of it.
        conditions: What the query's filters leave out for certain, as trees joined by AND.
        plan: What was planned, without groups; `plan.summary` counts files, bytes, rows and groups,
            and `client.explain(plan.plan_id)` says why.
    """

    table: str
    columns: tuple[str, ...]
    conditions: tuple[Tree, ...]
    plan: Plan

    def __str__(self) -> str:
        """What Spark's UI shows of it."""
        summary = self.plan.summary
        return (
            f"windrow {self.table} snapshot {self.plan.snapshot_id}, plan {self.plan.plan_id}: "
            f"{summary.files_planned:,} files in {summary.group_count:,} groups"
        )


_scans: deque[Scan] = deque(maxlen=_KEPT)
_of_thread = threading.local()


def note(scan: Scan) -> None:
    """Keep a scan as the latest, also of this thread."""
    _scans.append(scan)
    _of_thread.scan = scan


def last_scan() -> Scan:
    """Return the latest scan of this thread."""
    scan: Scan = _of_thread.scan
    return scan


def recent_scans(table: str | None = None) -> list[Scan]:
    """Return the latest scans of this process, at most 100, the newest first.

    Args:
        table: Only those of this table.
    """
    return [scan for scan in reversed(_scans.copy()) if table in (None, scan.table)]
