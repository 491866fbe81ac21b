"""The results of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windrow_calls.plans import SplitPlan
from windrow_core.models import Plan, RefreshStatus
from windrow_demo.measuring import Fingerprint, Query, Side, Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlOutcome:
    """The answer of a query in SQL, and Windrow's plan for it.

    Attributes:
        text: The query.
        answer: Rows of the answer, as mappings.
        columns: The columns that it read.
        all_columns: Number of columns of the table.
        plan: The plan, without groups.
    """

    text: str
    answer: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    all_columns: int
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """The demo's results.

    Attributes:
        sides: The ways to read the table, in the order of their turns.
        queries: The queries.
        timings: One per side and query.
        fingerprints: Fingerprint of the whole table by name of the side that read it; Spark's two
            sides share a reader, so one of them is enough.
        listing_s: Seconds that Spark took to list the folders for its DataFrame.
        refresh: Outcome of Windrow's refresh, which lists the folders and reads all footers.
        refresh_s: Seconds that the caller waited for the refresh.
        pack_s: Seconds that packing the table's files took.
        plan: Windrow's plan for the columns of the first query.
        plan_s: Seconds to request and receive that plan.
        is_cut_short: Whether there were fewer rounds than usual, since the machine is slow.
        sql: A query in SQL on a view; the view itself names no columns or files.
        environment: Relevant versions and settings, for people.
    """

    sides: tuple[Side, ...]
    queries: tuple[Query, ...]
    timings: tuple[Timing, ...]
    fingerprints: dict[str, Fingerprint]
    listing_s: float
    refresh: RefreshStatus
    refresh_s: float
    pack_s: float
    plan: SplitPlan
    plan_s: float
    is_cut_short: bool
    sql: SqlOutcome
    environment: dict[str, str]

    def timing(self, side: str, query: str) -> Timing:
        """Return the timing of a query on a side."""
        return next(t for t in self.timings if (t.side, t.query) == (side, query))

    @property
    def agreed(self) -> bool:
        """Whether both readers returned the same rows, and all sides the same answers."""
        answers = {(timing.query, timing.answer) for timing in self.timings}
        return len(set(self.fingerprints.values())) == 1 and len(answers) == len(self.queries)
