"""What maintenance has done in the last weeks, table by table and partition by partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from windrow_service.planner.maintenance.budget import Budget
from windrow_service.usecases.maintenance.work import WorkRecord, WorkStore

HORIZON = timedelta(days=30)
_PAGE = 100
# Clocks of replicas may differ.
_OVERLAP = timedelta(minutes=1)
_OLDEST = timedelta(days=3_650)
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Past:
    """What was done to one partition, up to now.

    Attributes:
        rewritten_bytes: Bytes of it that were rewritten in the last 30 days.
        failures: Conflicts and failures in a row.
        failure_at: When the last of them was.
        idle_runs: Runs without gain in a row.
        run_at: When the last run was.
        is_running: Whether a worker has it.
    """

    rewritten_bytes: int = 0
    failures: int = 0
    failure_at: datetime | None = None
    idle_runs: int = 0
    run_at: datetime | None = None
    is_running: bool = False


NOTHING = Past()


class Ledger:
    """Work of the last 30 days; each record is read again only if it has changed."""

    def __init__(self, store: WorkStore) -> None:
        self._store = store
        self._records: dict[int, WorkRecord] = {}
        self._read_until: datetime | None = None
        self._announcements: Mapping[str, Mapping[str, datetime]] = {}

    async def update(self, now: datetime) -> None:
        """Read what has changed since the last call."""
        self._announcements = await self._store.announcements(now - HORIZON)
        since = now - HORIZON if self._read_until is None else self._read_until - _OVERLAP
        while True:
            page = await self._store.work_since(since, _PAGE)
            fresh = [one for one in page if self._records.get(one.number) != one]
            self._records.update((one.number, one) for one in page)
            if len(page) < _PAGE or not fresh:
                break
            since = page[-1].last_at
        self._read_until = max((one.last_at for one in self._records.values()), default=None)
        self._records = {
            number: one for number, one in self._records.items() if one.last_at >= now - HORIZON
        }

    def of(self, table: str) -> Sequence[WorkRecord]:
        """Return what was rewritten of a table, in order of its end."""
        return self._in_order(table, is_removal=False)

    def removals(self, table: str) -> Sequence[WorkRecord]:
        """Return what was dropped of a table, in order of its end."""
        return self._in_order(table, is_removal=True)

    def announcements(self, table: str) -> Mapping[str, datetime]:
        """Return when rounds last announced that partitions of a table go, by reason."""
        return self._announcements.get(table, {})

    def _in_order(self, table: str, *, is_removal: bool) -> Sequence[WorkRecord]:
        records = [
            one
            for one in self._records.values()
            if one.table == table and (one.body.removal is not None) == is_removal
        ]
        return sorted(records, key=lambda one: (one.last_at, one.number))

    def unmeasured(self) -> Sequence[WorkRecord]:
        """Return the work that is done and whose gain is not known yet."""
        return [
            one
            for one in self._records.values()
            if one.state == "done"
            and one.body.gain is None
            and one.body.removal is None
            # Plans name as many files as before; what they save shows in no plan.
            and one.body.packing is None
        ]


def past_of_folders(records: Sequence[WorkRecord]) -> dict[str, Past]:
    """Return what was done to each partition of a table.

    Args:
        records: The work on the table, in order of its end.
    """
    past: dict[str, Past] = defaultdict(Past)
    for record in records:
        outcome = record.body.outcome
        # Those that a writer was at were left.
        part = 1.0
        if outcome is not None:
            part = min(outcome.bytes_before / max(sum(record.body.folder_bytes), 1), 1.0)
        for folder, size in zip(record.body.folders, record.body.folder_bytes, strict=True):
            before = past[folder]
            if record.state == "running":
                past[folder] = replace(before, is_running=True)
            elif record.state == "done" and outcome is not None:
                gains = outcome.files_after < outcome.files_before
                past[folder] = replace(
                    before,
                    rewritten_bytes=before.rewritten_bytes + (int(size * part) if gains else 0),
                    failures=0,
                    idle_runs=0 if gains else before.idle_runs + 1,
                    run_at=record.last_at,
                )
            else:
                past[folder] = replace(
                    before,
                    failures=before.failures + 1,
                    failure_at=record.last_at,
                    run_at=record.last_at,
                )
    return past


def rewritten_at(records: Sequence[WorkRecord]) -> datetime | None:
    """Return when a table was last rewritten; None if that was not within the last 30 days."""
    return max((one.last_at for one in records if one.state == "done"), default=None)


def share_debt(
    records: Sequence[WorkRecord], budget: Budget, max_share: float, now: datetime
) -> float:
    """Return what a table has used of its share and not earned back, in hours of the budget."""
    debt, at = 0.0, now - _OLDEST
    for record in records:
        outcome, prediction = record.body.outcome, record.body.prediction
        seconds, size = prediction.cost_seconds, prediction.size_bytes
        if outcome is not None:
            seconds, size = outcome.core_seconds, outcome.bytes_before
        debt = max(debt - max_share * _hours(at, record.last_at), 0.0)
        debt += float(budget.share_of(np.array([seconds]), np.array([size]))[0])
        at = record.last_at
    return max(debt - max_share * _hours(at, now), 0.0)


def _hours(begin: datetime, end: datetime) -> float:
    return max((end - begin).total_seconds(), 0.0) / _HOUR_S
