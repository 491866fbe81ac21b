"""Rendering of write plans with rich."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windrow_calls.terminal.listings import FactTable, ListTable
from windrow_calls.terminal.render import DASH, facts, titled
from windrow_core.cards import count_text
from windrow_core.models import WriteOutcome, WritePlan
from windrow_core.sizes import size_text

_BASES = {
    "size": "the size of rows",
    "rows": "the number of rows",
    "static": "a given number",
    "hybrid": "the counts of the last write",
}
_SOURCES = {
    "request": "as given",
    "history": "as in {rows} of earlier writes",
    "files": "as in {rows} of the table's files",
}


def write_plan_report(plan: WritePlan) -> RenderableType:
    """Show a write plan, and the other schemes if they were requested."""
    parts: list[RenderableType] = [_sentence(plan), Text(""), _facts(plan)]
    if plan.others:
        outcomes = sorted([plan.outcome, *plan.others], key=lambda one: (not one.serves, one.files))
        parts += [
            Text(""),
            titled("Schemes side by side", _schemes(outcomes, plan)),
            Text(""),
            titled("Why", _reasons(outcomes, plan)),
        ]
    return Group(*parts)


def _sentence(plan: WritePlan) -> Text:
    count = count_text(plan.files, "file")
    prefix = "" if plan.outcome.serves else "as requested, although "
    return Text(
        f"Write {count} of {_sizes(plan)} with {_named(plan)}: {prefix}{plan.outcome.reason}."
    )


def _sizes(plan: WritePlan) -> str:
    """Return how large the files become, which is often far from the target."""
    largest = plan.outcome.largest_file_bytes
    if plan.target_file_bytes is None:
        return f"about {count_text(plan.target_file_rows or 0, 'row')}"
    if largest is None:
        return f"about {size_text(plan.target_file_bytes)}"
    return f"at most {size_text(largest)}"


def _named(plan: WritePlan) -> str:
    if plan.scale is None:
        return plan.scheme
    return f"{plan.scheme} ({count_text(plan.salts or 0, 'salt')}, scale {plan.scale:,})"


def _facts(plan: WritePlan) -> Table:
    outcome = plan.outcome
    table = facts()
    if plan.table is not None:
        snapshot = f", snapshot {plan.snapshot_id}" if plan.snapshot_id is not None else ""
        table.add_row("table", Text(plan.table + snapshot))
    if plan.rows is not None:
        table.add_row("rows", f"{plan.rows:,}")
    if plan.row_size is not None:
        size = plan.row_size
        source = _SOURCES[size.source].format(rows=count_text(size.rows or 0, "row"))
        text = f"{_bytes(size.bytes_per_row)}, {source}"
        if size.low < size.high:
            text += f" ({_bytes(size.low)} to {_bytes(size.high)})"
        table.add_row("row size", text)
    spread = ""
    if plan.files_low != plan.files_high:
        spread = f" ({plan.files_low:,} to {plan.files_high:,}, depending on the size of rows)"
    table.add_row("files", f"{plan.files:,}, from {_BASES[plan.basis]}{spread}")
    table.add_row("Spark partitions", f"{plan.tasks:,}")
    table.add_row("largest file", _sized(outcome.largest_file, plan))
    table.add_row("largest task", _sized(outcome.largest_task, plan))
    if plan.salt_columns:
        table.add_row("salt", Text(f"xxhash64 of {', '.join(plan.salt_columns)}"))
    return table


def _schemes(outcomes: list[WriteOutcome], plan: WritePlan) -> RenderableType:
    titles = (
        "scheme",
        "files>",
        "small\nfiles>",
        "largest\nfile>",
        "largest\ntask>",
        "effi-\nciency>",
        "colli-\nsions>",
        "severe>",
        "most\nkeys>",
    )
    drops = ("effi-\nciency", "most\nkeys", "severe", "colli-\nsions")
    table = ListTable(titles, drops, show_edge=False)
    for outcome in outcomes:
        table.add_row(
            Text(outcome.scheme, _style(outcome, plan)),
            f"{outcome.files:,}",
            _percent(outcome.small_files, outcome.files),
            _targets(outcome.largest_file),
            _targets(outcome.largest_task),
            f"{outcome.efficiency:.3f}",
            _percent(outcome.collisions, 1),
            _percent(outcome.severe_collisions, 1),
            f"{outcome.most_keys_in_a_task:,}",
        )
    return Group(table, Text("Sizes are multiples of the target."))


def _reasons(outcomes: list[WriteOutcome], plan: WritePlan) -> Table:
    table = FactTable("")
    for outcome in outcomes:
        is_chosen = outcome.scheme == plan.scheme
        verdict = "chosen: " if is_chosen else "suitable: " if outcome.serves else "unsuitable: "
        reason = outcome.reason.replace("source_tasks", "--source-tasks")
        remark = "" if outcome.exact or not outcome.serves else " (expected with a uniform hash)"
        table.add_row(Text(outcome.scheme, _style(outcome, plan)), Text(verdict + reason + remark))
    return table


def _style(outcome: WriteOutcome, plan: WritePlan) -> str:
    if outcome.scheme == plan.scheme:
        return "bold green"
    return "green" if outcome.serves else ""


def _sized(targets: float, plan: WritePlan) -> str:
    in_targets = f"{targets:.2f} times the target"
    if plan.target_file_bytes is None:
        return in_targets
    return f"{size_text(targets * plan.target_file_bytes)}, {in_targets}"


def _targets(size: float) -> str:
    return f"{size:,.2f}" if size < 1000 else f"{size:,.0f}"


def _bytes(size: float) -> str:
    return f"{size:,.1f} B" if size < 1000 else size_text(size)


def _percent(part: float, whole: float) -> str:
    if not whole or not part:
        return DASH
    return "< 1 %" if part < whole / 200 else f"{100 * part / whole:.0f} %"
