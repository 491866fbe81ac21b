"""Rendering of values with rich; nothing here prints or calls the coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windrow_calls.terminal.bars import Bar
from windrow_calls.terminal.listings import FactTable, Indented, ListTable
from windrow_core.cards import count_text
from windrow_core.cards import seconds_text as seconds_text
from windrow_core.files.formats import SMALL_FILE_BYTES
from windrow_core.sizes import size_text

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow_calls.plans import SplitPlan
    from windrow_calls.terminal.histogram import SizeBin
    from windrow_core.models import (
        Column,
        LogFigures,
        Plan,
        PlanDefaults,
        PlanSummary,
        PublishedSnapshot,
        RefreshStatus,
        SnapshotInfo,
        SortColumn,
        TableInfo,
    )

DASH = "\N{EN DASH}"
_PRUNING_STEPS = ("manifest", "partition", "statistics", "bloom", "limit")


def bin_label(entry: SizeBin) -> str:
    """Return the range of a bin with a dash: 8 to 16 KB, or 512 B to 1 KB."""
    low, high = size_text(entry.low_bytes), size_text(entry.low_bytes * 2)
    number, unit = low.split(" ")
    return DASH.join((number if high.endswith(f" {unit}") else low, high))


def histogram(bins: Sequence[SizeBin], noun: str, style: str = "cyan") -> Table:
    """Draw one bar per bin, beside the number of what is counted."""
    table = ListTable(("size>", f"{noun}s>", ""), show_edge=False)
    largest = max((entry.count for entry in bins), default=0)
    for entry in bins:
        table.add_row(bin_label(entry), f"{entry.count:,}", Bar(entry.count, largest, style))
    return table


def plan_picture(plan: SplitPlan) -> RenderableType:
    """Draw the sizes of a plan's files and of its groups."""
    # Imported here: commands that show no sizes start in half the time.
    from windrow_calls.terminal.histogram import file_sizes

    files, groups = file_sizes(plan.groups), plan.groups["size_bytes"]
    return Group(
        picture("Files before", "file", files, "red"),
        picture("Groups after", "group", groups, "green"),
    )


def picture(title: str, noun: str, sizes: pa.Array | pa.ChunkedArray, style: str) -> RenderableType:
    """Draw a histogram of sizes in bytes, by powers of two."""
    import pyarrow.compute as pc

    from windrow_calls.terminal.histogram import size_bins

    if len(sizes) == 0:
        return Group(Text(""), Text(f"{title}: none", "bold"))
    head = Text(f"{title}: ", "bold").append(
        f"{count_text(len(sizes), noun)}, {size_text(pc.mean(sizes).as_py())} on average",
        "not bold",
    )
    return Group(Text(""), head, Indented(histogram(size_bins(sizes), noun, style)))


def _cacheable(summary: PlanSummary) -> str:
    next_files = summary.primary_placements + summary.secondary_placements
    parts = {
        "cached": summary.cached_files,
        "cached at the next read": next_files,
        "not cached for lack of room": summary.fallback_placements,
    }
    text = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    return f"{count_text(summary.cacheable_files, 'file')}: {text}"


def plan_figures(info: Plan) -> Table:
    """Show a plan's figures."""
    summary = info.summary
    counts = {step: getattr(summary, f"files_pruned_by_{step}") for step in _PRUNING_STEPS}
    pruning = ", ".join(f"{count:,} by {step}" for step, count in counts.items() if count)
    table = facts()
    table.add_row("table", Text(f"{info.table}, snapshot {info.snapshot_id}"))
    table.add_row(
        "files",
        f"{summary.files_planned:,} of {summary.files_total:,}"
        + (f" (pruned: {pruning})" if pruning else ""),
    )
    rows = "unknown" if summary.row_count is None else f"{summary.row_count:,} at most"
    table.add_row("rows", rows)
    table.add_row("size", size_text(summary.size_bytes))
    table.add_row("splits", f"{summary.split_count:,}")
    table.add_row("groups", f"{summary.group_count:,}, packed by {summary.strategy}")
    if summary.group_count:
        ends = map(size_text, (summary.smallest_group_bytes, summary.largest_group_bytes))
        sizes = " to ".join(dict.fromkeys(ends))
        splits = count_text(summary.largest_group_splits, "split")
        table.add_row("group size", f"{sizes}, at most {splits}")
    if summary.cacheable_files:
        table.add_row("cacheable", _cacheable(summary))
    table.add_row("with hosts", count_text(summary.groups_with_hosts, "group"))
    table.add_row("columns", Text(", ".join(column.name for column in info.columns)))
    table.add_row("planned in", seconds_text(summary.planning_seconds))
    table.add_row("plan", Text(info.plan_id))
    return table


def table_list(tables: Sequence[TableInfo]) -> RenderableType:
    """List tables with figures of their current snapshots."""
    if not tables:
        return message("there are no tables yet", "`windrow table register NAME LOCATION` adds one")
    table = listing(
        *("table", "files>", "rows>", "size>", "snapshot>", "location…"),
        drops=("snapshot", "rows", "location"),
    )
    for info in tables:
        snapshot = info.current_snapshot
        figures = (
            (DASH, DASH, DASH, "not refreshed")
            if snapshot is None
            else (
                f"{snapshot.file_count:,}",
                rows_text(snapshot.row_count),
                size_text(snapshot.size_bytes),
                str(snapshot.snapshot_id),
            )
        )
        table.add_row(Text(info.name), *figures, Text(info.definition.location))
    return table


def table_details(info: TableInfo) -> RenderableType:
    """Show one table."""
    definition, snapshot = info.definition, info.current_snapshot
    table = facts()
    table.add_row("table", Text(info.name, "bold"))
    table.add_row("location", Text(definition.location))
    table.add_row("format", definition.format)
    if definition.transactional is not None:
        table.add_row("transactional", definition.transactional.replace("_", "-"))
    if definition.format_options:
        texts = (f"{name}={value!r}" for name, value in definition.format_options.items())
        table.add_row("format options", Text(", ".join(texts)))
    if definition.imported_from is not None:
        table.add_row("imported from", Text(definition.imported_from))
    if info.partition_count is not None:
        table.add_row("partitions", f"{info.partition_count:,}, listed by a catalog")
    if definition.bucket_spec is not None:
        spec = definition.bucket_spec
        table.add_row("buckets", Text(f"{spec.count:,} by {', '.join(spec.columns)}"))
    if definition.sort_columns:
        table.add_row("sorted by", Text(", ".join(map(_sort_text, definition.sort_columns))))
    if options := plan_options_text(definition.plan_options):
        table.add_row("plan options", Text(options))
    if info.deletion_protection:
        table.add_row(
            "protected", f"from deletion: `windrow table unprotect {info.name}` ends that"
        )
    table.add_row("changed", f"{info.updated_at:%Y-%m-%d %H:%M:%S %Z}")
    if snapshot is None:
        table.add_row("snapshot", Text(f"none yet: `windrow table refresh {info.name}` makes one"))
        return table
    table.add_row("snapshot", _snapshot_text(snapshot))
    if snapshot.table_version is not None:
        table.add_row("version", Text(_version_text(snapshot.table_version, snapshot.log)))
    if snapshot.log is not None:
        table.add_row("small files", Text(_small_text(snapshot, snapshot.log)))
        table.add_row("deleted rows", Text(_deletes_text(snapshot.log)))
    if snapshot.valid_write_ids is not None:
        table.add_row("write ids", Text(snapshot.valid_write_ids))
    table.add_row("partitioned", _columns_text(snapshot.partition_columns) or Text("no"))
    table.add_row("columns", _columns_text(snapshot.columns))
    return table


def _version_text(version: str, log: LogFigures | None) -> str:
    text = version
    if log is not None and log.committed_at is not None:
        text += f", committed at {log.committed_at:%Y-%m-%d %H:%M:%S %Z}"
    if log is not None and log.versions is not None:
        text += f"; the log has {count_text(log.versions, 'version')}"
    return text


def _small_text(snapshot: SnapshotInfo, log: LogFigures) -> str:
    files = count_text(snapshot.file_count, "file")
    share = f"{log.small_files:,} of {files}, {size_text(log.small_bytes)}"
    return f"{share}, {'is' if log.small_files == 1 else 'are'} under {size_text(SMALL_FILE_BYTES)}"


def _deletes_text(log: LogFigures) -> str:
    if not log.delete_files:
        return "none"
    noun = "deletion vector or delete file"
    kinds = f"by {count_text(log.delete_files, noun, 'deletion vectors or delete files')}"
    return kinds if log.deleted_rows is None else f"{log.deleted_rows:,}, {kinds}"


def rows_text(count: int | None) -> str:
    """Return a number of rows as readable text."""
    return "unknown" if count is None else f"{count:,}"


def utc_text(at: datetime | None) -> str:
    """Return a time in UTC for a list whose title names the zone; a dash for None."""
    return DASH if at is None else f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"


def plan_options_text(options: PlanDefaults) -> str:
    """Return the plan options that a table sets as readable text."""
    values = options.model_dump(exclude_none=True)
    return ", ".join(f"{name}={value}" for name, value in values.items())


def refresh_outcome(status: RefreshStatus) -> RenderableType:
    """Show the outcome of a refresh."""
    if status.snapshot is None:
        return message(f"{status.table}: nothing was published")
    if not status.changed:
        text = f"{status.table}: nothing new in {seconds_text(status.seconds)}"
    else:
        text = (
            f"{status.table}: {count_text(status.files_added, 'file')} added, "
            f"{status.files_removed:,} removed in {seconds_text(status.seconds)}"
        )
    if status.snapshot.table_version is not None:
        text += ", according to the table's log"
    else:
        folders = status.progress.folders_listed + status.progress.folders_unchanged
        text += f"; {status.progress.folders_listed:,} of {count_text(folders, 'folder')} listed"
    if status.progress.files_empty:
        text += f"; {count_text(status.progress.files_empty, 'file')} of 0 bytes skipped"
    if status.progress.files_uncommitted:
        text += f"; {count_text(status.progress.files_uncommitted, 'uncommitted file')} skipped"
    return message(text, str(_snapshot_text(status.snapshot)))


def publish_outcome(table: str, snapshot: PublishedSnapshot) -> RenderableType:
    """Show the changes of a published inventory."""
    text = (
        f"{table}: {count_text(snapshot.files_added, 'file')} added, {snapshot.files_removed:,} "
        f"removed; {count_text(snapshot.manifests_written, 'manifest')} written, "
        f"{snapshot.manifests_reused:,} kept, "
        f"{size_text(snapshot.bytes_written)}"
    )
    return message(text, str(_snapshot_text(snapshot)))


def snapshot_list(name: str, snapshots: Sequence[SnapshotInfo]) -> RenderableType:
    """List a table's snapshots."""
    if not snapshots:
        return message(f"{name} has no snapshot yet", f"`windrow table refresh {name}` makes one")
    is_logged = any(one.table_version is not None for one in snapshots)
    version = ["version>"] if is_logged else []
    table = listing(
        "snapshot>",
        *version,
        "made at (UTC)",
        "files>",
        "rows>",
        "size>",
        "manifests>",
        drops=("manifests",),
    )
    for one in snapshots:
        table.add_row(
            str(one.snapshot_id),
            *([Text(one.table_version or "")] if is_logged else []),
            utc_text(one.created_at),
            f"{one.file_count:,}",
            rows_text(one.row_count),
            size_text(one.size_bytes),
            f"{one.manifest_count:,}",
        )
    return table


def serving(
    url: str, state_dir: str, folders: Sequence[str], token_command: str | None
) -> RenderableType:
    """Show where a coordinator listens, how to use it, and which folders it may read.

    Args:
        url: URL of the coordinator.
        state_dir: Where its state is.
        folders: Folders that it may read.
        token_command: The command that makes a token; None if nobody needs one.
    """
    table = facts()
    table.add_row("listening", Text(url, "bold", overflow="fold"))
    table.add_row("in Python", Text(f"windrow.connect({url!r})", overflow="fold"))
    table.add_row("in the shell", Text(f"export WINDROW_URL={url}", overflow="fold"))
    table.add_row("in a browser", Text(f"{url}/dashboard, {url}/docs", overflow="fold"))
    if token_command is not None:
        table.add_row("first token", Text(token_command, overflow="fold"))
    table.add_row("state", Text(state_dir, overflow="fold"))
    table.add_row("tables under", Text(", ".join(folders), overflow="fold"))
    return table


def message(text: str, more: str | None = None) -> RenderableType:
    """Show a line, and a remark below it."""
    lines = [Text(text, overflow="fold")]
    if more:
        lines.append(Text(more, "dim", overflow="fold"))
    return Group(*lines)


def titled(title: str, *body: RenderableType) -> RenderableType:
    """Show renderables below a title."""
    return Group(Text(title, "bold"), *map(Indented, body))


def section(title: str, *body: RenderableType) -> RenderableType:
    """Show renderables below a title, after an empty line; lists among them need no edge."""
    return Group(Text(""), titled(title, *body))


def listing(*titles: str, drops: Sequence[str] = ()) -> Table:
    """Return a table without rows; see `ListTable`."""
    return ListTable(titles, drops)


def facts() -> Table:
    """Return a table without rows, of names and what is said of each."""
    return FactTable()


def _snapshot_text(snapshot: SnapshotInfo) -> Text:
    count = snapshot.row_count
    rows = "unknown rows" if count is None else count_text(count, "row")
    return Text(
        f"snapshot {snapshot.snapshot_id}: {count_text(snapshot.file_count, 'file')}, "
        f"{rows}, {size_text(snapshot.size_bytes)}, "
        f"{count_text(snapshot.manifest_count, 'manifest')}"
    )


def _columns_text(columns: Sequence[Column]) -> Text:
    return Text(", ".join(f"{column.name} {column.type}" for column in columns))


def _sort_text(column: SortColumn) -> str:
    words = [column.name, "desc" if column.descending else "asc"]
    if column.nulls_first is not None:
        words.append("nulls first" if column.nulls_first else "nulls last")
    return " ".join(words)
