"""How answers of the coordinator show themselves: at a prompt, in notebooks, and by commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windrow_core.cards import (
    SHOWN_ROWS,
    Card,
    Cell,
    Grid,
    Hint,
    Layout,
    card_of,
    count_text,
    field_text,
    grid_of,
    moment_text,
    row_of,
    seconds_text,
    words,
)
from windrow_core.files.formats import SMALL_FILE_BYTES
from windrow_core.filter_text import filter_text
from windrow_core.models.advice import TableAdvice
from windrow_core.models.audit import AuditRecord
from windrow_core.models.caching import CacheRule, TableCache
from windrow_core.models.compaction import CompactionPlan
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
from windrow_core.models.options import PlanDefaults
from windrow_core.models.packs import Pack, PackingPlan
from windrow_core.models.rows import figures_of
from windrow_core.models.service import CoordinatorStatus
from windrow_core.models.streams import StreamRecord
from windrow_core.models.tables import (
    Column,
    LogFigures,
    RefreshStatus,
    SnapshotInfo,
    SortColumn,
    TableDefinition,
    TableInfo,
)
from windrow_core.models.tokens import TokenInfo
from windrow_core.models.workers import WorkerInfo
from windrow_core.models.write_records import WriteRecord, WriteReport
from windrow_core.planning import UnpackedReason
from windrow_core.sizes import mean_text, size_text

_SHOWN_PARTITIONS = 40
_SHOWN_PARTITIONS = 40


@card_of.register
def _(table: TableInfo) -> Card:
    snapshot, definition = table.current_snapshot, table.definition
    facts = [("location", definition.location), ("format", definition.format)]
    facts += [*definition_facts(definition), ("changed", moment_text(table.updated_at))]
    if table.partition_count is not None:
        facts.append(("partitions", f"{table.partition_count:,}, listed by a catalog"))
    if table.deletion_protection:
        unprotect = {"name": table.name, "deletion_protection": False}
        protection = Hint("from deletion: {call} ends that", "protect_table", **unprotect)
        facts.append(("protected", protection))
    if snapshot is None:
        none = Hint("none yet: {call} makes one", "refresh_table", name=table.name)
        facts.append(("snapshot", none))
    else:
        facts += [("snapshot", snapshot_text(snapshot)), *_log_facts(snapshot)]
    return Card(f"Table {table.name}", facts, [] if snapshot is None else _columns(snapshot))


def definition_facts(definition: TableDefinition) -> Iterator[tuple[str, str]]:
    """Yield what a table was registered with, beside its location, format and columns."""
    if definition.transactional is not None:
        yield "transactional", definition.transactional.replace("_", "-")
    if texts := definition.format_options:
        yield "format options", ", ".join(f"{name}={value!r}" for name, value in texts.items())
    if definition.imported_from is not None:
        yield "imported from", definition.imported_from
    if (spec := definition.bucket_spec) is not None:
        yield "buckets", f"{spec.count:,} by {', '.join(spec.columns)}"
    if definition.sort_columns:
        yield "sorted by", ", ".join(map(_sort_text, definition.sort_columns))
    if definition.bloom_columns:
        yield "Bloom filters of", ", ".join(definition.bloom_columns)
    if options := plan_options_text(definition.plan_options):
        yield "plan options", options


def plan_options_text(options: PlanDefaults) -> str:
    """Return the plan options that a table sets."""
    values = options.model_dump(exclude_none=True)
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _sort_text(column: SortColumn) -> str:
    parts = [column.name, "desc" if column.descending else "asc"]
    if column.nulls_first is not None:
        parts.append("nulls first" if column.nulls_first else "nulls last")
    return " ".join(parts)


def snapshot_text(snapshot: SnapshotInfo) -> str:
    """Return the id of a snapshot with its figures."""
    count = snapshot.row_count
    rows = "unknown rows" if count is None else count_text(count, "row")
    return (
        f"{snapshot.snapshot_id}: {count_text(snapshot.file_count, 'file')}, {rows}, "
        f"{size_text(snapshot.size_bytes)}, {count_text(snapshot.manifest_count, 'manifest')}"
    )


@card_of.register
def _(snapshot: SnapshotInfo) -> Card:
    facts = [*_plain(figures_of(snapshot)), ("made at", moment_text(snapshot.created_at))]
    facts += _log_facts(snapshot)
    return Card(f"Snapshot {snapshot.snapshot_id}", facts, _columns(snapshot))


def _log_facts(snapshot: SnapshotInfo) -> Iterator[tuple[str, str]]:
    log = snapshot.log
    if snapshot.table_version is not None:
        yield "version", _version_text(snapshot.table_version, log)
    if log is not None:
        files, verb = (
            count_text(snapshot.file_count, "file"),
            "is" if log.small_files == 1 else "are",
        )
        share = f"{log.small_files:,} of {files}, {size_text(log.small_bytes)}"
        yield "small files", f"{share}, {verb} under {size_text(SMALL_FILE_BYTES)}"
        yield "deleted rows", _deletes_text(log)
    if snapshot.valid_write_ids is not None:
        yield "write ids", snapshot.valid_write_ids


def _version_text(version: str, log: LogFigures | None) -> str:
    text = version
    if log is not None and log.committed_at is not None:
        text += f", committed at {moment_text(log.committed_at)}"
    if log is not None and log.versions is not None:
        text += f"; the log has {count_text(log.versions, 'version')}"
    return text


def _deletes_text(log: LogFigures) -> str:
    if not log.delete_files:
        return "none"
    noun = "deletion vector or delete file"
    kinds = f"by {count_text(log.delete_files, noun, 'deletion vectors or delete files')}"
    return kinds if log.deleted_rows is None else f"{log.deleted_rows:,}, {kinds}"


def _columns(snapshot: SnapshotInfo) -> list[Grid]:
    names = {column.name for column in snapshot.partition_columns}
    rows: list[list[Cell]] = [
        [column.name, column.type, "partition" if column.name in names else ""]
        for column in (*snapshot.partition_columns, *snapshot.columns)
    ]
    return [Grid(("column", "type…", "use"), rows)]


def _plain(figures: Mapping[str, Cell]) -> list[tuple[str, str]]:
    return [(title.rstrip(">…"), str(text)) for title, text in figures.items()]


@card_of.register
def _(status: RefreshStatus) -> Card:
    progress, took = status.progress, seconds_text(status.seconds)
    what = f"{status.status}, {took}"
    facts = []
    if status.changed is not None:
        what = f"nothing new in {took}"
        if status.changed:
            files = count_text(status.files_added, "file")
            what = f"{files} added, {status.files_removed:,} removed in {took}"
    if status.snapshot is not None:
        of = progress.folders_listed + progress.folders_unchanged
        folders = f"{progress.folders_listed:,} of {count_text(of, 'folder')}"
        is_logged = status.snapshot.table_version is not None
        facts.append(("listed", "according to the table's log" if is_logged else folders))
    if progress.files_empty:
        facts.append(("skipped", f"{count_text(progress.files_empty, 'file')} of 0 bytes"))
    if progress.files_uncommitted:
        facts.append(("skipped", count_text(progress.files_uncommitted, "uncommitted file")))
    if status.snapshot is not None:
        facts.append(("snapshot", snapshot_text(status.snapshot)))
    if status.problem is not None:
        facts.append(("problem", str(status.problem.get("detail", ""))))
    return Card(f"{status.table}: {what}", facts)


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
        titles = (*(column.name for column in keys.columns), "rows>", "files>", "size>")
        grids.append(Grid(titles, rows, "By partition", total=len(keys.rows)))
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
            "would be",
            f"{count_text(advice.would_be, 'file')} of "
            f"{mean_text(advice.would_be, advice.size_bytes)} in the same partitions, with a target "
            f"of {size_text(advice.target_file_bytes)}",
        ),
    ]
    for one in advice.advice:
        files = f"{count_text(one.files, 'file')} instead of {one.would_be:,}"
        facts.append((one.kind.replace("_", " "), f"{files}: {one.problem}\n{one.remedy}"))
    remark = "" if advice.advice else "Nothing to advise."
    writes = advice.writes[:SHOWN_ROWS]
    title = "Writes"
    if len(writes) < advice.write_count:
        title += f": {len(writes):,} of {advice.write_count:,}, those with the most excess files"
    grids = [grid_of(writes, title)] if writes else []
    return Card(f"Advice for {advice.table}, snapshot {advice.snapshot_id}", facts, grids, remark)


@card_of.register
def _(plan: CompactionPlan) -> Card:
    return compaction_card([plan])


def compaction_card(pages: Sequence[CompactionPlan]) -> Card:
    """Return what is shown of a compaction plan.

    Args:
        pages: Its first pages, at least one.
    """
    plan, totals = pages[0], pages[0].totals
    facts = [("files", f"{plan.file_count:,}; no partition is worth compacting")]
    if totals.partitions:
        facts = [
            (
                "small files",
                f"{totals.files:,} ({size_text(totals.size_bytes)}), under "
                f"{size_text(plan.small_file_bytes)} each",
            ),
            ("become", f"{totals.becomes:,} of {mean_text(totals.becomes, totals.size_bytes)}"),
            ("partitions", f"{totals.partitions:,}"),
            ("cost", f"{seconds_text(totals.cost_seconds)} of one core"),
            ("gain", f"{seconds_text(totals.gain_seconds)} at each read"),
        ]
    rows = [row for page in pages for row in _partition_rows(page)][:_SHOWN_PARTITIONS]
    titles = ("partition…", "files>", "small>", "size>", "becomes>", "cost>", "gain>")
    layout = Layout(("files", "cost"))
    grids = [Grid(titles, rows, total=totals.partitions, layout=layout)] if rows else []
    alone: list[list[Cell]] = [[f"{one.partitions:,}", one.explanation] for one in plan.left_alone]
    if alone:
        grids.append(Grid(("partitions>", "why…"), alone, "Left alone"))
    return Card(f"Compaction of {plan.table}, snapshot {plan.snapshot_id}", facts, grids)


_UNPACKED: Mapping[UnpackedReason, str] = {
    "packed": "in a pack already",
    "excluded": "their partitions are left out",
    "quiet": "their partitions were written to recently",
    "deletes": "rows of them are deleted",
    "no_rows": "they have no rows",
    "large": "they are large enough",
    "null_partition": "a partition value is null",
    "unknown_layout": "their footers are not known: refresh the table",
    "few": "too few are alike",
}


@card_of.register
def _(plan: PackingPlan) -> Card:
    facts = [("files", "none are worth a pack")]
    if plan.files:
        facts = [
            ("small files", f"{plan.files:,} ({size_text(plan.size_bytes)})"),
            ("cost", f"{seconds_text(plan.core_seconds)} of one core"),
            ("gain", f"{seconds_text(plan.saved_seconds)} at each read of all of them"),
            ("repaid", f"after {count_text(plan.repaid_after, 'read')}"),
        ]
    rows: list[list[Cell]] = [[f"{one.files:,}", _UNPACKED[one.reason]] for one in plan.left_alone]
    grids = [Grid(("files>", "why…"), rows, "Not packed now")] if rows else []
    return Card(f"Packing of {plan.table}, snapshot {plan.snapshot_id}", facts, grids)


@row_of.register
def _(pack: Pack) -> Mapping[str, Cell]:
    remark = pack.withdrawn_because or ""
    if pack.state == "published" and pack.gone_since is not None:
        remark = f"has rows of files that are gone since {moment_text(pack.gone_since)}"
    if pack.removed_at is not None:
        remark += f"; removed {moment_text(pack.removed_at)}"
    return {
        "pack": pack.pack_id[:8],
        "state": pack.state,
        "files>": f"{pack.source_count:,}",
        "rows>": f"{pack.row_count:,}",
        "size>": size_text(pack.size_bytes),
        "made": moment_text(pack.made_at),
        "remark…": remark,
    }


def _partition_rows(page: CompactionPlan) -> Iterator[list[Cell]]:
    of = page.partitions
    for at, (folder, bucket) in enumerate(zip(of.folders, of.buckets, strict=True)):
        yield [
            (folder or "(all)") + ("" if bucket is None else f", bucket {bucket}"),
            f"{of.all_files[at]:,}",
            f"{of.files[at]:,}",
            size_text(of.size_bytes[at]),
            f"{of.becomes[at]:,}",
            seconds_text(of.cost_seconds[at]),
            seconds_text(of.gain_seconds[at]),
        ]


@card_of.register
def _(cache: TableCache) -> Card:
    rules = field_text("", [one.rule for one in cache.rules])
    workers = field_text("", [one.host for one in cache.workers])
    if not cache.rules:
        rules = Hint("none: {call} adds one", "define_cache_rule", name=cache.table)
    if not cache.workers and cache.complete:
        workers = "none is running: `windrow worker run` starts one"
    cacheable = count_text(cache.cacheable_files, "file")
    facts = [
        ("cacheable", f"{cacheable}, {size_text(cache.cacheable_bytes)}"),
        ("cached", f"{count_text(cache.cached_files, 'file')}, {size_text(cache.cached_bytes)}"),
        ("rules", rules),
        ("workers", workers),
    ]
    lists: dict[str, Sequence[Any]] = {"Rules": cache.rules, "Workers": cache.workers}
    grids = [grid_of(items, title) for title, items in lists.items() if items]
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


for _model in (PastPlan, AuditRecord, StreamRecord, WorkerInfo, CacheRule, Pack):
    card_of.register(_model, _of_row)
for _tree in (Between, Comparison, In, IsNull, Junction, Not, StartsWith):
    card_of.register(_tree, _of_filter)


@card_of.register
def _(column: Column) -> Card:
    return Card(f"{column.name} {column.type}")


@card_of.register
def _(status: CoordinatorStatus) -> Card:
    bad = [f"{name} {state}" for name, state in status.health.checks.items() if state != "ok"]
    health = f"{status.health.status}: {', '.join(bad)}" if bad else status.health.status
    tables = f"{status.tables:,}, with {count_text(status.files, 'file')}"
    if status.without_snapshot:
        tables += f"; never refreshed: {status.without_snapshot:,}"
    facts = [("health", health), ("tables", tables)]
    if (oldest := status.oldest_refresh) is not None:
        facts.append(("oldest refresh", f"{oldest.table}, {moment_text(oldest.began_at)}"))
    work = [
        f"{state.replace('_', ' ')}: {count:,}" for state, count in status.work.items() if count
    ]
    pause = ["all work is paused"] if status.is_paused else []
    facts.append(("maintenance", "; ".join([*pause, *work]) or "no work"))
    facts.append(("workers", "unknown" if status.workers is None else f"{status.workers:,}"))
    replicas = [
        (one.host, str(one.process), one.version, moment_text(one.started_at))
        for one in status.replicas or ()
    ]
    troubles = [(one.kind, one.name, moment_text(one.at), one.reason) for one in status.troubles]
    grids = [
        Grid(("host", "process>", "version", "started"), replicas, "Replicas"),
        Grid(("what", "name", "when", "why…"), troubles, "What went wrong"),
    ]
    return Card(f"Coordinator {status.version}", facts, [grid for grid in grids if grid.rows])
