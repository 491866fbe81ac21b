"""How policies of maintenance, and what they decided, show themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from windrow_core.cards import (
    Card,
    Cell,
    Grid,
    Hint,
    card_of,
    count_text,
    grid_of,
    grid_of_rows,
    moment_text,
    row_of,
    utc_text,
)
from windrow_core.models.field_texts import POLICY_FIELDS, PolicyField
from windrow_core.models.maintenance import EffectivePolicy, MaintenanceBudget, Policy
from windrow_core.models.maintenance_work import (
    MaintenanceReceipt,
    RetentionPreview,
    TableMaintenance,
    TableRetention,
)
from windrow_core.sizes import size_text

_SHOWN_TABLES = 20
_STATES = {
    "waiting": "next",
    "running": "running",
    "done": "done",
    "gave_up": "given up",
    "failed": "failed",
    "left_alone": "left alone",
}


@row_of.register
def _(policy: Policy) -> Mapping[str, Cell]:
    state = "yes" if policy.enabled else "no"
    return {"pattern": policy.pattern, "maintained": state, "how…": policy_text(policy)}


@card_of.register
def _(policy: Policy) -> Card:
    says = "maintained" if policy.enabled else "left alone"
    return Card(f"{policy.pattern}: {says}", list(_parts(policy)))


def policy_text(policy: Policy | EffectivePolicy) -> str:
    """Return what a policy says besides whether it is on; what it does not say has its default."""
    return ", ".join(map(" ".join, _parts(policy))) or "everything by default"


def _parts(policy: Policy | EffectivePolicy) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each field that a policy sets."""
    unset = EffectivePolicy() if isinstance(policy, EffectivePolicy) else None
    for field in POLICY_FIELDS:
        if (value := getattr(policy, field.name)) != getattr(unset, field.name, None):
            yield field.title, _text(field, value)


@card_of.register
def _(maintenance: TableMaintenance) -> Card:
    table, policy, sources = maintenance.table, maintenance.policy, maintenance.sources
    remark: str
    if not sources:
        remark = Hint("{call} adds one.", "define_policy", pattern=table)
        return Card(f"{table} is left alone: no policy applies to it", remark=remark)
    facts = []
    for field in POLICY_FIELDS:
        if policy.keep_days is not None or not field.of_retention or field.name == "keep_days":
            source = f"from {sources[field.name]}" if field.name in sources else "by default"
            facts.append((field.title, f"{_text(field, getattr(policy, field.name))}, {source}"))
    says = "is maintained" if policy.enabled else "is left alone"
    title = f"{table} {says}, from {sources['enabled']}"
    if maintenance.decided_at is None:
        remark = Hint("No decision yet: {call} makes one now.", "decide_maintenance")
        return Card(title, facts, remark=remark)
    if not maintenance.receipts:
        remark = "No decision about this table yet: its policy is newer than the last round."
        return Card(title, facts, remark=remark)
    return Card(title, facts, _decisions(maintenance, maintenance.decided_at))


def _decisions(maintenance: TableMaintenance, decided_at: datetime) -> list[Grid]:
    receipts = sorted(maintenance.receipts, key=lambda one: _order(one, decided_at))
    rows: list[Mapping[str, Cell]] = [
        {
            "when (UTC)": utc_text(one.last_at),
            "what": _state(one, decided_at),
            "times>": f"{one.times:,}",
            "why…": one.text,
        }
        for one in receipts
    ]
    return [grid_of_rows(rows, f"Decided at {moment_text(decided_at)}")]


def _state(receipt: MaintenanceReceipt, decided_at: datetime) -> str:
    """Return what is happening, or happened."""
    if _is_past(receipt, decided_at):
        return "was left alone"
    # Clocks differ, and leases are renewed long before they end.
    is_gone = receipt.lease_until is not None and receipt.lease_until < datetime.now(timezone.utc)
    return "worker gone" if is_gone else _STATES[receipt.state]


def _is_past(receipt: MaintenanceReceipt, decided_at: datetime) -> bool:
    """Return whether partitions were left alone before the last round, which decided otherwise."""
    return receipt.state == "left_alone" and receipt.last_at < decided_at


def _order(receipt: MaintenanceReceipt, decided_at: datetime) -> tuple[int, float]:
    """Put what comes next first, then what runs, what waits now, and the past, newest first."""
    rank = {"waiting": 0, "running": 1, "left_alone": 2}.get(receipt.state, 3)
    return 3 if _is_past(receipt, decided_at) else rank, -receipt.last_at.timestamp()


@card_of.register
def _(budget: MaintenanceBudget) -> Card:
    bytes_ = budget.bytes_per_hour
    size = "any number of bytes" if bytes_ is None else f"{size_text(bytes_)} of small files"
    text = f"{budget.core_seconds_per_hour:,.10g} core seconds and {size} an hour"
    if budget.pause:
        text = Hint("all maintenance is paused: {call} resumes it", "set_budget", pause=False)
    elif not budget.core_seconds_per_hour:
        text = "all maintenance is paused: the budget is 0 core seconds an hour"
    return Card(text)


@card_of.register
def _(preview: RetentionPreview) -> Card:
    if not preview.tables:
        return Card("no table has such a name yet, so nothing would be dropped now")
    title = "would drop nothing now"
    if preview.partitions:
        title = (
            f"would drop {count_text(preview.partitions, 'partition')} now, with "
            f"{count_text(preview.files, 'file')} of {size_text(preview.size_bytes)}"
        )
    grid = replace(grid_of(preview.tables[:_SHOWN_TABLES]), total=len(preview.tables))
    return Card(title, grids=[grid])


@row_of.register
def _(retention: TableRetention) -> Mapping[str, Cell]:
    removal = retention.removal
    partitions, files, size = (
        (0, 0, 0) if removal is None else (removal.partitions, removal.files, removal.size_bytes)
    )
    return {
        "table": retention.table,
        "partitions>": f"{partitions:,}",
        "files>": f"{files:,}",
        "size>": size_text(size),
        "why…": retention.text,
    }


def _text(field: PolicyField, value: Any) -> str:
    return field.none if value in (None, []) else field.write(value).replace("\n", ", ")
