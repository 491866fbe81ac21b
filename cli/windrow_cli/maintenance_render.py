"""Rendering of what was decided about a table with rich."""

from __future__ import annotations

from datetime import datetime, timezone

from rich.console import Group, RenderableType
from rich.text import Text

from windrow_calls.terminal.listings import ListTable
from windrow_calls.terminal.render import message, section, utc_text
from windrow_cli.cache_render import time_text
from windrow_cli.policy_render import table_policy
from windrow_core.models import MaintenanceReceipt, TableMaintenance

_STATES = {
    "waiting": "next",
    "running": "running",
    "done": "done",
    "gave_up": "given up",
    "failed": "failed",
    "left_alone": "left alone",
}


def table_maintenance(maintenance: TableMaintenance) -> RenderableType:
    """Show how a table is maintained, and what was decided about it in the last day."""
    parts: list[RenderableType] = [table_policy(maintenance)]
    if not maintenance.sources:
        return parts[0]
    if maintenance.decided_at is None:
        parts.append(message("nothing was decided yet", "`windrow maintain --once` decides now"))
        return Group(*parts)
    if not maintenance.receipts:
        parts.append(
            message(
                "nothing was decided about this table yet: its policy is newer than the last round"
            )
        )
        return Group(*parts)
    decided_at = maintenance.decided_at
    table = ListTable(("when (UTC)", "what", "times>", "why…"), show_edge=False)
    for receipt in sorted(maintenance.receipts, key=lambda one: _order(one, decided_at)):
        table.add_row(
            utc_text(receipt.last_at),
            _state(receipt, decided_at),
            f"{receipt.times:,}",
            Text(receipt.text),
        )
    parts.append(section(f"Decided at {time_text(maintenance.decided_at)}", table))
    return Group(*parts)


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
