"""Lists of tables for people: in any order, and only those that meet conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from windrow_core.models import SnapshotInfo
from windrow_service.planner.upkeep.health import (
    READ_DAYS,
    Health,
    excess_files,
    health_of,
)
from windrow_service.usecases.names import Names

TableOrder: TypeAlias = Literal["name", "health", "excess", "files", "size", "mean", "snapshot"]


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table in a list.

    Attributes:
        name: Its name.
        current_snapshot: Its current snapshot without columns, which may be many.
        is_failing: Whether its last refresh failed.
        reads: Number of its plans in the last days that count.
    """

    name: str
    current_snapshot: SnapshotInfo | None
    is_failing: bool = False
    reads: int = 0

    @property
    def excess(self) -> int:
        """Number of files beyond those that it needs."""
        info = self.current_snapshot
        return (
            0 if info is None else excess_files(info.file_count, info.size_bytes, info.fewest_files)
        )

    @property
    def daily_openings(self) -> int:
        """How many excess files its reads open in a day, on average, if each reads all of it."""
        return round(self.excess * self.reads / READ_DAYS)

    @property
    def health(self) -> Health:
        """How well it can be read."""
        if self.is_failing:
            return "failing"
        return "unread" if self.current_snapshot is None else health_of(self.excess, self.reads)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConditions:
    """Which tables to list, in which order.

    Attributes:
        containing: Only tables whose names contain this text, ignoring case.
        namespace: Only tables whose names are this, a dot, and a name without dots.
        health: Only tables of this health.
        order: What to sort by; the name decides between equal tables.
        is_descending: Whether the highest come first. Tables without a snapshot come last.
    """

    containing: str = ""
    namespace: str = ""
    health: Health | None = None
    order: TableOrder = "excess"
    is_descending: bool = True


class TableLists(Protocol):
    """Finds tables for people."""

    async def page(
        self, conditions: TableConditions, offset: int, limit: int, among: Names
    ) -> tuple[int, Sequence[ListedTable]]:
        """Count the tables that meet conditions, and return at most `limit` after `offset`."""

    async def reads(self, name: str) -> int:
        """Return how often a table was read in the last days that count."""

    async def namespaces(self, limit: int, among: Names) -> Sequence[str]:
        """Return the first namespaces of tables, by name."""
