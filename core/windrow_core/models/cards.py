"""How answers of the coordinator show themselves at a prompt and in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windrow_core.cards import (
    DASH,
    SHOWN_ROWS,
    Bar,
    Card,
    Cell,
    Grid,
    card_of,
    count_text,
    field_text,
    grid_of,
    moment_text,
    row_of,
    seconds_text,
    words,
)
from windrow_core.filter_text import filter_text
from windrow_core.models.advice import TableAdvice
from windrow_core.models.audit import AuditRecord
from windrow_core.models.caching import CacheRule, TableCache
from windrow_core.models.compaction import CompactionPlan
from windrow_core.models.explain import PlanExplanation
from windrow_core.models.filters import (
    Between,
    Comparison,
    In,
    IsNull,
    Junction,
    Not,
    StartsWith,
)
from windrow_core.models.history import PastPlan
from windrow_core.models.plans import Plan, PlanSummary
from windrow_core.models.rows import figures_of, rows_text
from windrow_core.models.streams import StreamRecord
from windrow_core.models.tables import Column, RefreshStatus, SnapshotInfo, TableInfo
from windrow_core.models.tokens import TokenInfo
from windrow_core.models.workers import WorkerInfo
from windrow_core.models.write_records import WriteRecord, WriteReport
from windrow_core.models.writes import WritePlan
from windrow_core.sizes import mean_text, size_text

_STEPS = {
    "manifest": "ranges of manifests",
    "partition": "partition values",
    "statistics": "statistics",
    "bloom": "Bloom filters",
    "limit": "limit",
}


@card_of.register
def _(table: TableInfo) -> Card:
    snapshot, definition = table.current_snapshot, table.definition
    facts = [("location", definition.location), ("format", definition.format)]
    if snapshot is None:
        facts.append(("snapshot", f"none yet: client.refresh({table.name!r}) makes one"))
    else:
        facts[:0] = [("snapshot", str(snapshot.snapshot_id)), *_plain(figures_of(snapshot))]
    if options := definition.plan_options.model_dump(exclude_none=True):
        facts.append(("plan options", field_text("", options)))
    if definition.bucket_spec is not None:
        spec = definition.bucket_spec
        facts.append(("buckets", f"{spec.count:,} by {', '.join(spec.columns)}"))
    grids = [] if snapshot is None else _columns(snapshot)
    return Card(f"Table {table.name}", facts, grids)


@card_of.register
def _(snapshot: SnapshotInfo) -> Card:
    facts = [*_plain(figures_of(snapshot)), ("made at", moment_text(snapshot.created_at))]
    if snapshot.table_version is not None:
        facts.append(("version", snapshot.table_version))
    return Card(f"Snapshot {snapshot.snapshot_id}", facts, _columns(snapshot))


def _columns(snapshot: SnapshotInfo) -> list[Grid]:
    names = {column.name for column in snapshot.partition_columns}
    rows: list[list[Cell]] = [
        [column.name, column.type, "partition" if column.name in names else ""]
        for column in (*snapshot.partition_columns, *snapshot.columns)
    ]
    return [Grid(("column", "type", ""), rows)]


def _plain(figures: Mapping[str, Cell]) -> list[tuple[str, str]]:
    return [(title.rstrip(">"), str(text)) for title, text in figures.items()]


@card_of.register
def _(status: RefreshStatus) -> Card:
    facts = [("status", status.status), ("took", seconds_text(status.seconds))]
    if status.changed is not None:
        facts += [
            ("files added", f"{status.files_added:,}"),
            ("files removed", f"{status.files_removed:,}"),
        ]
    if status.snapshot is not None:
        facts += [
            ("snapshot", str(status.snapshot.snapshot_id)),
            *_plain(figures_of(status.snapshot)),
        ]
    if status.problem is not None:
        facts.append(("problem", str(status.problem.get("detail", ""))))
    return Card(f"Refresh of {status.table}", facts)


@card_of.register
def _(plan: Plan) -> Card:
    return plan_card(plan)


def plan_card(plan: Plan, grids: Iterable[Grid] = ()) -> Card:
    """Return what is shown of a plan."""
    summary = plan.summary
    filter_ = [] if plan.filter is None else [("filter", filter_text(plan.filter))]
    facts = [
        ("table", f"{plan.table}, snapshot {plan.snapshot_id}"),
        *filter_,
        *card_of(summary).facts,
        ("columns", field_text("", [column.name for column in plan.columns])),
    ]
    return Card(f"Plan {plan.plan_id}", facts, [pruning_of(summary), *grids])


@card_of.register
def _(summary: PlanSummary) -> Card:
    facts = [
        ("files", f"{summary.files_planned:,} of {summary.files_total:,}"),
        ("rows", _at_most(summary.row_count)),
        ("size", size_text(summary.size_bytes)),
        (
            "groups",
            f"{summary.group_count:,} by {summary.strategy}, "
            + count_text(summary.split_count, "split"),
        ),
        ("planned in", seconds_text(summary.planning_seconds)),
    ]
    if summary.slowest_slot_seconds is not None:
        facts.append(("predicted time", seconds_text(summary.slowest_slot_seconds)))
    return Card("Plan summary", facts)


def _at_most(rows: int | None) -> str:
    return "unknown" if rows is None else f"{rows:,} at most"


def pruning_of(summary: PlanSummary) -> Grid:
    """Return which steps of pruning left out how many files, and which left out none."""
    figures = [
        (
            name,
            getattr(summary, f"files_pruned_by_{step}"),
            getattr(summary, f"bytes_pruned_by_{step}"),
        )
        for step, name in _STEPS.items()
    ]
    return _pruning(figures, summary.files_total, summary.files_planned, summary.size_bytes)


def _pruning(
    steps: Sequence[tuple[str, int, int]], total: int, files: int, size_bytes: int
) -> Grid:
    rows: list[list[Cell]] = [
        [name, f"{count:,}", size_text(left_out), Bar(count / max(1, total), is_loss=True)]
        for name, count, left_out in steps
    ]
    rows.append(["planned", f"{files:,}", size_text(size_bytes), Bar(files / max(1, total))])
    return Grid(("left out by", "files>", "size>", ""), rows, "Pruning")


@card_of.register
def _(plan: PlanExplanation) -> Card:
    own = plan.strategies[0]
    steps = [(_STEPS[step.step], step.files, step.size_bytes) for step in plan.pruned]
    grids = [_pruning(steps, plan.files_total, plan.files_planned, plan.size_bytes)]
    if own.group_count:
        reasons: list[list[Cell]] = [
            [
                one.reason.replace("_", " "),
                f"{one.groups:,}",
                f"{one.splits:,}",
                size_text(one.size_bytes),
            ]
            for one in plan.reasons
            if one.groups
        ]
        fullest = max(1, *plan.fill_histogram)
        fill: list[list[Cell]] = [
            [f"{step * 10}{DASH}{step * 10 + 10} %", f"{count:,}", Bar(count / fullest)]
            for step, count in enumerate(plan.fill_histogram)
        ]
        slowest = max(one.slowest_slot_seconds for one in plan.strategies) or 1
        strategies: list[list[Cell]] = [
            [
                one.strategy,
                f"{one.group_count:,}",
                seconds_text(one.longest_task_seconds),
                seconds_text(one.slowest_slot_seconds),
                Bar(one.slowest_slot_seconds / slowest, is_loss=one is not own),
            ]
            for one in plan.strategies
        ]
        grids += [
            Grid(("reason", "groups>", "splits>", "size>"), reasons, "Groups"),
            Grid(("fill", "groups>", ""), fill, "Fill of the groups"),
            Grid(
                ("strategy", "groups>", "longest task>", "slowest slot>", ""),
                strategies,
                "Comparison of strategies, as predicted",
            ),
        ]
    facts = [
        ("table", f"{plan.table}, snapshot {plan.snapshot_id}"),
        ("files", f"{plan.files_planned:,} of {plan.files_total:,}, {size_text(plan.size_bytes)}"),
        ("groups", f"{own.group_count:,} by {own.strategy}"),
        ("predicted time", seconds_text(own.slowest_slot_seconds)),
        (
            "left out",
            ", ".join(f"{count:,} by {name}" for name, count, _ in steps if count) or "none",
        ),
    ]
    return Card(f"Explanation of plan {plan.plan_id}", facts, grids)


@card_of.register
def _(plan: WritePlan) -> Card:
    facts = [
        ("table", plan.table or DASH),
        ("files", f"{plan.files:,}"),
        ("scheme", plan.scheme),
        ("Spark partitions", f"{plan.tasks:,}"),
        ("rows", rows_text(plan.rows)),
        (
            "target",
            DASH if plan.target_file_bytes is None else size_text(plan.target_file_bytes),
        ),
        ("why", plan.outcome.reason),
    ]
    return Card("Write plan", facts, [grid_of([plan.outcome, *plan.others], "Schemes")])


@card_of.register
def _(report: WriteReport) -> Card:
    target = "" if report.planned_files is None else f" of {report.planned_files:,} planned"
    seconds = (
        ("counting", report.count_seconds),
        ("writing", report.write_seconds),
        ("checking", report.check_seconds),
        ("moving", report.commit_seconds),
    )
    facts = [
        ("rows", f"{report.rows:,}"),
        ("files", f"{report.files:,}{target}, {report.small_files:,} small"),
        ("size", size_text(report.bytes)),
        ("largest file", size_text(report.largest_file_bytes)),
        ("scheme", f"{report.scheme}, {count_text(report.tasks, 'task')}"),
        ("took", ", ".join(f"{name} {seconds_text(one)}" for name, one in seconds)),
    ]
    grids = []
    if report.keys is not None and report.keys.columns:
        keys = report.keys
        rows: list[list[Cell]] = [
            [
                *(str(column[at]) for column in keys.values),
                f"{keys.rows[at]:,}",
                f"{keys.files[at]:,}",
                size_text(keys.bytes[at]),
            ]
            for at in range(min(len(keys.rows), SHOWN_ROWS))
        ]
        left = len(keys.rows) - len(rows)
        titles = (*(column.name for column in keys.columns), "rows>", "files>", "size>")
        more = f"and {left:,} more" if left else ""
        grids.append(Grid(titles, rows, "By partition", more))
    return Card("Write", facts, grids)


@card_of.register
def _(record: WriteRecord) -> Card:
    report = () if record.report is None else card_of(record.report).facts
    grids = () if record.report is None else card_of(record.report).grids
    facts = [
        ("table", record.table),
        ("state", record.state),
        ("mode", record.mode),
        ("started at", moment_text(record.started_at)),
        ("host", record.host),
        *report,
    ]
    return Card(f"Write {record.write_id}", facts, grids)


@card_of.register
def _(advice: TableAdvice) -> Card:
    facts = [
        ("files", f"{advice.files:,}, {advice.small_files:,} of them small"),
        ("size", size_text(advice.size_bytes)),
        (
            f"with a target of {size_text(advice.target_file_bytes)}",
            f"{advice.would_be:,} of {mean_text(advice.would_be, advice.size_bytes)}",
        ),
        *((one.problem, one.remedy) for one in advice.advice),
    ]
    remark = "" if advice.advice else "Nothing to advise."
    grids = [grid_of(advice.writes, "Writes")] if advice.writes else []
    return Card(f"Advice for {advice.table}, snapshot {advice.snapshot_id}", facts, grids, remark)


@card_of.register
def _(plan: CompactionPlan) -> Card:
    totals, parts = plan.totals, plan.partitions
    facts = [
        ("small files", f"{totals.files:,} ({size_text(totals.size_bytes)})"),
        ("become", f"{totals.becomes:,} of {mean_text(totals.becomes, totals.size_bytes)}"),
        ("partitions", f"{totals.partitions:,}"),
        ("cost", f"{seconds_text(totals.cost_seconds)} of one core"),
        ("gain", f"{seconds_text(totals.gain_seconds)} at each read"),
    ]
    rows: list[list[Cell]] = [
        [
            (folder or "(all)") + ("" if bucket is None else f", bucket {bucket}"),
            f"{files:,}",
            size_text(size_bytes),
            f"{becomes:,}",
            seconds_text(cost),
            seconds_text(gain),
        ]
        for folder, bucket, files, size_bytes, becomes, cost, gain in zip(
            parts.folders[:SHOWN_ROWS],
            parts.buckets,
            parts.files,
            parts.size_bytes,
            parts.becomes,
            parts.cost_seconds,
            parts.gain_seconds,
            strict=False,
        )
    ]
    left = totals.partitions - len(rows)
    titles = ("partition", "small files>", "size>", "become>", "cost>", "gain>")
    grids = [Grid(titles, rows, more=f"and {left:,} more" if left > 0 else "")] if rows else []
    alone: list[list[Cell]] = [[f"{one.partitions:,}", one.explanation] for one in plan.left_alone]
    if alone:
        grids.append(Grid(("partitions>", "why"), alone, "Left alone"))
    return Card(f"Compaction of {plan.table}, snapshot {plan.snapshot_id}", facts, grids)


@card_of.register
def _(cache: TableCache) -> Card:
    facts = [
        (
            "cacheable",
            f"{count_text(cache.cacheable_files, 'file')}, {size_text(cache.cacheable_bytes)}",
        ),
        ("cached", f"{count_text(cache.cached_files, 'file')}, {size_text(cache.cached_bytes)}"),
        ("rules", field_text("", [one.rule for one in cache.rules])),
        ("workers", field_text("", [one.host for one in cache.workers])),
    ]
    workers: list[list[Cell]] = [
        [one.host, f"{one.file_count:,}", size_text(one.size_bytes)] for one in cache.workers
    ]
    grids = [grid_of(cache.rules, "Rules")] if cache.rules else []
    if workers:
        grids.append(Grid(("host", "files>", "size>"), workers, "Workers"))
    remark = "" if cache.complete else "The cache map does not answer: cached files are not known."
    return Card(f"Cache of {cache.table}, snapshot {cache.snapshot_id}", facts, grids, remark)


@card_of.register
def _(token: TokenInfo) -> Card:
    # Not the secret of a new token: outputs of notebooks are kept.
    facts = [
        ("allows", ", ".join((*token.scopes, *token.grants))),
        ("made at", moment_text(token.created_at)),
        ("expires", "never" if token.expires_at is None else moment_text(token.expires_at)),
    ]
    if token.revoked_at is not None:
        facts.append(("revoked at", moment_text(token.revoked_at)))
    secret = "Its secret is in its attribute `token`, and is not shown again."
    remark = secret if getattr(token, "token", None) else ""
    return Card(f"Token {token.token_id} of {token.name}", facts, remark=remark)


def _of_row(item: Any) -> Card:
    return Card(words(type(item).__name__), _plain({**row_of(item)}))


def _of_filter(tree: Any) -> Card:
    return Card(filter_text(tree))


for _model in (PastPlan, AuditRecord, StreamRecord, WorkerInfo, CacheRule):
    card_of.register(_model, _of_row)
for _tree in (Between, Comparison, In, IsNull, Junction, Not, StartsWith):
    card_of.register(_tree, _of_filter)


@card_of.register
def _(column: Column) -> Card:
    return Card(f"{column.name} {column.type}")
