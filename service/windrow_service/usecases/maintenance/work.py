"""Work that was decided: its record, and what the store does with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow_core.models import (
    Answer,
    ClaimRequest,
    ClaimUpdate,
    MaintenanceReceipt,
    MaintenanceRound,
    PartitionRemoval,
    RealisedGain,
    ReceiptState,
    WorkItem,
    WorkOutcome,
    WorkPrediction,
    WorkState,
)
from windrow_core.models.packs import PackingRequest
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Page

# Work whose workers have died so often is not offered again.
MAX_ATTEMPTS = 3
# More than the number of any receipt.
NEWEST = 2**63 - 1
# Reason of work that waits because somebody asked for it; other work comes after all of that.
REQUESTED, AFTER_REQUESTED = "requested", 2**53
# Reasons of old partitions that stay until the next round, so that somebody can object: they are the
# first ones of a table, or more than half of it.
ANNOUNCED, LARGE = "retention_announced", "retention_large"


class WorkBody(Answer):
    """What a piece of work consists of, as it is stored.

    Attributes:
        folders: Its partitions.
        folder_bytes: Bytes of each that are rewritten.
        small_file_size: Files below this size are rewritten; None for all small ones.
        min_age_seconds: A partition that was written to within that time is left alone.
        removal: What is to be dropped; None if the partitions are to be rewritten.
        packing: Which files are to be packed, in place of rewriting partitions.
        text: Why it was chosen; once it has ended, how.
    """

    folders: list[str]
    folder_bytes: list[int]
    target_file_size: int
    small_file_size: int | None = None
    min_files: int
    min_age_seconds: int = 0
    readers_may_see_both: bool
    prediction: WorkPrediction
    removal: PartitionRemoval | None = None
    packing: PackingRequest | None = None
    text: str
    outcome: WorkOutcome | None = None
    gain: RealisedGain | None = None

    @property
    def needs_spark(self) -> bool:
        """Whether a worker needs Spark for it."""
        return self.removal is None and self.packing is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWork:
    """Work on one table that waits for a worker."""

    table: str
    body: WorkBody


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRecord:
    """Work that a worker has, or had."""

    number: int
    table: str
    state: WorkState
    body: WorkBody
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintainer:
    """A worker that asks for work of maintenance.

    Attributes:
        worker: Its name.
        pattern: The tables that it works on.
        seen_at: When it last asked, or renewed the lease of work that it has.
    """

    worker: str
    pattern: str
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Why partitions of a table, or all of it, are left alone."""

    table: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedState:
    """What all tables share.

    Attributes:
        left_at: When the budget was last refilled; None if maintenance has never run.
        left_seconds: Core seconds that are left.
        left_bytes: Bytes that are left.
        round: The last round; None if there was none.
    """

    left_at: datetime | None
    left_seconds: float
    left_bytes: float
    round: MaintenanceRound | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What a round has decided.

    Attributes:
        work: Work that waits from now on, in order, in place of all that waited before.
        skips: What is left alone.
        refill: What the budget gets: core seconds, and bytes.
        round: Figures of the round.
    """

    work: Sequence[NewWork]
    skips: Sequence[Skip]
    refill: tuple[float, float]
    round: MaintenanceRound


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSums:
    """Work that has ended, added up; seconds are those of one core.

    Attributes:
        done: Number of work items that were done.
        gave_up: Number of those that gave way to a writer.
        failed: Number of those that failed.
        files_before: Small files that were rewritten.
        files_after: Files that replace them.
        bytes_before: Bytes that were rewritten.
        core_seconds: What it cost.
        predicted_seconds: What was predicted for that.
        gain_seconds: What a read of each of the tables saves, measured or else predicted.
        measurements: Number of work items whose gain was measured.
    """

    done: int
    gave_up: int
    failed: int
    files_before: int
    files_after: int
    bytes_before: int
    core_seconds: float
    predicted_seconds: float
    gain_seconds: float
    measurements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEvent:
    """A piece of work that has ended: when, how, in words, and what it cost of one core."""

    at: datetime
    table: str
    state: WorkState
    text: str
    core_seconds: float


def turn_of(receipt: MaintenanceReceipt) -> int:
    """Return a number by whose order workers get the work that waits."""
    return receipt.number + (0 if receipt.reason == REQUESTED else AFTER_REQUESTED)


class WorkStore(Protocol):
    """Work, receipts, and the lease of the rounds that decide about them."""

    async def begin_round(self, holder: str, now: datetime, lease_until: datetime) -> bool:
        """Take the lease of the rounds; false if another holder has it."""

    async def renew_round(self, holder: str, lease_until: datetime) -> bool:
        """Renew the lease; false if it is lost. A time in the past gives it back."""

    async def shared(self) -> SharedState:
        """Return what all tables share."""

    async def decide(self, holder: str, decisions: Decisions, now: datetime) -> bool:
        """Store what a round has decided, and give back its lease; false if that is lost.

        Partitions that a worker has taken meanwhile are left out.
        """

    async def announcements(self, since: datetime) -> Mapping[str, Mapping[str, datetime]]:
        """Return when rounds last announced removals, not before `since`, by table and reason."""

    async def claim(
        self, request: ClaimRequest, among: Names, now: datetime, lease_until: datetime
    ) -> WorkItem | None:
        """Give the best work of some tables to a worker; None if there is none, or all is paused.

        Work that somebody asked for comes first. Work whose lease has run out is given again, at
        most `MAX_ATTEMPTS` times.
        """

    async def request(self, work: Sequence[NewWork], now: datetime) -> int:
        """Put work on one table first, and return how much of it waits now.

        It replaces other work on the same partitions that waits; partitions that a worker has are
        left out.
        """

    async def withdraw(self, table: str, now: datetime, number: int | None = None) -> int:
        """Forget work on a table that was asked for and waits; return how much.

        Args:
            table: The table.
            now: The time, for the audit log.
            number: Only the work with this number.
        """

    async def maintainers(self) -> Sequence[Maintainer]:
        """Return the workers that have asked for work in the last days, the latest first."""

    async def update(
        self, claim_id: str, among: Names, update: ClaimUpdate, now: datetime, until: datetime
    ) -> MaintenanceReceipt:
        """Renew the lease of work until `until`, or record how the work ended.

        Repeating the last update is allowed.

        Raises:
            ClaimLostError: Nobody has this claim, or somebody else has the work by now.
        """

    async def work_since(self, last_at: datetime, limit: int) -> Sequence[WorkRecord]:
        """Return work that a worker has or had and that changed since, in order of the changes."""

    async def realise(self, number: int, gain: RealisedGain) -> None:
        """Record what work has gained."""

    async def page(
        self,
        before: int,
        limit: int,
        among: Names,
        table: str | None = None,
        states: Sequence[ReceiptState] = (),
    ) -> Page[MaintenanceReceipt]:
        """Return receipts with numbers under `before`, the newest first.

        Args:
            before: Number of a receipt.
            limit: Most receipts to return.
            among: Only receipts of these tables.
            table: Only receipts of this table.
            states: Only receipts in these states; all by default.
        """

    async def waiting(
        self, after: int, limit: int, among: Names, table: str | None = None
    ) -> Page[MaintenanceReceipt]:
        """Return work that waits, in the order in which workers get it.

        Args:
            after: Only work whose turn (`turn_of`) comes after this one.
            limit: Most receipts to return.
            among: Only receipts of these tables.
            table: Only receipts of this table.
        """

    async def counts(self, among: Names, table: str | None = None) -> Mapping[ReceiptState, int]:
        """Return the number of receipts in each state; 0 for those in which there are none."""

    async def sums(self, since: datetime, among: Names, table: str | None = None) -> WorkSums:
        """Add up the work that has ended since then."""

    async def events(
        self, since: datetime, limit: int, among: Names, table: str | None = None
    ) -> Page[WorkEvent]:
        """Return the work that has ended since then, the latest first, at most `limit`."""

    async def purge(self, last_before: datetime, max_receipts: int) -> int:
        """Forget older receipts, and all but the newest `max_receipts`; return how many."""
