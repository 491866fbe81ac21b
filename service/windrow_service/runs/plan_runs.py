"""Plans made in the background by this replica, including plans of replicas that have died."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from windrow_core.errors import StatedError
from windrow_core.models import PlanRequest
from windrow_service.logs import get_logger
from windrow_service.runs.leases import NamedTasks, renewed
from windrow_service.usecases.errors import BusyError, UseCaseError
from windrow_service.usecases.plans.errors import PlanCancelledError
from windrow_service.usecases.plans.make import MakePlan
from windrow_service.usecases.plans.ports import PlanRecord, PlanStore
from windrow_service.usecases.ports import Clock, Once

# A replica silent for LEASE is presumed dead: others continue its plans.
LEASE = timedelta(seconds=10)
_RETRY_AFTER_S = 1
_log = get_logger(__name__)


class PlanRuns:
    """The plans that this replica makes in the background."""

    def __init__(self, make: MakePlan, plans: PlanStore, clock: Clock, *, max_running: int) -> None:
        self._make = make
        self._plans = plans
        self._clock = clock
        self._max_running = max_running
        self._tasks = NamedTasks[None]()

    async def submit(
        self, request: PlanRequest, principal: str, wait_s: float, once: Once | None = None
    ) -> PlanRecord:
        """Begin to make a plan in the background; return it once it is made, or after `wait_s`.

        Raises:
            BusyError: Too many plans are under way.
            UseCaseError: Any error of `MakePlan.submit`.
            PlanNotFoundError: The plan was deleted meanwhile.
        """
        self._make_room()
        plan = await self._make.submit(request, principal, LEASE, once)
        task = self._start(plan)
        if wait_s > 0:
            await asyncio.wait([task], timeout=wait_s)
        return await self._plans.get(plan.plan_id, self._clock())

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

    def _start(self, plan: PlanRecord) -> asyncio.Task[None]:
        return self._tasks.start(plan.plan_id, self._run(plan))

    async def _run(self, plan: PlanRecord) -> None:
        async def renew() -> None:
            if not await self._plans.renew(plan.plan_id, self._clock() + LEASE):
                raise PlanCancelledError

        try:
            failure = await renewed("a plan", self._make.finish(plan), renew)
        except PlanCancelledError:
            _log.info("a plan was deleted, or made elsewhere, meanwhile", plan_id=plan.plan_id)
        except Exception as error:
            # The failure could not be recorded; the replica that adopts the plan tries again.
            self._note("a plan was left for another replica", plan, error)
        else:
            if failure is not None:
                self._note("a plan in the background failed", plan, failure)

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
