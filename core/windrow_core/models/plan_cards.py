"""How plans of reads and writes show themselves: at a prompt, in notebooks, and by commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from windrow_core.cards import (
    DASH,
    Bar,
    Card,
    Cell,
    Grid,
    Layout,
    card_of,
    count_text,
    grid_of,
    seconds_text,
)
from windrow_core.filter_text import filter_text
from windrow_core.models.explain import PlanExplanation
from windrow_core.models.options import SPLIT_SIZES
from windrow_core.models.plans import FilesInPacks, Plan, PlanSummary
from windrow_core.models.rows import percent_text
from windrow_core.models.writes import WriteOutcome, WritePlan
from windrow_core.planning import AloneReason
from windrow_core.sizes import size_text

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
_ALONE: Mapping[AloneReason, str] = {
    "in_no_pack": "in no pack",
    "cut": "cut into parts",
    "few_wanted": "of packs with few wanted rows",
}
_PLACES = {
    "host_bytes": "at a preferred host",
    "rack_bytes": "in its rack",
    "elsewhere_bytes": "elsewhere",
    "unknown_bytes": "unknown",
}
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
        ("columns", ", ".join(column.name for column in plan.columns)),
    ]
    return Card(f"Plan {plan.plan_id}", facts, [pruning_of(summary), *grids])


@card_of.register
def _(summary: PlanSummary) -> Card:
    facts = [
        ("files", f"{summary.files_planned:,} of {summary.files_total:,}"),
        ("rows", "unknown" if summary.row_count is None else f"{summary.row_count:,} at most"),
        ("size", size_text(summary.size_bytes)),
        (
            "groups",
            f"{summary.group_count:,}, packed by {summary.strategy}, "
            + count_text(summary.split_count, "split"),
        ),
    ]
    if summary.group_count:
        ends = map(size_text, (summary.smallest_group_bytes, summary.largest_group_bytes))
        splits = count_text(summary.largest_group_splits, "split")
        facts += [
            ("group size", f"{' to '.join(dict.fromkeys(ends))}, at most {splits}"),
            ("with hosts", count_text(summary.groups_with_hosts, "group")),
        ]
    if summary.in_packs is not None:
        facts.append(("from packs", _in_packs_text(summary.in_packs)))
    if summary.cacheable_files:
        facts.append(("cacheable", _cacheable_text(summary)))
    facts.append(("planned in", seconds_text(summary.planning_seconds)))
    if summary.slowest_slot_seconds is not None:
        facts.append(("predicted time", seconds_text(summary.slowest_slot_seconds)))
    return Card("Plan summary", facts)


def _in_packs_text(in_packs: FilesInPacks) -> str:
    text = count_text(in_packs.files, "file")
    alone = [f"{count:,} {_ALONE[reason]}" for reason, count in in_packs.alone.items()]
    return f"{text}; by themselves: {', '.join(alone)}" if alone else text


def _cacheable_text(summary: PlanSummary) -> str:
    next_files = summary.primary_placements + summary.secondary_placements
    parts = {
        "cached": summary.cached_files,
        "cached at the next read": next_files,
        "not cached for lack of room": summary.fallback_placements,
    }
    text = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    return f"{count_text(summary.cacheable_files, 'file')}: {text}"


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
    return Grid(("pruned by", "files>", "size>", ""), rows, "Pruning", main=len(steps))


@card_of.register
def _(plan: PlanExplanation) -> Card:
    own, options = plan.strategies[0], plan.options
    steps = [(_STEPS[step.step], step.files, step.size_bytes) for step in plan.pruned]
    groups = (
        f"{own.group_count:,} of at most {size_text(options.max_split_size)}, packed by "
        f"{own.strategy} for {count_text(options.parallelism, 'task')} at a time"
    )
    facts = [
        ("table", f"{plan.table}, snapshot {plan.snapshot_id}"),
        (
            "files",
            f"{plan.files_planned:,} of {plan.files_total:,}, {size_text(plan.size_bytes)}, "
            + count_text(plan.split_count, "split"),
        ),
        ("groups", groups if own.group_count else "none"),
        (
            "predicted time",
            f"{seconds_text(own.slowest_slot_seconds)}; the longest task takes "
            + seconds_text(own.longest_task_seconds),
        ),
        (
            "left out",
            ", ".join(f"{count:,} by {name}" for name, count, _ in steps if count) or "none",
        ),
    ]
    if plan.in_packs is not None:
        facts.append(("from packs", _in_packs_text(plan.in_packs)))
    if (opens := plan.delete_files) is not None:
        text = (
            f"opened {count_text(opens.by_group, 'time')}: each group opens those of all its splits "
            f"once; {count_text(opens.by_split, 'time')} if each split opened its own"
        )
        facts.append(("delete files", text))
    grids = [_pruning(steps, plan.files_total, plan.files_planned, plan.size_bytes)]
    if own.group_count:
        grids += _group_grids(plan)
    if plan.option_sources:
        grids.append(_options(plan))
    return Card(f"Explanation of plan {plan.plan_id}", facts, grids)


def _group_grids(plan: PlanExplanation) -> Iterator[Grid]:
    reasons: list[list[Cell]] = [
        [_REASONS[one.reason], f"{one.groups:,}", f"{one.splits:,}", size_text(one.size_bytes)]
        for one in plan.reasons
        if one.groups
    ]
    yield Grid(("reason…", "groups>", "splits>", "size>"), reasons, "Groups")
    fullest = max(1, *plan.fill_histogram)
    fill: list[list[Cell]] = [
        [f"{step * 10}{DASH}{step * 10 + 10} %", f"{count:,}", Bar(count / fullest)]
        for step, count in enumerate(plan.fill_histogram)
    ]
    yield Grid(("fill", "groups>", ""), fill, "Fill of the groups")
    places: list[list[Cell]] = [
        [name, size_text(size), percent_text(size, plan.size_bytes), Bar(size / plan.size_bytes)]
        for field, name in _PLACES.items()
        if (size := getattr(plan.locality, field))
    ]
    yield Grid(("place", "size>", "share>", ""), places, "Location of the data")
    if plan.placements:
        most = max(1, *(one.cached_bytes + one.placed_bytes for one in plan.placements))
        workers: list[list[Cell]] = [
            [
                one.host or "no room anywhere",
                f"{one.cached_files:,}",
                size_text(one.cached_bytes),
                f"{one.placed_files:,}",
                size_text(one.placed_bytes),
                Bar((one.cached_bytes + one.placed_bytes) / most, is_loss=not one.host),
            ]
            for one in plan.placements
        ]
        titles = ("worker…", "cached>", "size>", "to fetch>", "size>", "")
        yield Grid(titles, workers, "Workers for cacheable files")
    yield _strategies(plan)


def _strategies(plan: PlanExplanation) -> Grid:
    slowest = max(one.slowest_slot_seconds for one in plan.strategies) or 1
    known_bytes = plan.size_bytes - plan.locality.unknown_bytes
    rows: list[list[Cell]] = [
        [
            one.strategy,
            f"{one.group_count:,}",
            f"{one.fewest_groups:,}",
            percent_text(one.fill, 1),
            percent_text(one.host_local_bytes, known_bytes, "0 %"),
            seconds_text(one.longest_task_seconds),
            seconds_text(one.slowest_slot_seconds),
            Bar(one.slowest_slot_seconds / slowest, is_loss=at > 0),
            seconds_text(one.all_tasks_seconds),
        ]
        for at, one in enumerate(plan.strategies)
    ]
    titles = (
        *("strategy", "groups>", "fewest\npossible>", "fill>", "host\nlocal>"),
        *("longest\ntask>", "slowest\nslot>", "", "all\ntasks>"),
    )
    return Grid(
        titles,
        rows,
        "Comparison of strategies",
        "Times are predicted. For all strategies, opening a file is assumed to cost as much as "
        f"reading {size_text(plan.open_file_cost)}.",
        layout=Layout(("fewest\npossible", "host\nlocal", "all\ntasks", "fill")),
        main=0,
    )


def _options(plan: PlanExplanation) -> Grid:
    rows: list[list[Cell]] = []
    for name, source in plan.option_sources.items():
        value = getattr(plan.options, name)
        if value is not None and name in SPLIT_SIZES:
            text = size_text(value)
        else:
            text = "no limit" if value is None else str(value)
        rows.append([name, text, source])
    return Grid(("option", "value>", "set by"), rows, "Options")


@card_of.register
def _(plan: WritePlan) -> Card:
    outcome = plan.outcome
    prefix = "" if outcome.serves else "as requested, although "
    facts = [("why", f"{prefix}{outcome.reason}")]
    if plan.table is not None:
        snapshot = "" if plan.snapshot_id is None else f", snapshot {plan.snapshot_id}"
        facts.append(("table", plan.table + snapshot))
    if plan.rows is not None:
        facts.append(("rows", f"{plan.rows:,}"))
    if (size := plan.row_size) is not None:
        source = _SOURCES[size.source].format(rows=count_text(size.rows or 0, "row"))
        text = f"{_row_size_text(size.bytes_per_row)}, {source}"
        if size.low < size.high:
            text += f" ({_row_size_text(size.low)} to {_row_size_text(size.high)})"
        facts.append(("row size", text))
    spread = ""
    if plan.files_low != plan.files_high:
        spread = f" ({plan.files_low:,} to {plan.files_high:,}, depending on the size of rows)"
    facts += [
        ("files", f"{plan.files:,}, from {_BASES[plan.basis]}{spread}"),
        ("Spark partitions", f"{plan.tasks:,}"),
        ("largest file", _sized(outcome.largest_file, plan)),
        ("largest task", _sized(outcome.largest_task, plan)),
    ]
    if plan.salt_columns:
        facts.append(("salt", f"xxhash64 of {', '.join(plan.salt_columns)}"))
    return Card(_write_title(plan), facts, [*_schemes(plan)] if plan.others else ())


def _write_title(plan: WritePlan) -> str:
    """Return what to do, with how large the files become, which is often far from the target."""
    largest = plan.outcome.largest_file_bytes
    if plan.target_file_bytes is None:
        sizes = f"about {count_text(plan.target_file_rows or 0, 'row')}"
    elif largest is None:
        sizes = f"about {size_text(plan.target_file_bytes)}"
    else:
        sizes = f"at most {size_text(largest)}"
    scale = ""
    if plan.scale is not None:
        scale = f" ({count_text(plan.salts or 0, 'salt')}, scale {plan.scale:,})"
    return f"Write {count_text(plan.files, 'file')} of {sizes} with {plan.scheme}{scale}"


def _schemes(plan: WritePlan) -> Iterator[Grid]:
    outcomes = sorted([plan.outcome, *plan.others], key=lambda one: (not one.serves, one.files))
    own = outcomes.index(plan.outcome)
    note = "Sizes are multiples of the target."
    yield replace(grid_of(outcomes, "Schemes side by side", note), main=own)
    reasons: list[list[Cell]] = [
        [one.scheme, _verdict(one, plan) + one.reason + _certainty(one)] for one in outcomes
    ]
    yield Grid(("scheme", "verdict…"), reasons, "Why", main=own)


def _verdict(outcome: WriteOutcome, plan: WritePlan) -> str:
    if outcome.scheme == plan.scheme:
        return "chosen: "
    return "suitable: " if outcome.serves else "unsuitable: "


def _certainty(outcome: WriteOutcome) -> str:
    return "" if outcome.exact or not outcome.serves else " (expected with a uniform hash)"


def _sized(targets: float, plan: WritePlan) -> str:
    in_targets = f"{targets:.2f} times the target"
    if plan.target_file_bytes is None:
        return in_targets
    return f"{size_text(targets * plan.target_file_bytes)}, {in_targets}"


def _row_size_text(size: float) -> str:
    return f"{size:,.1f} B" if size < 1000 else size_text(size)
