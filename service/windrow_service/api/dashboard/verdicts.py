"""What pages say of a table: how much its reads lose, and the one thing to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow_core.cards import count_text
from windrow_core.models import MaintenanceReceipt, RefreshStatus
from windrow_service.api.html.units import duration_texts
from windrow_service.planner.upkeep.health import FAIR_DAILY
from windrow_service.usecases.tables.lists import ListedTable
from windrow_service.usecases.upkeep.overview import opening_seconds

Level: TypeAlias = Literal["good", "watch", "bad"]
QUIET = "Nothing worth doing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """The one thing to do about a table.

    Attributes:
        level: How much it matters.
        title: What to do, as an instruction; of quiet tables, that there is nothing to do.
        text: What that gains, or what is wrong.
        action: The button that does it; empty if there is nothing to press.
    """

    level: Level
    title: str
    text: str
    action: Literal["", "refresh", "compact", "follow"] = ""


def verdict_of(table: ListedTable) -> str:
    """Return how well a table can be read, in a few words: what its reads lose."""
    if table.health == "failing":
        return "Last refresh failed"
    if table.health == "unread":
        return "Not refreshed yet"
    if table.health == "good":
        return QUIET
    if table.daily_openings >= FAIR_DAILY:
        return f"Costs readers {_text(opening_seconds(table.daily_openings))} a day"
    return f"Costs each full read {_text(opening_seconds(table.excess))}"


def level_of(table: ListedTable) -> Level:
    """Return how much the state of a table matters."""
    if table.health in ("failing", "poor"):
        return "bad"
    return "watch" if table.health == "fair" else "good"


def todo_of(
    table: ListedTable, refresh: RefreshStatus | None, work: MaintenanceReceipt | None
) -> Todo:
    """Return the one thing to do about a table.

    Args:
        table: The table.
        refresh: Its last refresh.
        work: Work of maintenance on it that waits or runs.
    """
    if refresh is not None and refresh.status == "running" and table.current_snapshot is None:
        return Todo(level="good", title="Wait for the first refresh", text="A refresh is running.")
    if table.health == "failing":
        problem = (refresh.problem if refresh is not None else None) or {}
        why = problem.get("detail") or problem.get("title") or "The cause is unknown."
        return Todo(level="bad", title="Refresh again", text=str(why), action="refresh")
    if table.health == "unread":
        text = "This table has no snapshot yet, so that nobody can read it."
        return Todo(level="watch", title="Refresh now", text=text, action="refresh")
    losses = _losses(table)
    if work is not None:
        running = work.state == "running"
        title = "A worker is compacting this table" if running else "Compaction waits for a worker"
        return Todo(level=level_of(table), title=title, text=losses, action="follow")
    if table.health == "good":
        text = losses if table.excess else "The table has no more files than its folders need."
        return Todo(level="good", title=QUIET, text=text)
    return Todo(level=level_of(table), title="Compact this table", text=losses, action="compact")


def _losses(table: ListedTable) -> str:
    seconds = [opening_seconds(table.excess), opening_seconds(table.daily_openings)]
    each, daily = duration_texts(seconds)
    text = f"Opening {count_text(table.excess, 'excess file')} takes {each} of each full read"
    if not table.reads:
        return f"{text}. Windrow has seen no read in seven days."
    return f"{text}, and {daily} of all reads in a day."


def _text(seconds: float) -> str:
    (text,) = duration_texts([seconds])
    return text
