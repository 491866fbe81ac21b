"""Look plans up, and page through their groups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from windrow_core.models import Plan
from windrow_service.usecases.access.authenticate import Principal
from windrow_service.usecases.plans.errors import PlanNotFoundError
from windrow_service.usecases.plans.ports import GroupCodec, Mine, PlanRecord, PlanStore
from windrow_service.usecases.plans.records import info_of
from windrow_service.usecases.ports import Clock, Runner

_READ_AT_ONCE_BYTES = 32 * 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """Limits of a page of groups.

    Attributes:
        max_page_groups: Most groups in a page.
        default_page_groups: Groups in a page if the caller names no number.
        max_page_splits: Most splits in a page of more than one group.
    """

    max_page_groups: int
    default_page_groups: int
    max_page_splits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfGroups:
    """Some groups of a plan, each a JSON object; `next_group` is None after the last."""

    plan: Plan
    groups: list[bytes]
    next_group: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """Look up a stored plan, and read its groups page by page."""

    plans: PlanStore
    codec: GroupCodec
    runner: Runner
    clock: Clock
    limits: PageLimits

    async def get(self, plan_id: str, caller: Principal) -> PlanRecord:
        """Return a plan that the caller may use, in whatever state it is.

        Raises:
            PlanNotFoundError: The caller may use no plan with this id, or it has expired.
        """
        plan = await self.plans.get(plan_id, self.clock())
        if not caller.may_use(plan.principal, plan.request.table):
            raise PlanNotFoundError(plan_id)
        return plan

    async def under_way(self, caller: Principal, limit: int) -> Sequence[PlanRecord]:
        """Return at most `limit` plans for the caller that are being made, the latest first."""
        return await self.plans.under_way(self.clock(), limit, Mine.of(caller))

    async def stream(
        self, plan: PlanRecord, description: bytes | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the bytes of all groups of a completed plan.

        Args:
            plan: The plan.
            description: A description of the plan to put into the head of the stream, as JSON.

        Raises:
            PlanNotFoundError: The plan was deleted meanwhile.
        """
        parts = self.plans.stream(plan)
        head = await anext(parts)
        yield head if description is None else self.codec.described(head, description)
        async for part in parts:
            yield part

    async def page(self, plan: PlanRecord, begin: int, max_groups: int | None) -> PageOfGroups:
        """Return groups of a completed plan, from group `begin` on.

        A page may hold fewer groups than requested without being the last.

        Raises:
            PlanNotFoundError: The plan was deleted meanwhile.
        """
        info, limits = info_of(plan), self.limits
        limit = limits.default_page_groups if max_groups is None else max_groups
        limit = min(limit, limits.max_page_groups)
        count = info.summary.group_count
        groups: list[bytes] = []
        if limit and begin < count:
            head, chunk = await self.plans.chunk(plan, begin)

            def read() -> list[bytes]:
                return self.codec.read(head, chunk, begin, limit, limits.max_page_splits)

            # The trip to a thread and back takes longer than reading a small page.
            small = len(chunk.data) <= _READ_AT_ONCE_BYTES
            groups = read() if small else await self.runner.run(read)
        end = begin + len(groups)
        return PageOfGroups(plan=info, groups=groups, next_group=end if end < count else None)
