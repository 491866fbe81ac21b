"""Plans, and the ports for storing and making them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from windrow_core.models import Plan, PlanRequest
from windrow_service.planner.plan import GroupedSplits
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Checkpoint, Once

T = TypeVar("T")
PlanState = Literal["submitted", "completed", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChunk:
    """Some groups of a plan, as bytes.

    Attributes:
        first_group: Number of the first of these groups.
        data: Their bytes.
    """

    first_group: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBody:
    """All groups of a plan: `head`, the data of the chunks and `tail` are one stream."""

    head: bytes
    chunks: Sequence[PlanChunk]
    tail: bytes

    @property
    def size_bytes(self) -> int:
        """Length of the stream."""
        return sum(map(len, self.parts))

    @property
    def parts(self) -> list[bytes]:
        """The stream, in the pieces in which it is stored."""
        return [self.head, *(chunk.data for chunk in self.chunks), self.tail]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A requested plan, without its groups.

    Attributes:
        plan_id: Its id.
        principal: The caller who requested it.
        table_id: The table's number.
        snapshot_id: The snapshot that it is pinned to; None while it waits for a refresh.
        state: Whether it is still being made, completed or failed.
        created_at: When it was requested.
        expires_at: When it is forgotten.
        request: The request.
        request_key: Digest of everything that makes two plans equal; None until it is pinned.
        info: The plan as callers see it, without groups; None until it is completed.
        problem: Why it failed, as an RFC 9457 problem; None unless it failed.
        body_id: Id of its groups; None until it is completed. Several plans may share it.
        is_listed: Whether it enters the history when it is completed.
    """

    plan_id: str
    principal: str
    table_id: int
    snapshot_id: int | None
    state: PlanState
    created_at: datetime
    expires_at: datetime
    request: PlanRequest
    request_key: str | None
    info: Plan | None = None
    problem: dict[str, object] | None = None
    body_id: str | None = None
    is_listed: bool = True


@dataclass(frozen=True, slots=True)
class Mine:
    """The plans that a caller may look at.

    Attributes:
        maker: The caller.
        readable: Tables of which the caller may look at its own plans.
        administrable: Tables of which the caller may look at everybody's plans.
    """

    maker: str
    readable: Names
    administrable: Names

    @classmethod
    def of(cls, caller: Principal) -> Mine:
        """Return the plans that a caller may look at."""
        return cls(caller.name, caller.tables, caller.grants.of("admin"))


class PlanStore(Protocol):
    """Plans until they expire."""

    async def put(
        self,
        plan: PlanRecord,
        body: PlanBody | None = None,
        *,
        lease_until: datetime | None = None,
        once: Once | None = None,
    ) -> None:
        """Store a plan; one that is no longer being made enters the history, too.

        Args:
            plan: The plan.
            body: Its groups; None if it has none yet, or if they are stored already.
            lease_until: When its making may be presumed abandoned.
            once: The caller's key.

        Raises:
            PlansFullError: All plans together would be too large.
            PlanNotFoundError: Its groups were dropped.
        """

    async def finish(self, plan: PlanRecord, body: PlanBody | None = None) -> None:
        """Record how the making of a plan ended, unless nobody wants it any more.

        Raises:
            PlansFullError: All plans together would be too large.
            PlanNotFoundError: Its groups were dropped.
            PlanCancelledError: Nobody wants the plan any more.
        """

    async def get(self, plan_id: str, now: datetime) -> PlanRecord:
        """Return a plan that has not expired by `now`.

        Raises:
            PlanNotFoundError: No plan has this id, or it has expired.
        """

    async def under_way(self, now: datetime, limit: int, mine: Mine) -> Sequence[PlanRecord]:
        """Return at most `limit` plans that are being made at `now`, the latest first."""

    async def find(self, request_key: str, expires_after: datetime) -> PlanRecord | None:
        """Return a completed plan for the same request that expires after `expires_after`."""

    async def chunk(self, plan: PlanRecord, group: int) -> tuple[bytes, PlanChunk]:
        """Return the head of a completed plan's groups, and the chunk that holds one of them.

        Raises:
            PlanNotFoundError: The plan was deleted meanwhile.
        """

    def stream(self, plan: PlanRecord) -> AsyncIterator[bytes]:
        """Yield the bytes of all groups of a completed plan.

        Raises:
            PlanNotFoundError: The plan was deleted meanwhile.
        """

    async def delete(self, plan_id: str, now: datetime, once: Once | None = None) -> None:
        """Delete a plan; if some replica is still making it, that stops.

        Raises:
            PlanNotFoundError: No plan has this id.
        """

    async def renew(self, plan_id: str, lease_until: datetime) -> bool:
        """Renew the lease of a plan that is being made; tell whether anybody still wants it."""

    async def adopt(self, now: datetime, lease_until: datetime) -> Sequence[PlanRecord]:
        """Take over abandoned plans that are still to be made; no other replica gets the same."""

    async def purge(self, now: datetime) -> int:
        """Forget the plans that have expired by `now`; return how many."""


class GroupCodec(Protocol):
    """Encodes and decodes a plan's groups."""

    def encode(self, groups: GroupedSplits, check: Checkpoint = lambda: None) -> PlanBody:
        """Return the groups as bytes, in the form in which they are stored and streamed."""

    def read(
        self, head: bytes, chunk: PlanChunk, begin: int, max_groups: int, max_splits: int
    ) -> list[bytes]:
        """Return groups of a chunk as JSON objects, from group `begin` on, at least one."""

    def described(self, head: bytes, plan: bytes) -> bytes:
        """Return the head of a stream with a description of the plan added."""


class Refresher(Protocol):
    """Refreshes tables."""

    async def refresh_unless_checked(self, table: str, since: datetime) -> None:
        """Refresh a table unless its snapshot agreed with its files at `since` or later.

        Raises:
            TableNotFoundError: No table has this name.
            windrow_service.inventory.errors.InventoryError: The files are not a table.
        """


class SharedWork(Protocol):
    """Does work only once if several callers want it at the same time."""

    async def run(self, key: str, work: Callable[[Checkpoint], Awaitable[T]]) -> T:
        """Return the result of `work`, or of the running work with the same key.

        Once every caller of a key has been cancelled, its work is told to stop.
        """
