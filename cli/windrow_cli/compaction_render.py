"""Rendering of compaction plans and advice with rich."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windrow_calls.terminal.listings import FactTable, ListTable
from windrow_calls.terminal.render import message, seconds_text, section
from windrow_core.cards import count_text
from windrow_core.models import Advice, CompactionPlan, LeftAlone, TableAdvice, WriteOrigin
from windrow_core.sizes import mean_text, size_text

_SHOWN_PARTITIONS = 40
_SHOWN_WRITES = 12


def compaction_plan(pages: Sequence[CompactionPlan]) -> RenderableType:
    """Show the partitions to compact with costs and gains, and why the others are left alone.

    Args:
        pages: All pages of one plan, at least one.
    """
    plan = pages[0]
    totals = plan.totals
    head = f"{plan.table}, snapshot {plan.snapshot_id}"
    parts: list[RenderableType] = []
    if totals.partitions:
        parts.append(
            message(
                f"{head}: {count_text(totals.files, 'small file')} "
                f"({size_text(totals.size_bytes)}) become "
                f"{totals.becomes:,} of {mean_text(totals.becomes, totals.size_bytes)}",
                f"files under {size_text(plan.small_file_bytes)} are small; rewriting them costs "
                f"{seconds_text(totals.cost_seconds)} of one core, and saves "
                f"{seconds_text(totals.gain_seconds)} at each read",
            )
        )
        parts += [Text(""), _partitions(pages)]
    else:
        parts.append(
            message(
                f"{head}: no partition is worth compacting", count_text(plan.file_count, "file")
            )
        )
    if plan.left_alone:
        parts.append(section("Left alone", _left_alone(plan.left_alone)))
    return Group(*parts)


def _partitions(pages: Sequence[CompactionPlan]) -> RenderableType:
    table = ListTable(
        ("partition…", "files>", "small>", "size>", "becomes>", "cost>", "gain>"),
        ("files", "cost"),
        show_edge=False,
    )
    rows = [
        row
        for page in pages
        for row in zip(
            page.partitions.folders,
            page.partitions.buckets,
            page.partitions.all_files,
            page.partitions.files,
            page.partitions.size_bytes,
            page.partitions.becomes,
            page.partitions.cost_seconds,
            page.partitions.gain_seconds,
            strict=True,
        )
    ]
    for folder, bucket, all_files, files, size_bytes, becomes, cost, gain in rows[
        :_SHOWN_PARTITIONS
    ]:
        table.add_row(
            Text((folder or "(all)") + ("" if bucket is None else f", bucket {bucket}")),
            f"{all_files:,}",
            f"{files:,}",
            size_text(size_bytes),
            f"{becomes:,}",
            seconds_text(cost),
            seconds_text(gain),
        )
    if len(rows) <= _SHOWN_PARTITIONS:
        return table
    more = f"and {len(rows) - _SHOWN_PARTITIONS:,} more; --json shows all"
    return Group(table, Text(more, "dim"))


def _left_alone(left: Sequence[LeftAlone]) -> Table:
    table = FactTable("")
    for one in left:
        text = re.sub(r"\bmin_files=", "--min-files ", one.explanation)
        text = text.replace("worth_reads", "--worth-reads")
        table.add_row(count_text(one.partitions, "partition"), Text(text))
    return table


def table_advice(table: TableAdvice) -> RenderableType:
    """Show which writes made a table's files, and how to make better ones."""
    head = (
        f"{table.table}, snapshot {table.snapshot_id}: {count_text(table.files, 'file')} "
        f"({size_text(table.size_bytes)}), {table.small_files:,} of them small"
    )
    remark = (
        f"with a target of {size_text(table.target_file_bytes)}, the same partitions would hold "
        f"{count_text(table.would_be, 'file')} of {mean_text(table.would_be, table.size_bytes)}"
    )
    parts: list[RenderableType] = [message(head, remark)]
    if table.writes:
        parts.append(section(_writes_title(table), _writes(table.writes[:_SHOWN_WRITES])))
    parts += [_advice(one) for one in table.advice]
    if not table.advice:
        parts += [Text(""), Text("nothing to advise")]
    return Group(*parts)


def _writes_title(table: TableAdvice) -> str:
    count = min(table.write_count, _SHOWN_WRITES)
    if count == table.write_count:
        return "Writes"
    return f"Writes: {count:,} of {table.write_count:,}, the ones with the most excess files"


def _writes(writes: Sequence[WriteOrigin]) -> Table:
    table = ListTable(
        (
            "when (UTC)",
            "tasks>",
            "partitions>",
            "files>",
            "small>",
            "size>",
            "would be>",
            "trouble…",
        ),
        ("tasks", "size", "partitions", "when (UTC)"),
        show_edge=False,
    )
    for one in writes:
        remarks = [one.trouble, one.scheme and f"planned: {one.scheme}"]
        table.add_row(
            _when(one.last_at),
            "" if one.tasks is None else f"{one.tasks:,}",
            f"{one.partitions:,}",
            f"{one.files:,}",
            f"{one.small_files:,}",
            size_text(one.size_bytes),
            f"{one.would_be:,}",
            Text(", ".join(text.replace("_", " ") for text in remarks if text)),
        )
    return table


def _advice(one: Advice) -> RenderableType:
    title = (
        f"{one.kind.replace('_', ' ').capitalize()}: {count_text(one.files, 'file')} instead of "
        f"{one.would_be:,}"
    )
    return section(
        title, Text(one.problem, overflow="fold"), Text(one.remedy, "green", overflow="fold")
    )


def _when(at: datetime) -> str:
    return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M}"
