"""Rounds of maintenance: one at a time on all replicas."""

from __future__ import annotations

import asyncio
import secrets
from datetime import timedelta

from windrow_core.models import MaintenanceRound
from windrow_service.logs import get_logger
from windrow_service.runs.leases import renewed
from windrow_service.usecases.errors import BusyError
from windrow_service.usecases.maintenance.decide import Decide
from windrow_service.usecases.maintenance.ports import PolicyStore
from windrow_service.usecases.maintenance.work import WorkStore
from windrow_service.usecases.ports import TrustedClock

# A replica silent for LEASE is presumed dead.
LEASE = timedelta(seconds=10)
_PATIENCE_S, _POLL_S = 30.0, 0.2
_RETRY_AFTER_S = 2
_log = get_logger(__name__)


class _RoundLostError(Exception):
    """Another replica has taken the lease."""


class MaintenanceRounds:
    """The rounds that this replica runs."""

    def __init__(
        self, decide: Decide, policies: PolicyStore, store: WorkStore, clock: TrustedClock
    ) -> None:
        self._decide = decide
        self._policies = policies
        self._store = store
        self._clock = clock

    async def run_if_free(self) -> MaintenanceRound | None:
        """Run a round, unless another replica runs one or there are no policies.

        Raises:
            ClockSkewError: This machine's clock is wrong.
        """
        if not await self._policies.list():
            return None
        return await self._run()

    async def run(self) -> MaintenanceRound:
        """Run a round once no other one runs.

        Raises:
            ClockSkewError: This machine's clock is wrong.
            BusyError: Other rounds take too long.
        """
        patience_s = _PATIENCE_S
        while patience_s > 0:
            figures = await self._run()
            if figures is not None:
                return figures
            patience_s -= _POLL_S
            await asyncio.sleep(_POLL_S)
        raise BusyError(1, _RETRY_AFTER_S)

    async def _run(self) -> MaintenanceRound | None:
        self._clock.require_agreement()
        holder, now = secrets.token_hex(16), self._clock()
        if not await self._store.begin_round(holder, now, now + LEASE):
            return None

        async def renew() -> None:
            if not await self._store.renew_round(holder, self._clock() + LEASE):
                raise _RoundLostError

        try:
            return await renewed("a round of maintenance", self._decide(holder), renew)
        except _RoundLostError:
            _log.warning("a round of maintenance took too long, and another replica runs one")
            return None
        except BaseException:
            await self._store.renew_round(holder, now)
            raise
