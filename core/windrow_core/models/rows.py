"""The rows of lists, as notebooks and commands show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from windrow_core.cards import (
    DASH,
    LAYOUTS,
    Cell,
    Layout,
    count_text,
    row_of,
    seconds_text,
    utc_text,
)
from windrow_core.filter_text import filter_text
from windrow_core.models.advice import WriteOrigin
from windrow_core.models.audit import AuditRecord
from windrow_core.models.caching import CacheRule, CacheRuleFigures, WorkerFigures
from windrow_core.models.history import PastPlan
from windrow_core.models.streams import StreamRecord
from windrow_core.models.tables import Column, SnapshotInfo, TableInfo
from windrow_core.models.tokens import TokenInfo
from windrow_core.models.workers import WorkerInfo
from windrow_core.models.write_records import WriteRecord, WriteReport
from windrow_core.models.writes import WriteOutcome
from windrow_core.sizes import size_text

# Enough of an id to find it.
_ID_CHARACTERS = 8

LAYOUTS |= {
    TableInfo: Layout(("format", "snapshot", "rows", "location")),
    SnapshotInfo: Layout(("manifests",)),
    PastPlan: Layout(
        ("slowest slot", "planned in", "size"),
        {"table, by, filter": ("table", "by", "filter", "failure")},
    ),
    WriteRecord: Layout(("host", "scheme", "duration", "kind", "small files", "rows")),
    StreamRecord: Layout(("checkpoint", "name", "published at (UTC)")),
    # In less, the values of a definition take many lines.
    AuditRecord: Layout(("call",), {"table, what": ("table", "what")}, least_text=48),
    TokenInfo: Layout(("made (UTC)",), {"name, allows": ("name", "allows")}),
    WorkerInfo: Layout(("expires", "read", "evictions", "elsewhere", "failures", "misses")),
    CacheRule: Layout(("until (UTC)", "at most")),
    CacheRuleFigures: Layout(("until (UTC)", "at most", "cached size", "size")),
    WriteOrigin: Layout(("tasks", "size", "partitions", "when (UTC)")),
    WriteOutcome: Layout(("effi-\nciency", "most\nkeys", "severe", "colli-\nsions")),
}


@row_of.register
def _(item: TableInfo) -> Mapping[str, Cell]:
    snapshot = item.current_snapshot
    figures = {"files>": DASH, "rows>": DASH, "size>": DASH, "snapshot>": "not refreshed"}
    if snapshot is not None:
        figures = {**figures_of(snapshot), "snapshot>": str(snapshot.snapshot_id)}
    location = item.definition.location
    return {"table": item.name, **figures, "location…": location, "format": item.definition.format}


@row_of.register
def _(item: SnapshotInfo) -> Mapping[str, Cell]:
    version = {} if item.table_version is None else {"version>": item.table_version}
    return {
        "snapshot>": str(item.snapshot_id),
        **version,
        "made at (UTC)": utc_text(item.created_at),
        **figures_of(item),
        "manifests>": f"{item.manifest_count:,}",
    }


@row_of.register
def _(item: PastPlan) -> Mapping[str, Cell]:
    failure = "" if item.problem is None else f"failed: {item.problem.get('detail', '')}"
    files: str = item.status
    size = planned_in = slowest = DASH
    if (of := item.summary) is not None:
        files, size = f"{of.files_planned:,} of {of.files_total:,}", size_text(of.size_bytes)
        planned_in = seconds_text(of.planning_seconds)
        if of.slowest_slot_seconds is not None:
            slowest = seconds_text(of.slowest_slot_seconds)
    return {
        "plan": item.plan_id[:_ID_CHARACTERS],
        "requested at (UTC)": utc_text(item.created_at),
        "table…": item.table,
        "by…": ", ".join(filter(None, (item.principal, item.engine))),
        "filter…": "\n".join(_conditions(item)),
        "failure…": failure,
        "files>": files,
        "size>": size,
        "planned in>": planned_in,
        "slowest slot>": slowest,
    }


def _conditions(plan: PastPlan) -> Iterator[str]:
    if plan.partition_count is not None:
        yield f"{count_text(plan.partition_count, 'partition')} by number"
    if plan.filter is not None:
        yield filter_text(plan.filter)


@row_of.register
def _(item: WriteRecord) -> Mapping[str, Cell]:
    return {
        "write": item.write_id[:_ID_CHARACTERS],
        "started at (UTC)": utc_text(item.started_at),
        "state": item.state if item.alive or item.expires_at is None else f"{item.state}, dead",
        "kind": item.mode if item.kind == "write" else item.kind,
        **_report_cells(item.report),
        "host…": item.host,
    }


def _report_cells(report: WriteReport | None) -> Mapping[str, Cell]:
    if report is None:
        titles = ("scheme", "rows>", "files>", "small files>", "duration>")
        return dict.fromkeys(titles, DASH)
    parts = (report.count_seconds, report.write_seconds, report.check_seconds)
    return {
        "scheme": report.scheme,
        "rows>": f"{report.rows:,}",
        "files>": f"{report.files:,}",
        "small files>": f"{report.small_files:,}",
        "duration>": seconds_text(sum(parts) + report.commit_seconds),
    }


@row_of.register
def _(item: StreamRecord) -> Mapping[str, Cell]:
    return {
        "query…": item.query_id,
        "name…": item.query_name or DASH,
        "newest batch>": str(item.batch_id),
        "published at (UTC)": utc_text(item.updated_at),
        "checkpoint…": item.checkpoint or DASH,
    }


@row_of.register
def _(item: AuditRecord) -> Mapping[str, Cell]:
    return {
        "when (UTC)": utc_text(item.at),
        "who…": item.principal,
        "table…": item.table or DASH,
        "what…": item.description,
        "call": item.operation,
    }


@row_of.register
def _(item: TokenInfo) -> Mapping[str, Cell]:
    revoked_at = item.revoked_at
    return {
        "id": item.token_id,
        "name…": item.name,
        "allows…": ", ".join((*item.scopes, *item.grants)),
        "made (UTC)": utc_text(item.created_at),
        "ends (UTC)…": utc_text(item.expires_at)
        if revoked_at is None
        else f"revoked at {utc_text(revoked_at)}",
    }


@row_of.register
def _(item: WorkerInfo) -> Mapping[str, Cell]:
    of = item.counters
    return {
        "worker": item.worker_id,
        "host": item.host,
        "used>": size_text(item.used_bytes),
        "capacity>": size_text(item.capacity_bytes),
        "hits>": f"{of.hits:,}",
        "misses>": f"{of.misses:,}",
        "elsewhere>": f"{of.elsewhere:,}",
        "failures>": f"{of.failures:,}",
        "evictions>": f"{of.evictions:,}",
        "read>": size_text(of.hit_bytes + of.miss_bytes),
        "expires": f"{item.expires_at:%H:%M:%S %Z}",
    }


@row_of.register
def _(item: CacheRule) -> Mapping[str, Cell]:
    return {"table": item.table, **_rule_cells(item), **_end_cells(item)}


@row_of.register
def _(item: CacheRuleFigures) -> Mapping[str, Cell]:
    return {
        **_rule_cells(item),
        "cacheable>": f"{item.file_count:,}",
        "cached>": f"{item.cached_files:,}",
        "size>": size_text(item.size_bytes),
        "cached size>": size_text(item.cached_bytes),
        **_end_cells(item),
    }


def _rule_cells(rule: CacheRule) -> Mapping[str, Cell]:
    return {"rule": rule.rule, "files…": filter_text(rule.filter)}


def _end_cells(rule: CacheRule) -> Mapping[str, Cell]:
    return {
        "at most>": DASH if rule.max_bytes is None else size_text(rule.max_bytes),
        "until (UTC)": utc_text(rule.expires_at),
    }


@row_of.register
def _(item: WorkerFigures) -> Mapping[str, Cell]:
    return {
        "host": item.host,
        "cached>": f"{item.file_count:,}",
        "size>": size_text(item.size_bytes),
        "other files>": f"{item.other_files:,}",
    }


@row_of.register
def _(item: WriteOrigin) -> Mapping[str, Cell]:
    remarks = [item.trouble, item.scheme and f"planned: {item.scheme}"]
    return {
        "when (UTC)": utc_text(item.last_at),
        "tasks>": "" if item.tasks is None else f"{item.tasks:,}",
        "partitions>": f"{item.partitions:,}",
        "files>": f"{item.files:,}",
        "small>": f"{item.small_files:,}",
        "size>": size_text(item.size_bytes),
        "would be>": f"{item.would_be:,}",
        "trouble…": ", ".join(text.replace("_", " ") for text in remarks if text),
    }


@row_of.register
def _(item: WriteOutcome) -> Mapping[str, Cell]:
    return {
        "scheme": item.scheme,
        "files>": f"{item.files:,}",
        "small\nfiles>": percent_text(item.small_files, item.files),
        "largest\nfile>": _targets_text(item.largest_file),
        "largest\ntask>": _targets_text(item.largest_task),
        "effi-\nciency>": f"{item.efficiency:.3f}",
        "colli-\nsions>": percent_text(item.collisions, 1),
        "severe>": percent_text(item.severe_collisions, 1),
        "most\nkeys>": f"{item.most_keys_in_a_task:,}",
    }


def _targets_text(size: float) -> str:
    return f"{size:,.2f}" if size < 1000 else f"{size:,.0f}"


def percent_text(part: float, whole: float, none: str = DASH) -> str:
    """Return a share in percent; a dash for one of nothing.

    Args:
        part: The part.
        whole: All of it.
        none: The text if the part is nothing.
    """
    if not whole or not part:
        return none if whole else DASH
    return "< 1 %" if part < whole / 200 else f"{100 * part / whole:.0f} %"


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


def rows_text(count: int | None) -> str:
    """Return a number of rows."""
    return "unknown" if count is None else f"{count:,}"
