"""Make plans, at once or in the background."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from windrow_core.models import PlanRequest
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.usecases.errors import (
    BusyError,
    IdempotencyKeyReusedError,
    OutcomeUnknownError,
    RepeatedRequestError,
    StoreUnavailableError,
)
from windrow_service.usecases.plans.drafts import DraftPlan
from windrow_service.usecases.plans.errors import PlanCancelledError, PlanNotFoundError
from windrow_service.usecases.plans.ports import (
    PlanBody,
    PlanRecord,
    PlanStore,
    Refresher,
    SharedWork,
)
from windrow_service.usecases.plans.records import (
    described,
    may_refresh,
    pinned,
    same_groups,
)
from windrow_service.usecases.ports import Checkpoint, Once, TrustedClock
from windrow_service.usecases.snapshots.errors import InvalidPartitionsError
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.tables.ports import StoredTable, TableStore

KeepPlan: TypeAlias = Callable[[PlanRecord, PlanBody | None], Awaitable[None]]

# Errors of the leading caller only; those who wait for the same groups try again.
_OF_ONE_CALLER = (PlanCancelledError, RepeatedRequestError, IdempotencyKeyReusedError)
# Errors that say what is wrong with a request.
_OF_THE_REQUEST = (InvalidFilterError, InvalidPartitionsError, *_OF_ONE_CALLER)


@dataclass(frozen=True, slots=True)
class PlanStart:
    """A plan, and what it is made from: its table and its snapshot."""

    plan: PlanRecord
    table: StoredTable
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MakePlan:
    """Plan how to read a table, and keep the plan until it expires."""

    tables: TableStore
    snapshots: SnapshotStore
    plans: PlanStore
    draft: DraftPlan
    shared_work: SharedWork
    refresher: Refresher
    describe: Callable[[Exception], dict[str, Any]]
    clock: TrustedClock
    plan_ttl: timedelta

    async def __call__(
        self,
        request: PlanRequest,
        principal: str,
        once: Once | None = None,
        *,
        is_listed: bool = True,
    ) -> PlanRecord:
        """Make a plan, or share the work on an equal one.

        Args:
            request: The request.
            principal: The caller.
            once: The caller's key.
            is_listed: Whether the plan enters the history.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The table does not have the requested snapshot.
            VersionNotKnownError: The table has no snapshot of the requested version.
            InvalidFilterError: The filter cannot be planned.
            InvalidPartitionsError: The snapshot has no such partition.
            InvalidColumnsError: A requested column does not exist.
            PlanTooLargeError: More files survive than a plan may hold.
            PlansFullError: All plans together would be too large.
            BusyError: Too much is being planned already.
        """
        await self._refresh_if_stale(request, self.clock())
        table, snapshot = await self._snapshot_of(request)
        plan = pinned(self._record(table, request, principal, is_listed), table, snapshot)
        twin = await self._reusable(plan)
        if twin is not None:
            plan = same_groups(twin, plan)
            await self.plans.put(plan, once=once)
            return plan

        async def keep(record: PlanRecord, body: PlanBody | None) -> None:
            await self.plans.put(record, body, once=once)

        return await self._complete(table, snapshot, plan, keep)

    async def begin(
        self, request: PlanRequest, principal: str, *, is_listed: bool = True
    ) -> PlanStart:
        """Begin a plan of a snapshot that exists; `finish` makes it. Nothing is recorded yet.

        Args:
            request: The request.
            principal: The caller.
            is_listed: As in `submit`.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The table does not have the requested snapshot.
            VersionNotKnownError: The table has no snapshot of the requested version.
        """
        table, snapshot = await self._snapshot_of(request)
        plan = pinned(self._record(table, request, principal, is_listed), table, snapshot)
        return PlanStart(plan, table, snapshot)

    async def submit(
        self,
        request: PlanRequest,
        principal: str,
        lease: timedelta,
        once: Once | None = None,
        *,
        is_listed: bool = True,
    ) -> PlanRecord:
        """Record a requested plan; `finish` then makes it.

        Args:
            request: The request.
            principal: The caller.
            lease: Others may take the plan over if the lease is not renewed for this long.
            once: The caller's key.
            is_listed: Whether the plan enters the history; if another replica has to finish it, it
                does in any case.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet, and no refresh is requested.
            SnapshotNotFoundError: The table does not have the requested snapshot.
            InvalidFilterError: The filter cannot be planned.
            InvalidPartitionsError: The snapshot has no such partition.
            BusyError: Too much is being planned already.
        """
        if may_refresh(request):
            # The refresh may take long: the plan is pinned to its result.
            table = await self.tables.get(request.table)
            plan = self._record(table, request, principal, is_listed)
        else:
            start = await self.begin(request, principal, is_listed=is_listed)
            await self.draft.check_request(start.snapshot, request)
            plan = start.plan
        await self.plans.put(plan, lease_until=plan.created_at + lease, once=once)
        return plan

    async def finish(
        self, plan: PlanRecord, start: PlanStart | None = None, keep: KeepPlan | None = None
    ) -> Exception | None:
        """Make a plan that was submitted to any replica, and keep the outcome; return why it failed.

        Args:
            plan: The plan.
            start: What `begin` returned, if its caller still waits for an answer.
            keep: Records the outcome; by default, that of a plan that is recorded already.

        Raises:
            StoreUnavailableError: The outcome could not be recorded; the call may be repeated.
            OutcomeUnknownError: The outcome may have been recorded; the call may be repeated.
            BusyError: Too much is being planned already; the call may be repeated.
            PlanCancelledError: Nobody wants the plan any more.
            InvalidFilterError: The filter cannot be planned, and the caller hears of it.
            InvalidPartitionsError: The same of partitions that the snapshot does not have.
            RepeatedRequestError: The same of a request that was answered before.
            IdempotencyKeyReusedError: The same of a key that another request had.
        """
        keep = keep or self.plans.finish
        is_heard = start is not None
        try:
            if start is None:
                start = await self._start_elsewhere(plan)
            await self._complete(start.table, start.snapshot, start.plan, keep)
        except (StoreUnavailableError, OutcomeUnknownError, BusyError, PlanCancelledError):
            raise
        except Exception as error:  # reported by the plan
            if is_heard and isinstance(error, _OF_THE_REQUEST):
                raise
            plan = plan if start is None else start.plan
            await keep(replace(plan, state="failed", problem=self.describe(error)), None)
            return error
        else:
            return None

    async def _start_elsewhere(self, plan: PlanRecord) -> PlanStart:
        if plan.snapshot_id is None:
            await self._refresh_if_stale(plan.request, plan.created_at)
        table, snapshot = await self.snapshots.get(plan.request.table, plan.snapshot_id)
        if table.table_id != plan.table_id:
            raise PlanNotFoundError(plan.plan_id)
        return PlanStart(pinned(plan, table, snapshot), table, snapshot)

    async def _snapshot_of(self, request: PlanRequest) -> tuple[StoredTable, Snapshot]:
        return await self.snapshots.get(request.table, request.snapshot_id, request.version)

    async def _refresh_if_stale(self, request: PlanRequest, asked_at: datetime) -> None:
        if may_refresh(request):
            staleness = timedelta(seconds=request.max_staleness or 0)
            # If the clocks disagree, the listing may be older than the database believes.
            ahead = self.clock.latest() - self.clock()
            oldest = asked_at - max(staleness - ahead, timedelta())
            await self.refresher.refresh_unless_checked(request.table, oldest)

    def _record(
        self, table: StoredTable, request: PlanRequest, principal: str, is_listed: bool
    ) -> PlanRecord:
        now = self.clock()
        return PlanRecord(
            plan_id=secrets.token_hex(16),
            principal=principal,
            table_id=table.table_id,
            snapshot_id=None,
            state="submitted",
            created_at=now,
            expires_at=now + self.plan_ttl,
            request=request,
            request_key=None,
            is_listed=is_listed,
        )

    async def _reusable(self, plan: PlanRecord) -> PlanRecord | None:
        if not plan.request.reuse:
            return None
        assert plan.request_key is not None
        return await self.plans.find(plan.request_key, plan.created_at)

    async def _complete(
        self, table: StoredTable, snapshot: Snapshot, plan: PlanRecord, keep: KeepPlan
    ) -> PlanRecord:
        """Make a plan and keep it, or give it the groups of an equal plan that is being made."""
        assert plan.request_key is not None
        leads = False

        async def work(check: Checkpoint) -> PlanRecord:
            nonlocal leads
            leads = True
            draft, seconds = await self.draft(table, snapshot, plan.request, check)
            info = described(table, snapshot, plan, draft, seconds)
            record = replace(plan, state="completed", info=info, body_id=plan.plan_id)
            check()
            await keep(record, draft.body)
            return record

        while True:
            try:
                record = await self.shared_work.run(plan.request_key, work)
            except _OF_ONE_CALLER:
                if leads:
                    raise
                continue
            if leads:
                return record
            record = same_groups(record, plan)
            try:
                await keep(record, None)
            except PlanNotFoundError:
                # The plan that these groups were made for has just been deleted.
                continue
            return record
