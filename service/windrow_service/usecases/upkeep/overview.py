"""All tables at a glance: totals, what to do first, and how they got on by the hour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow_core.models import Answer
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.usecases.names import Names


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
    """

    tables: int
    files: int
    size_bytes: int
    excess_files: int
    without_snapshot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A table whose files could be fewer.

    Attributes:
        name: The table.
        files: Number of its files.
        size_bytes: Their bytes.
        excess: Number of files beyond those that it needs.
        reads: Number of plans of it in the last days.
    """

    name: str
    files: int
    size_bytes: int
    excess: int
    reads: int

    @property
    def gain_seconds(self) -> float:
        """Time of one core that each read of all of it would save."""
        return opening_seconds(self.excess)

    @property
    def saves(self) -> float:
        """Seconds of one core that as many reads of all of it would save."""
        return opening_seconds(self.excess * self.reads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What reads would save if no table had excess files.

    Attributes:
        tables: Number of tables that have excess files.
        files: Number of their files.
        excess: Number of these files beyond those that the tables need.
        reads: Number of plans of these tables in the last days.
        spared_files: Excess files that these reads would not have opened, each read counted.
    """

    tables: int
    files: int
    excess: int
    reads: int
    spared_files: int

    @property
    def becomes(self) -> int:
        """Number of files that the tables need."""
        return self.files - self.excess

    @property
    def gain_seconds(self) -> float:
        """Time of one core that a read of all of each table would save."""
        return opening_seconds(self.excess)

    @property
    def saved_seconds(self) -> float:
        """Time of one core that the reads of the last days would have saved."""
        return opening_seconds(self.spared_files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Some tables at a glance.

    Attributes:
        totals: All of them added up.
        gain: What those with excess files would gain.
        first: Those whose health is not good, by what their reads would save.
        oldest: Name of the table whose last listing that its snapshot agrees with is the longest
            ago, and when that listing began; None if none was listed.
    """

    totals: Totals
    gain: Gain
    first: Sequence[Candidate]
    oldest: tuple[str, datetime] | None


class OverviewStore(Protocol):
    """Figures of all tables together."""

    async def now(self, since: datetime, limit: int, among: Names) -> Overview:
        """Return the current state of tables.

        Args:
            since: Plans from then on count as reads.
            limit: Most tables to name of those whose reads lose enough for it to matter.
            among: Only these tables.
        """

    async def database_bytes(self) -> int:
        """Return how much of its disk the database takes."""

    async def hours(self, since: datetime) -> Sequence[HourFigures]:
        """Return the figures of hours, the oldest first."""

    async def record(self, now: datetime) -> None:
        """Record the figures of the current hour, unless that was done or there are no tables."""

    async def purge(self, began_before: datetime) -> int:
        """Forget the figures of older hours; return how many."""


def opening_seconds(files: int) -> float:
    """Return the time of one core that opening so many files takes, by the cost model of plans."""
    return files * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND


def thinned(hours: Sequence[HourFigures], most: int) -> Sequence[HourFigures]:
    """Return at most `most` of the hours, evenly, with the last one among them."""
    step = max(math.ceil(len(hours) / most), 1)
    return hours[::-1][::step][::-1]
