"""Plans that are made in the background: by this replica, or instead of one that has died."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

from windrow_service.logs import get_logger
from windrow_service.runs.background import stop
from windrow_service.usecases.errors import (
    BusyError,
    OutcomeUnknownError,
    StoreUnavailableError,
    UseCaseError,
)
from windrow_service.usecases.plans.errors import PlanCancelledError
from windrow_service.usecases.plans.ports import PlanRecord, PlanStore
from windrow_service.usecases.ports import Clock

# Whoever makes a plan says so every RENEW_S; whoever has not for LEASE has died.
LEASE = timedelta(seconds=10)
_RENEW_S = 1.0
_RETRY_AFTER_S = 1
_log = get_logger(__name__)


class PlanRuns:
    """The plans that this replica makes in the background.

    Args:
        plans: Where they are kept.
        finish: Makes a plan that was submitted and notes how that ended.
        clock: The time.
        max_running: Most plans that may be under way; more are refused.
    """

    def __init__(
        self,
        plans: PlanStore,
        finish: Callable[[PlanRecord], Coroutine[Any, Any, None]],
        clock: Clock,
        *,
        max_running: int,
    ) -> None:
        self._plans = plans
        self._finish = finish
        self._clock = clock
        self._max_running = max_running
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def make_room(self) -> None:
        """Make sure that one more plan may be started.

        Raises:
            BusyError: Too many are under way.
        """
        if len(self._tasks) >= self._max_running:
            raise BusyError(len(self._tasks), _RETRY_AFTER_S)

    def start(self, plan: PlanRecord) -> None:
        """Go on with a plan that was submitted, in the background."""
        self._tasks[plan.plan_id] = asyncio.create_task(self._run(plan))

    async def wait(self, plan_id: str, seconds: float) -> None:
        """Wait until a plan that was started here has ended, at most for so long."""
        task = self._tasks.get(plan_id)
        if task is not None and seconds > 0:
            await asyncio.wait([task], timeout=seconds)

    def cancel(self, plan_id: str) -> None:
        """Stop making a plan, if it is made here."""
        task = self._tasks.get(plan_id)
        if task is not None:
            task.cancel()

    async def adopt(self) -> None:
        """Go on with plans that other replicas have abandoned.

        Raises:
            BusyError: Too many plans are under way here.
            StoreUnavailableError: The database does not answer.
        """
        self.make_room()
        now = self._clock()
        for plan in await self._plans.adopt(now, now + LEASE):
            _log.info("going on with a plan that was abandoned", plan_id=plan.plan_id)
            self.start(plan)

    async def aclose(self) -> None:
        """Stop; other replicas go on with what is not done, at once if they can be told."""
        left = dict(self._tasks)
        await stop(*left.values())
        for plan_id in left:
            with suppress(UseCaseError):
                await self._plans.renew(plan_id, self._clock())

    async def _run(self, plan: PlanRecord) -> None:
        making = asyncio.create_task(self._finish(plan))
        try:
            while not making.done():
                await asyncio.wait([making], timeout=_RENEW_S)
                if not making.done() and not await self._wanted(plan.plan_id):
                    raise PlanCancelledError
            await making
        except PlanCancelledError:
            _log.info("a plan was deleted, or made elsewhere, meanwhile", plan_id=plan.plan_id)
        except UseCaseError as error:
            # It could not even be noted; whoever adopts it tries again.
            _log.warning("a plan was left to others", plan_id=plan.plan_id, reason=str(error))
        except Exception:
            _log.exception("a plan was left to others", plan_id=plan.plan_id)
        finally:
            await stop(making)
            self._tasks.pop(plan.plan_id, None)

    async def _wanted(self, plan_id: str) -> bool:
        try:
            return await self._plans.renew(plan_id, self._clock() + LEASE)
        except (StoreUnavailableError, OutcomeUnknownError):
            return True
