"""Give work to workers: what is to be dropped is looked at once more when a worker takes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from windrow_core.models import ClaimRequest, ClaimUpdate, WorkItem, WorkOutcome
from windrow_service.usecases.maintenance.policies import maintenance_of
from windrow_service.usecases.maintenance.ports import PolicyStore
from windrow_service.usecases.maintenance.retention import (
    NOTHING_OLD,
    NothingOld,
    OldPartitions,
    RetentionFinder,
)
from windrow_service.usecases.maintenance.work import WorkStore
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import TrustedClock
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import TableStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWork:
    """Give the work that comes first to a worker."""

    tables: TableStore
    policies: PolicyStore
    finder: RetentionFinder
    work: WorkStore
    clock: TrustedClock

    async def __call__(self, request: ClaimRequest, among: Names) -> WorkItem | None:
        """Return the work; None if there is none.

        The policy may have changed since partitions were found too old, or a worker that had the
        work may have died long ago: of what was decided, what goes is too old now, by the policy of
        now.

        Args:
            request: What the worker asks for.
            among: The tables that it may write to.

        Raises:
            ClockSkewError: This machine's clock is wrong.
            StoreUnavailableError: The database is away.
            BusyError: Too much is waiting already.
        """
        self.clock.require_agreement()
        lease = timedelta(seconds=request.lease_seconds)
        while True:
            now = self.clock()
            item = await self.work.claim(request, among, now, now + lease)
            if item is None or item.removal is None:
                return item
            outcome = await self._old_partitions(item)
            if isinstance(outcome, OldPartitions):
                changes = {
                    "folders": list(outcome.values),
                    "removal": outcome.removal,
                    "filter": outcome.filter,
                }
                return WorkItem.model_validate(dict(item) | changes)
            await self.work.update(item.claim_id, among, _end(outcome), now, now)

    async def _old_partitions(self, item: WorkItem) -> OldPartitions | NothingOld:
        try:
            table = await self.tables.get(item.table)
        except TableNotFoundError as error:
            return NothingOld(reason="no_table", text=str(error))
        policies = [one.info for one in await self.policies.list()]
        policy = maintenance_of(item.table, policies).policy
        return await self.finder.find(table, policy, self.clock(), item.folders)


def _end(outcome: NothingOld) -> ClaimUpdate:
    """Return how work ends of which nothing is left to do."""
    if outcome.reason == NOTHING_OLD:
        # The worker that had it before may have died right after its commit.
        text = f"nothing was left to drop: {outcome.text}"
        return ClaimUpdate(state="done", text=text, outcome=WorkOutcome())
    return ClaimUpdate(state="gave_up", text=f"nothing was dropped: {outcome.text}")
