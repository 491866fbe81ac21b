"""`windrow explain`: explain a plan, and compare it with other strategies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.errors import NotFoundError
from windrow_calls.terminal.bars import Bar
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.listings import Drawing, ListTable
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    AsJson,
    ColumnNames,
    FilterText,
    Limit,
    MaxSplitSize,
    Parallelism,
    Strategy,
    Url,
    names,
    table_name,
)
from windrow_calls.terminal.render import DASH, seconds_text, section
from windrow_cli.arguments import tables
from windrow_cli.errors import CommandError
from windrow_core.cards import count_text
from windrow_core.models import SPLIT_SIZES, DeleteOpens, PlanExplanation
from windrow_core.sizes import size_text


def explain(
    what: Annotated[
        str,
        typer.Argument(
            parser=table_name,
            metavar="PLAN|NAME",
            autocompletion=tables,
            help="Id of a plan, or its first eight digits; or name of a table to make a plan of.",
        ),
    ],
    filter_: FilterText = None,
    columns: ColumnNames = None,
    limit: Limit = None,
    parallelism: Parallelism = None,
    strategy: Strategy = None,
    max_split_size: MaxSplitSize = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Explain a plan.

    Shows which files were pruned, why its groups are as they are, how every other strategy would
    pack the same files, and whether request, session or table set each option.
    """
    values: dict[str, Any] = {
        "filter": filter_,
        "columns": names(columns),
        "limit": limit,
        "parallelism": parallelism,
        "strategy": strategy,
        "max_split_size": max_split_size,
    }
    options = {option: value for option, value in values.items() if value is not None}
    with connect(url, check=False) as client:
        is_plan = _is_plan(client, what)
        if is_plan and options:
            names_text = ", ".join(f"--{option.replace('_', '-')}" for option in options)
            raise typer.BadParameter(
                f"{names_text}: the options of an existing plan cannot change; give the name of a "
                "table to make a new plan"
            )
        plan_id = what if is_plan else _new_plan(client, what, options)
        answer = client.explain(plan_id)
    show_result(answer, lambda: explanation(answer), as_json)


def _is_plan(client: Client, what: str) -> bool:
    """Return whether a text is a plan's id or its first digits; a table may be called like these."""
    if not _DIGITS.fullmatch(what):
        return False
    return len(what) == _ID_DIGITS or any(client.past_plans(plan_id=what))


def _new_plan(client: Client, table: str, options: dict[str, Any]) -> str:
    """Return the id of a new plan of a table."""
    try:
        return client.plan(table, **options).info.plan_id
    except NotFoundError as error:
        if error.problem.type != _NO_TABLE or not _DIGITS.fullmatch(table):
            raise
        raise CommandError(
            f"no plan has an id that begins with {table}, and no table has this name: "
            "`windrow history` lists plans"
        ) from error


_DIGITS = re.compile("[0-9a-f]{8,32}")
_ID_DIGITS = 32
_NO_TABLE = "urn:windrow:problem:table-not-found"
_STEPS = {
    "manifest": "ranges of manifests",
    "partition": "partition values",
    "statistics": "statistics",
    "bloom": "Bloom filters",
    "limit": "limit",
}
_REASONS = {
    "cacheable": "cacheable: read where it is cached",
    "large": "large: a single split that fills the group, or a piece of a file",
    "no_location": "no location: no host holds enough of the group",
    "small": "small: files packed together",
}
_PLACES = {
    "host_bytes": "at a preferred host",
    "rack_bytes": "in its rack",
    "elsewhere_bytes": "elsewhere",
    "unknown_bytes": "unknown",
}


def explanation(plan: PlanExplanation) -> RenderableType:
    """Show a plan's explanation."""
    parts: list[RenderableType] = [_sentence(plan), section("Pruning", _pruning(plan))]
    if plan.strategies[0].group_count:
        parts += [
            section("Groups", _reasons(plan)),
            section("Fill of the groups", _fill(plan)),
            section("Location of the data", _places(plan)),
            *([section("Workers for cacheable files", _workers(plan))] * bool(plan.placements)),
            section("Comparison of strategies", _strategies(plan), *_slots(plan)),
        ]
    if plan.delete_files is not None:
        parts.append(section("Delete files", _deletes(plan.delete_files)))
    if plan.option_sources:
        parts.append(section("Options", _options(plan)))
    return Group(*parts)


def _sentence(plan: PlanExplanation) -> RenderableType:
    own, options = plan.strategies[0], plan.options
    what = (
        f"Plan {plan.plan_id} of {plan.table}, snapshot {plan.snapshot_id}: "
        f"{plan.files_planned:,} of {count_text(plan.files_total, 'file')}"
    )
    if not own.group_count:
        return Text(f"{what}, so there are no groups.")
    return Text(
        f"{what} ({size_text(plan.size_bytes)}, {count_text(plan.split_count, 'split')}) in "
        f"{count_text(own.group_count, 'group')} of at most {size_text(options.max_split_size)}, "
        f"packed by {own.strategy} for {count_text(options.parallelism, 'task')} at a time. "
        "Prediction: the slowest slot "
        f"finishes after {seconds_text(own.slowest_slot_seconds)}; the longest task takes "
        f"{seconds_text(own.longest_task_seconds)}."
    )


def _pruning(plan: PlanExplanation) -> Table:
    table = _table("pruned by", "files", "size", "")
    rows = [(_STEPS[step.step], step.files, step.size_bytes) for step in plan.pruned]
    rows.append(("planned", plan.files_planned, plan.size_bytes))
    for name, files, size_bytes in rows:
        is_plan = name == "planned"
        table.add_row(
            Text(name, "bold" if is_plan else ""),
            f"{files:,}",
            size_text(size_bytes),
            Bar(files, plan.files_total, "green" if is_plan else "red"),
        )
    return table


def _reasons(plan: PlanExplanation) -> Table:
    table = _table("reason", "groups", "splits", "size")
    for each in plan.reasons:
        if each.groups:
            figures = (f"{each.groups:,}", f"{each.splits:,}", size_text(each.size_bytes))
            table.add_row(_REASONS[each.reason], *figures)
    return table


def _fill(plan: PlanExplanation) -> Table:
    table = _table("fill", "groups", "")
    largest = max(plan.fill_histogram)
    for step, count in enumerate(plan.fill_histogram):
        label = f"{step * 10}{DASH}{step * 10 + 10} %"
        table.add_row(label, f"{count:,}", Bar(count, largest, "cyan"))
    return table


def _places(plan: PlanExplanation) -> Table:
    table = _table("place", "size", "share", "")
    for field, name in _PLACES.items():
        size_bytes = getattr(plan.locality, field)
        if size_bytes:
            share = _percent(size_bytes, plan.size_bytes)
            bar = Bar(size_bytes, plan.size_bytes, "cyan")
            table.add_row(name, size_text(size_bytes), share, bar)
    return table


def _workers(plan: PlanExplanation) -> Table:
    table = _table("worker", "cached", "size", "to fetch", "size", "")
    sizes = [each.cached_bytes + each.placed_bytes for each in plan.placements]
    for each, size_bytes in zip(plan.placements, sizes, strict=True):
        table.add_row(
            Text(each.host or "no room anywhere", "" if each.host else "yellow"),
            f"{each.cached_files:,}",
            size_text(each.cached_bytes),
            f"{each.placed_files:,}",
            size_text(each.placed_bytes),
            Bar(size_bytes, max(sizes), "cyan" if each.host else "yellow"),
        )
    return table


def _deletes(opens: DeleteOpens) -> Text:
    return Text(
        f"Opened {count_text(opens.by_group, 'time')}: each group opens the delete files of all its "
        f"splits once. Without groups, it would be {count_text(opens.by_split, 'time')}: each split "
        "would open its own."
    )


def _strategies(plan: PlanExplanation) -> Table:
    table = _table(
        "strategy",
        "groups",
        "fewest\npossible",
        "fill",
        "host\nlocal",
        "longest\ntask",
        "slowest\nslot",
        "all\ntasks",
        drops=("fewest\npossible", "host\nlocal", "all\ntasks", "fill"),
    )
    known_bytes = plan.size_bytes - plan.locality.unknown_bytes
    for each in plan.strategies:
        table.add_row(
            Text(each.strategy, "bold" if each is plan.strategies[0] else ""),
            f"{each.group_count:,}",
            f"{each.fewest_groups:,}",
            _percent(each.fill, 1),
            _percent(each.host_local_bytes, known_bytes),
            seconds_text(each.longest_task_seconds),
            seconds_text(each.slowest_slot_seconds),
            seconds_text(each.all_tasks_seconds),
        )
    return table


def _slots(plan: PlanExplanation) -> Sequence[RenderableType]:
    table = _table("slowest slot", "", "")
    largest = max(each.slowest_slot_seconds for each in plan.strategies)
    for each in plan.strategies:
        seconds = each.slowest_slot_seconds
        style = "green" if each is plan.strategies[0] else "cyan"
        table.add_row(each.strategy, seconds_text(seconds), Bar(seconds, largest, style))
    note = (
        "Times are predicted. For all strategies, opening a file is assumed to cost as much as "
        f"reading {size_text(plan.open_file_cost)}."
    )
    # The bars show what the list above says.
    return Drawing(Text(""), table), Text(""), Text(note, "dim")


def _options(plan: PlanExplanation) -> Table:
    table = _table("option", "value", "set by")
    for name, source in plan.option_sources.items():
        value = getattr(plan.options, name)
        if value is None:
            text = "no limit"
        elif name in SPLIT_SIZES:
            text = size_text(value)
        else:
            text = str(value)
        table.add_row(name, text, Text(source, "" if source == "default" else "bold"))
    return table


def _table(first: str, *more: str, drops: Sequence[str] = ()) -> Table:
    """Return a table with a column of names, then figures; a column without a title is for bars."""
    titles = [f"{name}>" if name else "" for name in more]
    return ListTable((first, *titles), drops, show_edge=False)


def _percent(part: float, whole: float) -> str:
    if not whole:
        return DASH
    return "< 1 %" if 0 < part < whole / 200 else f"{100 * part / whole:.0f} %"
