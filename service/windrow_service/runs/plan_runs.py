"""Plans made in the background by this replica, including plans of replicas that have died."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta

from windrow_core.errors import StatedError
from windrow_core.models import PlanRequest
from windrow_service.logs import get_logger
from windrow_service.runs.leases import NamedTasks, renewed
from windrow_service.usecases.errors import BusyError, UseCaseError
from windrow_service.usecases.plans.errors import PlanCancelledError
from windrow_service.usecases.plans.make import MakePlan, PlanStart
from windrow_service.usecases.plans.ports import PlanBody, PlanRecord, PlanStore
from windrow_service.usecases.plans.records import may_refresh
from windrow_service.usecases.ports import Clock, Once

# A replica silent for LEASE is presumed dead: others continue its plans.
LEASE = timedelta(seconds=10)
_RETRY_AFTER_S = 1
# A plan that takes longer is recorded before it is made, so that other replicas can continue it.
_LONG_S = 0.5
_log = get_logger(__name__)


class _LateRecord:
    """The record of a plan, which is made when the plan is, or before if that takes long.

    Attributes:
        is_there: Whether the plan is recorded.
        outcome: The plan as it was recorded last, once it is made.
    """

    def __init__(self, plans: PlanStore, once: Once | None) -> None:
        self._plans = plans
        self._once = once
        self._turn = asyncio.Lock()
        self.is_there = False
        self.outcome: PlanRecord | None = None

    async def submit(self, plan: PlanRecord, lease_until: datetime) -> None:
        """Record that a plan is being made, unless it has been made meanwhile."""
        async with self._turn:
            if not self.is_there:
                await self._plans.put(plan, lease_until=lease_until, once=self._once)
                self.is_there = True

    async def keep(self, plan: PlanRecord, body: PlanBody | None = None) -> None:
        """Record a plan that is made, or could not be."""
        async with self._turn:
            if self.is_there:
                await self._plans.finish(plan, body)
            else:
                await self._plans.put(plan, body, once=self._once)
                self.is_there = True
            self.outcome = plan


class PlanRuns:
    """The plans that this replica makes in the background."""

    def __init__(self, make: MakePlan, plans: PlanStore, clock: Clock, *, max_running: int) -> None:
        self._make = make
        self._plans = plans
        self._clock = clock
        self._max_running = max_running
        self._tasks = NamedTasks[Exception | None]()

    async def submit(
        self,
        request: PlanRequest,
        principal: str,
        wait_s: float,
        once: Once | None = None,
        *,
        is_listed: bool = True,
    ) -> PlanRecord:
        """Begin to make a plan in the background; return it once it is made, or after `wait_s`.

        Args:
            request: The request.
            principal: The caller.
            wait_s: How long to wait for it.
            once: The caller's key.
            is_listed: Whether the plan enters the history.

        Raises:
            BusyError: Too many plans are under way.
            UseCaseError: Any error of `MakePlan.submit`.
            PlanNotFoundError: The plan was deleted meanwhile.
        """
        self._make_room()
        if wait_s > 0 and not may_refresh(request):
            return await self._make_soon(request, principal, wait_s, once, is_listed)
        plan = await self._make.submit(request, principal, LEASE, once, is_listed=is_listed)
        return await self._made(plan.plan_id, self._start(plan), wait_s)

    async def _make_soon(
        self,
        request: PlanRequest,
        principal: str,
        wait_s: float,
        once: Once | None,
        is_listed: bool,
    ) -> PlanRecord:
        """Make a plan that is recorded once it is made, or once that takes long."""
        start = await self._make.begin(request, principal, is_listed=is_listed)
        plan_id = start.plan.plan_id
        record = _LateRecord(self._plans, once)
        task = self._start(start.plan, start, record)
        await asyncio.wait([task], timeout=min(wait_s, _LONG_S))
        if not task.done():
            try:
                await self._make.draft.check_request(start.snapshot, request)
                await record.submit(start.plan, self._clock() + LEASE)
            except BaseException:
                task.cancel()
                raise
        if record.outcome is not None:
            return record.outcome
        if record.is_there:
            return await self._made(plan_id, task, wait_s - _LONG_S)
        if task.cancelled():
            # This replica stops; another one, or a later call, makes the plan.
            raise BusyError(len(self._tasks), _RETRY_AFTER_S)
        failure = task.result()
        assert failure is not None
        raise failure

    async def _made(
        self, plan_id: str, task: asyncio.Task[Exception | None], wait_s: float
    ) -> PlanRecord:
        if wait_s > 0:
            await asyncio.wait([task], timeout=wait_s)
        return await self._plans.get(plan_id, self._clock())

    async def delete(self, plan_id: str, once: Once | None = None) -> None:
        """Delete a plan; if it is still being made, stop that.

        Raises:
            PlanNotFoundError: No plan has this id.
        """
        await self._plans.delete(plan_id, self._clock(), once)
        # A plan made on another replica stops when its lease is next renewed.
        task = self._tasks.get(plan_id)
        if task is not None:
            task.cancel()

    async def adopt(self) -> None:
        """Continue plans that other replicas have abandoned.

        Raises:
            BusyError: Too many plans are under way here.
            StoreUnavailableError: The database does not answer.
        """
        self._make_room()
        now = self._clock()
        for plan in await self._plans.adopt(now, now + LEASE):
            _log.info("an abandoned plan is continued", plan_id=plan.plan_id)
            self._start(plan)

    async def aclose(self) -> None:
        """Stop; other replicas continue unfinished plans, at once if the database answers."""
        left = list(self._tasks)
        await self._tasks.aclose()
        for plan_id in left:
            with suppress(UseCaseError):
                await self._plans.renew(plan_id, self._clock())

    def _make_room(self) -> None:
        if len(self._tasks) >= self._max_running:
            raise BusyError(len(self._tasks), _RETRY_AFTER_S)

    def _start(
        self,
        plan: PlanRecord,
        start: PlanStart | None = None,
        record: _LateRecord | None = None,
    ) -> asyncio.Task[Exception | None]:
        return self._tasks.start(plan.plan_id, self._run(plan, start, record))

    async def _run(
        self, plan: PlanRecord, start: PlanStart | None, record: _LateRecord | None
    ) -> Exception | None:
        """Make a plan; return why that failed, which its caller may be waiting for."""

        async def renew() -> None:
            if record is not None and not record.is_there:
                return
            if not await self._plans.renew(plan.plan_id, self._clock() + LEASE):
                raise PlanCancelledError

        keep = None if record is None else record.keep
        event = "a plan in the background failed"
        try:
            failure = await renewed("a plan", self._make.finish(plan, start, keep), renew)
        except PlanCancelledError as error:
            _log.info("a plan was deleted, or made elsewhere, meanwhile", plan_id=plan.plan_id)
            return error
        except Exception as error:
            # The failure could not be recorded; the replica that adopts the plan tries again.
            failure, event = error, "a plan was left for another replica"
        if failure is not None and (record is None or record.is_there):
            self._note(event, plan, failure)
        return failure

    @staticmethod
    def _note(event: str, plan: PlanRecord, error: Exception) -> None:
        _log.warning(
            event,
            plan_id=plan.plan_id,
            table=plan.request.table,
            error=type(error).__name__,
            reason=str(error),
            exc_info=None if isinstance(error, StatedError) else error,
        )
