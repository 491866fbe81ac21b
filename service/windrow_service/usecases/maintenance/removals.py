"""Whether old partitions of a table are dropped now: as work, or why that waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from windrow_core.cards import duration_text
from windrow_core.models import EffectivePolicy, WorkPrediction
from windrow_service.usecases.maintenance.retention import NothingOld, RetentionFinder
from windrow_service.usecases.maintenance.windows import is_open
from windrow_service.usecases.maintenance.work import NewWork, Skip, WorkBody, WorkRecord
from windrow_service.usecases.tables.ports import StoredTable

_PAUSE, _LONGEST_PAUSE = timedelta(minutes=15), timedelta(days=1)
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideRemoval:
    """Decide about the old partitions of one table, whose policy keeps some days."""

    finder: RetentionFinder

    async def __call__(
        self,
        table: StoredTable,
        policy: EffectivePolicy,
        work: Sequence[WorkRecord],
        now: datetime,
        *,
        is_paused: bool,
    ) -> NewWork | Skip:
        """Return the work, or why nothing is dropped.

        Args:
            table: The table.
            policy: How it is maintained.
            work: Earlier removals of this table, in order of their end.
            now: Now, with a time zone.
            is_paused: Whether all maintenance is paused.

        Raises:
            StoreUnavailableError: The database is away.
            BusyError: Too much is waiting already.
        """
        name = table.info.name
        outcome = await self.finder.find(table, policy, now)
        if isinstance(outcome, NothingOld):
            return Skip(table=name, reason=outcome.reason, text=outcome.text)
        delay = _delay(policy, work, now, is_paused)
        if delay is not None:
            reason, text = delay
            return Skip(table=name, reason=reason, text=f"{outcome.text}; but {text}")
        removal = outcome.removal
        body = WorkBody(
            folders=list(outcome.values),
            folder_bytes=[0] * len(outcome.values),
            target_file_size=policy.target_file_size,
            min_files=policy.min_files,
            readers_may_see_both=policy.readers_may_see_both,
            prediction=WorkPrediction(
                partitions=removal.partitions,
                files=removal.files,
                becomes=0,
                size_bytes=removal.size_bytes,
                cost_seconds=0.0,
                gain_seconds=0.0,
                reads_per_day=0.0,
                saved_seconds=0.0,
                score=0.0,
            ),
            removal=removal,
            text=outcome.text,
        )
        return NewWork(table=name, body=body)


def _delay(
    policy: EffectivePolicy, work: Sequence[WorkRecord], now: datetime, is_paused: bool
) -> tuple[str, str] | None:
    """Return why old partitions have to wait; None if they go."""
    if is_paused:
        return "retention_paused", "all maintenance is paused: the budget is 0 core seconds"
    if not is_open(policy.windows, now):
        windows = " and ".join(one if " " in one else f"{one} UTC" for one in policy.windows)
        return "retention_window", f"it is outside the window, {windows}"
    if any(one.state == "running" for one in work):
        return "retention_running", "a worker is dropping partitions of this table now"
    failures = 0
    for one in reversed(work):
        if one.state == "done":
            break
        failures += 1
    if failures:
        pause = min(_PAUSE * (1 << min(failures - 1, _MOST_DOUBLINGS)), _LONGEST_PAUSE)
        left = (work[-1].last_at + pause - now).total_seconds()
        if left > 0:
            reason = work[-1].body.text
            return "retention_backing_off", f"it waits {duration_text(left)} after: {reason}"
    return None
