"""Whether old partitions of a table are dropped now: as work, or why that waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from windrow_core.cards import duration_text
from windrow_core.models import EffectivePolicy, WorkPrediction
from windrow_service.usecases.maintenance.retention import (
    LARGE_SHARE,
    NothingOld,
    OldPartitions,
    RetentionFinder,
)
from windrow_service.usecases.maintenance.windows import is_open
from windrow_service.usecases.maintenance.work import (
    ANNOUNCED,
    LARGE,
    NewWork,
    Skip,
    WorkBody,
    WorkRecord,
)
from windrow_service.usecases.tables.ports import StoredTable

_PAUSE, _LONGEST_PAUSE = timedelta(minutes=15), timedelta(days=1)
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What happened to the old partitions of one table before.

    Attributes:
        since: When its policy, or the table itself, last changed.
        announcements: When rounds last announced that partitions go, by reason.
        work: Removals, in order of their end.
    """

    since: datetime
    announcements: Mapping[str, datetime]
    work: Sequence[WorkRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideRemoval:
    """Decide about the old partitions of one table, whose policy keeps some days."""

    finder: RetentionFinder

    async def __call__(
        self,
        table: StoredTable,
        policy: EffectivePolicy,
        earlier: Earlier,
        now: datetime,
        *,
        is_paused: bool,
    ) -> NewWork | Skip:
        """Return the work, or why nothing is dropped.

        Args:
            table: The table.
            policy: How it is maintained.
            earlier: What happened to its old partitions before.
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
        delay = _delay(policy, earlier.work, now, is_paused) or _first_time(outcome, earlier)
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


def _first_time(outcome: OldPartitions, earlier: Earlier) -> tuple[str, str] | None:
    """Return why partitions wait for the next round; None if an earlier one has announced it.

    A preview knows neither the tables that are registered later nor how much of them is old by then.
    """
    known_since, is_large = earlier.since, outcome.removal.share > LARGE_SHARE
    done = [
        one.last_at
        for one in earlier.work
        if one.state == "done"
        and one.body.removal is not None
        and one.body.removal.keep_days == outcome.removal.keep_days
        and one.last_at >= known_since
    ]
    if done and not is_large:
        return None
    # That a few partitions go does not announce that most do.
    reasons = [LARGE] if is_large else [ANNOUNCED, LARGE]
    times = [earlier.announcements[one] for one in reasons if one in earlier.announcements]
    if times and max(times) >= max([known_since, *done]):
        return None
    what = "it is more than half of the table" if is_large else "no round has said so before"
    return reasons[0], f"{what}, so that they stay until the next round"


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
        return "retention_running", "partitions of this table are being dropped already"
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
