"""The rows of lists that notebooks show."""

from __future__ import annotations

from collections.abc import Mapping

from windrow_core.cards import (
    DASH,
    Cell,
    moment_text,
    row_of,
    seconds_text,
)
from windrow_core.filter_text import filter_text
from windrow_core.models.advice import WriteOrigin
from windrow_core.models.audit import AuditRecord
from windrow_core.models.caching import CacheRule
from windrow_core.models.history import PastPlan
from windrow_core.models.streams import StreamRecord
from windrow_core.models.tables import Column, SnapshotInfo, TableInfo
from windrow_core.models.tokens import TokenInfo
from windrow_core.models.workers import WorkerInfo
from windrow_core.models.write_records import WriteRecord
from windrow_core.models.writes import WriteOutcome
from windrow_core.sizes import size_text

_STEPS = {
    "manifest": "ranges of manifests",
    "partition": "partition values",
    "statistics": "statistics",
    "bloom": "Bloom filters",
    "limit": "limit",
}


@row_of.register
def _(item: TableInfo) -> Mapping[str, Cell]:
    return {
        "table": item.name,
        **_snapshot_figures(item.current_snapshot),
        "format": item.definition.format,
        "location": item.definition.location,
    }


@row_of.register
def _(item: SnapshotInfo) -> Mapping[str, Cell]:
    version = {} if item.table_version is None else {"version": item.table_version}
    return {
        "snapshot>": str(item.snapshot_id),
        **version,
        "made at": moment_text(item.created_at),
        **figures_of(item),
        "manifests>": f"{item.manifest_count:,}",
    }


@row_of.register
def _(item: PastPlan) -> Mapping[str, Cell]:
    summary = item.summary
    return {
        "plan": item.plan_id[:8],
        "requested at": moment_text(item.created_at),
        "table": item.table,
        "by": item.principal,
        "filter": "" if item.filter is None else filter_text(item.filter),
        "files>": item.status
        if summary is None
        else f"{summary.files_planned:,} of {summary.files_total:,}",
        "size>": "" if summary is None else size_text(summary.size_bytes),
        "took>": "" if item.seconds is None else seconds_text(item.seconds),
    }


@row_of.register
def _(item: WriteRecord) -> Mapping[str, Cell]:
    report = item.report
    return {
        "write": item.write_id[:8],
        "started at": moment_text(item.started_at),
        "state": item.state if item.alive or item.expires_at is None else f"{item.state}, dead",
        "kind": item.kind if item.kind == "compaction" else item.mode,
        "rows>": "" if report is None else f"{report.rows:,}",
        "files>": "" if report is None else f"{report.files:,}",
        "small files>": "" if report is None else f"{report.small_files:,}",
        "host": item.host,
    }


@row_of.register
def _(item: StreamRecord) -> Mapping[str, Cell]:
    return {
        "query": item.query_name or item.query_id,
        "newest batch>": f"{item.batch_id:,}",
        "published at": moment_text(item.updated_at),
        "checkpoint": item.checkpoint or "",
    }


@row_of.register
def _(item: AuditRecord) -> Mapping[str, Cell]:
    return {
        "when": moment_text(item.at),
        "who": item.principal,
        "table": item.table or "",
        "what": item.description,
        "call": item.operation,
    }


@row_of.register
def _(item: TokenInfo) -> Mapping[str, Cell]:
    return {
        "id": item.token_id,
        "name": item.name,
        "allows": ", ".join((*item.scopes, *item.grants)),
        "expires": DASH if item.expires_at is None else moment_text(item.expires_at),
        "revoked": DASH if item.revoked_at is None else moment_text(item.revoked_at),
    }


@row_of.register
def _(item: WorkerInfo) -> Mapping[str, Cell]:
    return {
        "worker": item.worker_id,
        "host": item.host,
        "used>": size_text(item.used_bytes),
        "of>": size_text(item.capacity_bytes),
        "files from cache>": f"{item.counters.hits:,}",
        "fetched>": f"{item.counters.misses:,}",
    }


@row_of.register
def _(item: CacheRule) -> Mapping[str, Cell]:
    return {
        "table": item.table,
        "rule": item.rule,
        "filter": filter_text(item.filter),
        "at most>": DASH if item.max_bytes is None else size_text(item.max_bytes),
        "expires": DASH if item.expires_at is None else moment_text(item.expires_at),
    }


@row_of.register
def _(item: WriteOrigin) -> Mapping[str, Cell]:
    return {
        "when": moment_text(item.last_at),
        "tasks>": "" if item.tasks is None else f"{item.tasks:,}",
        "partitions>": f"{item.partitions:,}",
        "files>": f"{item.files:,}",
        "small>": f"{item.small_files:,}",
        "size>": size_text(item.size_bytes),
        "would be>": f"{item.would_be:,}",
        "trouble": (item.trouble or "").replace("_", " "),
    }


@row_of.register
def _(item: WriteOutcome) -> Mapping[str, Cell]:
    return {
        "scheme": item.scheme,
        "files>": f"{item.files:,}",
        "small>": f"{item.small_files:,}",
        "tasks>": f"{item.tasks:,}",
        "largest file>": f"{item.largest_file:,.2f} targets",
        "suitable": "yes" if item.serves else "no",
        "why": item.reason,
    }


@row_of.register
def _(item: Column) -> Mapping[str, Cell]:
    return {"column": item.name, "type": item.type}


def figures_of(snapshot: SnapshotInfo) -> dict[str, str]:
    """Return the figures of a snapshot, by the titles of their columns."""
    return {
        "files>": f"{snapshot.file_count:,}",
        "rows>": rows_text(snapshot.row_count),
        "size>": size_text(snapshot.size_bytes),
    }


def _snapshot_figures(snapshot: SnapshotInfo | None) -> dict[str, str]:
    if snapshot is None:
        return {"snapshot>": "none yet", **dict.fromkeys(("files>", "rows>", "size>"), DASH)}
    return {"snapshot>": str(snapshot.snapshot_id), **figures_of(snapshot)}


def rows_text(count: int | None) -> str:
    """Return a number of rows."""
    return "unknown" if count is None else f"{count:,}"
