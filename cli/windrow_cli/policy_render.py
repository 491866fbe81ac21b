"""Rendering of policies and of the budget with rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from windrow_calls.terminal.render import facts, listing, message
from windrow_core.cards import count_text
from windrow_core.filter_text import filter_text
from windrow_core.models import (
    FIRST_REAL_DAY,
    EffectivePolicy,
    MaintenanceBudget,
    Policy,
    TableMaintenance,
)
from windrow_core.sizes import size_text

# What only matters where partitions are dropped.
_OF_RETENTION = {"keep_by", "keep_zone", "keep_before", "may_drop_all"}
_SECONDS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def policy_list(policies: Sequence[Policy]) -> RenderableType:
    """List policies."""
    if not policies:
        return message(
            "there are no policies, so nothing is maintained",
            "`windrow policy set PATTERN` adds one",
        )
    table = listing("pattern", "maintained", "how…")
    for policy in policies:
        parts = _parts(policy)
        table.add_row(
            Text(policy.pattern), "yes" if policy.enabled else "no", Text(", ".join(parts))
        )
    return table


def policy_text(policy: Policy) -> str:
    """Return what a policy says, in words."""
    return ", ".join(["maintained" if policy.enabled else "left alone", *_parts(policy)])


def table_policy(maintenance: TableMaintenance) -> RenderableType:
    """Show how a table is maintained, and where each part comes from."""
    table, policy = maintenance.table, maintenance.policy
    if not maintenance.sources:
        return message(
            f"{table} is left alone: no policy applies to it",
            f"`windrow policy set {table}` adds one",
        )
    says = "is maintained" if policy.enabled else "is left alone"
    rows = facts()
    for name, (title, text) in _texts(policy).items():
        if name in _OF_RETENTION and policy.keep_days is None:
            continue
        source = maintenance.sources.get(name)
        rows.add_row(title, Text(f"{text}, {f'from {source}' if source else 'by default'}"))
    return Group(
        Text(f"{table} {says}, from {maintenance.sources['enabled']}", "bold", overflow="fold"),
        rows,
    )


def budget_text(budget: MaintenanceBudget) -> str:
    """Return the budget, in words."""
    if budget.pause:
        return "all maintenance is paused: `windrow policy budget --resume` resumes it"
    if not budget.core_seconds_per_hour:
        return "all maintenance is paused: the budget is 0 core seconds an hour"
    size = (
        "any number of bytes"
        if budget.bytes_per_hour is None
        else f"{size_text(budget.bytes_per_hour)} of small files"
    )
    return f"{budget.core_seconds_per_hour:,.10g} core seconds and {size} an hour"


def duration_text(seconds: int) -> str:
    """Return seconds as text such as `1h` or `90s`."""
    unit, factor = next(
        ((unit, factor) for unit, factor in _SECONDS if seconds >= factor and not seconds % factor),
        ("s", 1),
    )
    return f"{seconds // factor}{unit}"


def _parts(policy: Policy) -> list[str]:
    names = {name for name in EffectivePolicy.model_fields if getattr(policy, name) is not None}
    return [f"{title} {text}" for name, (title, text) in _texts(policy).items() if name in names]


def _texts(policy: Policy | EffectivePolicy) -> dict[str, tuple[str, str]]:
    """Return the title and the text of each field but `enabled`."""
    share, size, age = policy.max_share, policy.target_file_size, policy.min_age_seconds
    return {
        "target_file_size": ("target", "" if size is None else size_text(size)),
        "min_files": ("min files", f"{policy.min_files}"),
        "min_gain": ("min gain", _number_text(policy.min_gain)),
        "reads_per_day": ("reads per day", _number_text(policy.reads_per_day)),
        "min_age_seconds": ("min age", "" if age is None else duration_text(age)),
        "windows": ("window", _windows_text(policy.windows)),
        "max_share": ("max share", "" if share is None else f"{100 * share:.6g}%"),
        "filter": ("filter", "none" if policy.filter is None else filter_text(policy.filter)),
        "keep_days": (
            "keep",
            "all partitions" if policy.keep_days is None else count_text(policy.keep_days, "day"),
        ),
        "keep_by": ("keep by", policy.keep_by or "the column with dates"),
        "keep_zone": ("days begin in", policy.keep_zone or "UTC"),
        "keep_before": ("keep days before", f"{policy.keep_before or FIRST_REAL_DAY}"),
        "may_drop_all": ("may drop all", "yes" if policy.may_drop_all else "no"),
        "exempt_folders": ("exempt", ", ".join(policy.exempt_folders or ()) or "none"),
        "readers_may_see_both": (
            "readers may see both",
            "yes" if policy.readers_may_see_both else "no",
        ),
    }


def _number_text(number: float | None) -> str:
    return "" if number is None else f"{number:,.6g}"


def _windows_text(windows: Sequence[str] | None) -> str:
    if not windows:
        return "at any time"
    return " and ".join(one if " " in one else f"{one} UTC" for one in windows)
