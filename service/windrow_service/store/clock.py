"""The one clock that counts: the database's, which all replicas share.

PostgreSQL has a clock of its own. SQLite has none: there, a row notes what the time was at a moment
of this machine's run since it was started, so that a clock which is set wrongly afterwards, or a
process that sees another time, is known by it
(docs/decisions/0089-the-databases-clock-counts.md).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TypeAlias

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.cards import duration_text
from windrow_service.logs import get_logger
from windrow_service.store import schema
from windrow_service.usecases.errors import ClockSkewError
from windrow_service.usecases.ports import Clock

# Replicas of one cluster agree within milliseconds.
SKEWED = timedelta(seconds=5)
# Leases take 5 s and more, and retention counts days: this is more than either can bear.
WRONG = timedelta(seconds=60)
# One check may find a machine that was asleep until now: it takes another one after so long.
_SURE_AFTER_S = 5.0
# How long a database may take to answer for the moment of its answer to be known well enough.
_QUICK_S = 2.0
# Without a note of this run of the machine, its clock is believed if it went on by at most as much.
_LONGEST_PAUSE = timedelta(days=366)
# A clock that is corrected a little is followed so slowly that other processes can tell.
_STEP = timedelta(seconds=1)
_NOTED_EVERY_S = 3_600.0
_RETRY_AFTER_S = 30
_ROW = 1
_log = get_logger(__name__)
_clock = schema.clock


@dataclass(frozen=True, slots=True)
class Moment:
    """What the time was when this machine's steady clock showed some seconds."""

    at: datetime
    steady_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """This machine's run since it was started: a name of its own, and how long it lasts already."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Note:
    """What the time was at a moment of a run; kept in the database."""

    run: Run
    at: datetime


# Asks the database what the time is.
Ask: TypeAlias = Callable[[], Awaitable[Moment]]


class DatabaseClock:
    """`TrustedClock` that asks the database, and counts on with the steady clock of this machine.

    Args:
        ask: Asks the database.
        machine: The clock of this machine, which may be wrong.
        remedy: What to do about a machine whose clock is wrong.
    """

    def __init__(self, ask: Ask, machine: Clock, remedy: str) -> None:
        self._ask = ask
        self._machine = machine
        self._remedy = remedy
        self._moment: Moment | None = None
        self._is_wrong = False
        self._told_s: float | None = None

    def __call__(self) -> datetime:
        assert self._moment is not None, "nobody has looked yet"
        moment = self._moment
        return moment.at + timedelta(seconds=steady_s() - moment.steady_s)

    def latest(self) -> datetime:
        return max(self(), self._machine())

    @property
    def skew(self) -> timedelta:
        """How far this machine's clock is ahead of the database's; negative if it is behind."""
        return self._machine() - self()

    @property
    def is_skewed(self) -> bool:
        return abs(self.skew) > SKEWED

    async def look(self) -> None:
        moment = await self._ask()
        took_s = steady_s() - moment.steady_s
        if self._moment is None or took_s <= _QUICK_S:
            self._moment = moment
        was_wrong, self._is_wrong = self._is_wrong, abs(self.skew) > WRONG
        if self._is_wrong and not was_wrong:
            _log.warning("this machine's clock is wrong", reason=str(self._error()))

    def require_agreement(self) -> None:
        if abs(self.skew) > WRONG:
            raise self._error()

    def require_readiness(self) -> None:
        if abs(self.skew) <= WRONG:
            self._told_s = None
        elif self._told_s is None:
            self._told_s = steady_s()
        elif steady_s() - self._told_s >= _SURE_AFTER_S:
            raise self._error()

    def _error(self) -> ClockSkewError:
        skew = self.skew
        words = "ahead of" if skew > timedelta() else "behind"
        difference = f"{duration_text(abs(skew).total_seconds())} {words}"
        return ClockSkewError(difference, self._remedy, _RETRY_AFTER_S)


def machine_clock() -> datetime:
    """Return the time by this machine's own clock; only `DatabaseClock` should ask it."""
    return datetime.now(timezone.utc)


def steady_s() -> float:
    """Return seconds of a clock that nobody sets, and that counts while a machine is asleep."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


_PROCESS = f"process-{secrets.token_hex(12)}"


def machine_run() -> Run:
    """Return this machine's run; where the system does not tell, the run of this process."""
    kernel = Path("/proc/sys/kernel/random/boot_id")
    try:
        uptime_s = float(Path("/proc/uptime").read_text().split()[0])
        return Run(kernel.read_text().strip()[:64], uptime_s)
    except (OSError, ValueError, IndexError):
        return Run(_PROCESS, steady_s())


def believed(note: Note | None, run: Run, machine: datetime) -> datetime:
    """Return what the time is, by an earlier note and this machine's clock.

    Args:
        note: The last note; None if there is none yet.
        run: This machine's run.
        machine: The time by this machine's clock.
    """
    if note is None:
        return machine
    elapsed_s = run.seconds - note.run.seconds
    if note.run.name == run.name and elapsed_s >= 0:
        at = note.at + timedelta(seconds=elapsed_s)
        difference = machine - at
        return at if abs(difference) > WRONG else at + min(max(difference, -_STEP), _STEP)
    # How long the machine was off, nobody can tell; or it is another machine.
    return machine if -WRONG <= machine - note.at <= _LONGEST_PAUSE else note.at


def is_worth_noting(note: Note | None, run: Run, at: datetime) -> bool:
    """Return whether an earlier note leads to another time, or is old."""
    if note is None or note.run.name != run.name:
        return True
    elapsed_s = run.seconds - note.run.seconds
    drift = at - note.at - timedelta(seconds=elapsed_s)
    return not 0 <= elapsed_s < _NOTED_EVERY_S or abs(drift) > _STEP / 10


async def read_note(connection: AsyncConnection) -> Note | None:
    """Return the note in a database."""
    query = sa.select(_clock).where(_clock.c.number == _ROW)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    # SQLite drops the zone.
    at = row.at if row.at.tzinfo else row.at.replace(tzinfo=timezone.utc)
    return Note(Run(row.run, row.run_seconds), at)


async def write_note(connection: AsyncConnection, note: Note) -> None:
    """Put a note in the place of that in a database."""
    values = {"run": note.run.name, "run_seconds": note.run.seconds, "at": note.at}
    await connection.execute(sa.delete(_clock))
    await connection.execute(sa.insert(_clock).values(number=_ROW, **values))
