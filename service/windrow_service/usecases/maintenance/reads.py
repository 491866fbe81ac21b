"""How often tables and their partitions are read, as far as the history of plans tells."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from windrow_core.models import PastPlan, PlanRequest
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.reading import read_filter
from windrow_service.planner.policy import READ_BYTES_PER_SECOND, TASK_COST
from windrow_service.planner.pruning.bounds import FileFacts
from windrow_service.planner.pruning.outcomes import truth_values
from windrow_service.planner.splits import Bools
from windrow_service.usecases.maintenance.partitions import SmallParts
from windrow_service.usecases.names import Names
from windrow_service.usecases.plans.history import NEWEST, PlanConditions, PlanHistory
from windrow_service.usecases.plans.ports import Mine

DAYS = 7
_EVERYBODY = Mine("", Names(every=True), Names(every=True))
# Plans to parse before other work gets its turn, and the most to remember.
_AT_ONCE = 100
_MAX_READS = 50_000
# Conditions of one table that are looked at, the most frequent first; others read all of it.
_MAX_FILTERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A plan of the history.

    Attributes:
        at: When it was made.
        filter: Its filter, as text; None if it had none.
        partitions: Number of partitions that it names; None if it names none.
        files: Number of files that it reads.
        seconds: Predicted time of one core for its files. What tasks take to start is left out,
            since it depends on how many the reader asked for.
    """

    at: datetime
    filter: str | None
    partitions: int | None
    files: int
    seconds: float


class PastReads:
    """The reads of the last days by table; each plan of the history is looked at once."""

    def __init__(self, history: PlanHistory) -> None:
        self._history = history
        self._newest = 0
        self._reads: dict[str, list[Read]] = {}

    async def update(self, now: datetime) -> None:
        """Look at the plans that were made since the last call."""
        since, newest = now - timedelta(days=DAYS), self._newest
        fresh: dict[str, list[Read]] = defaultdict(list)
        before, count = NEWEST, 0
        while before > newest and count < _MAX_READS:
            conditions = PlanConditions(before=before, since=since)
            page = await self._history.page(_EVERYBODY, conditions, _AT_ONCE)
            plans = [plan for plan in page if plan.number > newest]
            count += len(plans)
            for plan in plans:
                self._newest = max(self._newest, plan.number)
                if plan.summary is not None and plan.limit is None:
                    fresh[plan.table].append(_read_of(plan))
            if not page.more or len(plans) < len(page):
                break
            before = plans[-1].number
        for table in {*self._reads, *fresh}:
            old = [one for one in self._reads.get(table, ()) if one.at >= since]
            self._reads[table] = [*reversed(fresh.get(table, ())), *old][-_MAX_READS:]
            self._reads[table].sort(key=lambda one: one.at)

    def of(self, table: str) -> Sequence[Read]:
        """Return the reads of a table, the oldest first."""
        return self._reads.get(table, ())


def daily_reads(reads: Iterable[Read], parts: SmallParts, now: datetime) -> npt.NDArray[np.int64]:
    """Return how often k partitions were read on each of the last `DAYS` days, newest day first.

    A read counts for the partitions that its filter may want. One that names partitions by number
    counts as so large a part of a read of each, since the history does not say which they were.

    Args:
        reads: Reads of the table.
        parts: The partitions.
        now: Now.
    """
    by_filter: dict[str | None, list[Read]] = defaultdict(list)
    for read in reads:
        by_filter[read.filter].append(read)
    frequent = Counter({name: len(some) for name, some in by_filter.items()})
    events = np.zeros((len(parts), DAYS))
    for name, _ in frequent.most_common(_MAX_FILTERS):
        is_wanted = wanted(name, parts)
        for read in by_filter[name]:
            day = min(max((now - read.at) // timedelta(days=1), 0), DAYS - 1)
            share = 1.0
            if read.partitions is not None:
                share = min(read.partitions / max(len(parts), 1), 1.0)
            events[is_wanted, day] += share
    for name in by_filter.keys() - {name for name, _ in frequent.most_common(_MAX_FILTERS)}:
        for read in by_filter[name]:
            day = min(max((now - read.at) // timedelta(days=1), 0), DAYS - 1)
            events[:, day] += 1
    return np.ceil(events).astype(np.int64)


def wanted(filter: str | None, parts: SmallParts) -> Bools:
    """Return which partitions may hold rows that a filter wants; all, if it cannot be understood.

    Args:
        filter: A filter as the history has it: SQL, a tree as JSON, or None.
        parts: The partitions.
    """
    everything = np.ones(len(parts), np.bool_)
    if filter is None or not len(parts):
        return everything
    try:
        tree = json.loads(filter) if filter.startswith("{") else filter
        request = PlanRequest.model_validate({"table": "t", "filter": tree})
        assert request.filter is not None
        expression = read_filter(request.filter, parts.types)
        facts = FileFacts(parts.examples, evidence="partition")
        return np.asarray(truth_values(expression, facts).true, np.bool_)
    except (InvalidFilterError, ValueError):
        # Columns have changed since, or the text was cut.
        return everything


def _read_of(plan: PastPlan) -> Read:
    summary = plan.summary
    assert summary is not None
    starts = summary.group_count * TASK_COST / READ_BYTES_PER_SECOND
    return Read(
        at=plan.created_at,
        filter=plan.filter,
        partitions=plan.partition_count,
        files=summary.files_planned,
        seconds=max((summary.all_tasks_seconds or 0.0) - starts, 0.0),
    )
