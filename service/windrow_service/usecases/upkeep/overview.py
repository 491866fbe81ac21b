"""All tables at a glance: totals, what to do first, and how they got on by the hour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow_core.models import Answer
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.planner.upkeep.health import waste_of
from windrow_service.usecases.names import Names


@dataclass(frozen=True, slots=True)
class TableState:
    """The current snapshot of a table in figures; None if it has no snapshot.

    Attributes:
        name: The table.
        files: Number of its files.
        size_bytes: Their bytes.
        excess: Number of files beyond those that it needs; 0 without a snapshot.
        checked_at: When the last listing that the snapshot agrees with began; None if its files
            were published.
    """

    name: str
    files: int | None
    size_bytes: int | None
    excess: int
    checked_at: datetime | None

    @property
    def waste(self) -> float:
        """The part of the time of reading it that opening its excess files takes."""
        return waste_of(self.excess, self.files or 0, self.size_bytes or 0)


class HourFigures(Answer):
    """All tables at the beginning of an hour, and the plans of the hour before.

    Attributes:
        began_at: When the hour began.
        plans: Number of plans.
        planning_seconds: Median time that making one took; None if there were none.
        slow_planning_seconds: The time within which 95 of 100 were made.
    """

    began_at: datetime
    tables: int
    files: int
    size_bytes: int
    excess_files: int
    plans: int
    planning_seconds: float | None = None
    slow_planning_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Tables added up.

    Attributes:
        tables: Number of tables.
        files: Number of their files.
        size_bytes: Their bytes.
        excess_files: Files beyond those that the tables need.
        without_snapshot: Number of tables that have no snapshot.
        oldest: The table whose last listing is the longest ago; None if none was listed.
    """

    tables: int
    files: int
    size_bytes: int
    excess_files: int
    without_snapshot: int
    oldest: TableState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A table whose files could be fewer.

    Attributes:
        table: The table.
        gain_seconds: Time of one core that each read of all of it would save.
        reads: Number of plans of it in the last days.
    """

    table: TableState
    gain_seconds: float
    reads: int

    @property
    def saves(self) -> float:
        """Seconds of one core that as many reads of all of it would save."""
        return self.gain_seconds * self.reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What reads would save if no table had excess files; seconds are those of one core.

    Attributes:
        tables: Number of tables that have excess files.
        files: Number of their files.
        becomes: Number of files that they need.
        gain_seconds: What a read of all of each would save.
        reads: Number of plans of them in the last days.
        saved_seconds: What these reads would have saved.
    """

    tables: int
    files: int
    becomes: int
    gain_seconds: float
    reads: int
    saved_seconds: float


class OverviewStore(Protocol):
    """Figures of all tables together."""

    async def tables(self, among: Names) -> Sequence[TableState]:
        """Return the current state of tables, in any order."""

    async def reads(self, since: datetime) -> Mapping[str, int]:
        """Return the number of plans by table."""

    async def database_bytes(self) -> int:
        """Return how much of its disk the database takes."""

    async def hours(self, since: datetime) -> Sequence[HourFigures]:
        """Return the figures of hours, the oldest first."""

    async def record(self, now: datetime) -> None:
        """Record the figures of the current hour, unless that was done or there are no tables."""

    async def purge(self, began_before: datetime) -> int:
        """Forget the figures of older hours; return how many."""


def totals(tables: Sequence[TableState]) -> Totals:
    """Return tables added up."""
    on_disk = [one for one in tables if one.checked_at is not None]
    return Totals(
        tables=len(tables),
        files=sum(one.files or 0 for one in tables),
        size_bytes=sum(one.size_bytes or 0 for one in tables),
        excess_files=sum(one.excess for one in tables),
        without_snapshot=sum(one.files is None for one in tables),
        oldest=min(on_disk, key=_checked_at, default=None),
    )


def candidates(tables: Sequence[TableState], reads: Mapping[str, int]) -> Sequence[Candidate]:
    """Return the tables that would gain, the most first: by what their reads would save."""
    rows = [
        Candidate(
            table=one,
            gain_seconds=one.excess * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND,
            reads=reads.get(one.name, 0),
        )
        for one in tables
        if one.excess
    ]
    return sorted(rows, key=lambda one: (-one.saves, -one.gain_seconds, one.table.name))


def gain_of(rows: Sequence[Candidate]) -> Gain:
    """Return what all of the tables together would gain."""
    files = sum(one.table.files or 0 for one in rows)
    return Gain(
        tables=len(rows),
        files=files,
        becomes=files - sum(one.table.excess for one in rows),
        gain_seconds=sum(one.gain_seconds for one in rows),
        reads=sum(one.reads for one in rows),
        saved_seconds=sum(one.saves for one in rows),
    )


def thinned(hours: Sequence[HourFigures], most: int) -> Sequence[HourFigures]:
    """Return at most `most` of the hours, evenly, with the last one among them."""
    step = max(math.ceil(len(hours) / most), 1)
    return hours[::-1][::step][::-1]


def _checked_at(table: TableState) -> datetime:
    assert table.checked_at is not None
    return table.checked_at
