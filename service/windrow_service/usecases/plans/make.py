"""Make plans, at once or in the background, and page through them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from windrow.models import Plan, PlanRequest
from windrow_service.filters.bind import bind
from windrow_service.filters.sql import parse_sql
from windrow_service.planner.pruning.expressions import Expression
from windrow_service.usecases.caches.table_caching import TableCaching
from windrow_service.usecases.errors import (
    BusyError,
    IdempotencyKeyReusedError,
    OutcomeUnknownError,
    RepeatedRequestError,
    StoreUnavailableError,
)
from windrow_service.usecases.plans.drafts import Draft, draft_plan
from windrow_service.usecases.plans.errors import PlanCancelledError, PlanNotFoundError
from windrow_service.usecases.plans.ports import (
    GroupCodec,
    PlanBody,
    PlanRecord,
    PlanStore,
    Refresher,
    SharedWork,
)
from windrow_service.usecases.plans.records import (
    described,
    info_of,
    may_refresh,
    pinned,
    same_groups,
)
from windrow_service.usecases.ports import Checkpoint, Clock, Once, Runner
from windrow_service.usecases.snapshots.manifests import ManifestReader
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import Scan, types_of
from windrow_service.usecases.tables.ports import StoredTable, TableStore

_Keep: TypeAlias = Callable[[PlanRecord, PlanBody | None], Awaitable[None]]

# What keeps a caller from its plan, and not those who wait for the same groups.
_OF_ONE_CALLER = (PlanCancelledError, RepeatedRequestError, IdempotencyKeyReusedError)

_READ_AT_ONCE_BYTES = 32 * 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """What bounds a plan and its pages.

    Attributes:
        max_filter_nodes: Most nodes of a filter.
        max_filter_depth: Deepest nesting of a filter.
        max_plan_files: Most files in one plan.
        max_page_groups: Most groups in a page.
        default_page_groups: Groups in a page when the caller does not say.
        max_page_splits: Most splits in a page of more than one group.
        plan_ttl: How long a plan is kept.
    """

    max_filter_nodes: int
    max_filter_depth: int
    max_plan_files: int
    max_page_groups: int
    default_page_groups: int
    max_page_splits: int
    plan_ttl: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfGroups:
    """Some groups of a plan, each a JSON object; `next_group` is None after the last."""

    plan: Plan
    groups: list[bytes]
    next_group: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakePlan:
    """Plan how to read a table, and keep the plan until it expires."""

    tables: TableStore
    snapshots: SnapshotStore
    manifests: ManifestReader
    plans: PlanStore
    caching: TableCaching
    codec: GroupCodec
    runner: Runner
    shared: SharedWork
    refresher: Refresher
    describe: Callable[[Exception], dict[str, Any]]
    clock: Clock
    limits: PlanLimits

    async def __call__(
        self, request: PlanRequest, principal: str, once: Once | None = None
    ) -> PlanRecord:
        """Make a plan, or take part in the making of an equal one.

        Args:
            request: What is asked for.
            principal: Who asks.
            once: The caller's key.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The table does not have the snapshot asked for.
            InvalidFilterError: The filter cannot be planned.
            InvalidColumnsError: A column asked for is not there.
            PlanTooLargeError: More files survive than a plan may hold.
            PlansFullError: All plans together would be too large.
            BusyError: Too much is being planned already.
        """
        await self._refresh_if_stale(request, self.clock())
        table, snapshot = await self.snapshots.get(request.table, request.snapshot_id)
        plan = pinned(self._record(table, request, principal), table, snapshot)
        found = await self._reusable(plan)
        if found is not None:
            plan = same_groups(found, plan)
            await self.plans.put(plan, once=once)
            return plan

        async def keep(made: PlanRecord, body: PlanBody | None) -> None:
            await self.plans.put(made, body, once=once)

        return await self._complete(table, snapshot, plan, keep)

    async def submit(
        self,
        request: PlanRequest,
        principal: str,
        lease: timedelta,
        once: Once | None = None,
    ) -> PlanRecord:
        """Note that a plan is wanted, which `finish` then makes.

        Args:
            request: What is asked for.
            principal: Who asks.
            lease: After this time without a sign of life, others may go on with it.
            once: The caller's key.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet, and no refresh is asked for.
            SnapshotNotFoundError: The table does not have the snapshot asked for.
            InvalidFilterError: The filter cannot be planned.
            BusyError: Too much is being planned already.
        """
        if may_refresh(request):
            # Which takes as long as it takes: the plan is pinned to what comes of it.
            plan = self._record(await self.tables.get(request.table), request, principal)
        else:
            table, snapshot = await self.snapshots.get(request.table, request.snapshot_id)
            await self.runner.run(lambda: self._scan(snapshot, request))
            plan = pinned(self._record(table, request, principal), table, snapshot)
        await self.plans.put(plan, lease_until=plan.created_at + lease, once=once)
        return plan

    async def finish(self, plan: PlanRecord) -> None:
        """Make a plan that was submitted, here or elsewhere, and note how that ended.

        Raises:
            StoreUnavailableError: It could not be noted; it may be tried again.
            OutcomeUnknownError: It may have been noted; it may be tried again.
            BusyError: Too much is being planned already; it may be tried again.
            PlanCancelledError: Nobody wants it any more.
        """
        try:
            if plan.snapshot_id is None:
                await self._refresh_if_stale(plan.request, plan.created_at)
            table, snapshot = await self.snapshots.get(plan.request.table, plan.snapshot_id)
            if table.table_id != plan.table_id:
                raise PlanNotFoundError(plan.plan_id)
            plan = pinned(plan, table, snapshot)
            await self._complete(table, snapshot, plan, self.plans.finish)
        except (StoreUnavailableError, OutcomeUnknownError, BusyError, PlanCancelledError):
            raise
        except Exception as error:  # told to whoever asks for the plan
            failed = replace(plan, state="failed", problem=self.describe(error))
            await self.plans.finish(failed)

    async def get(self, plan_id: str) -> PlanRecord:
        """Return a plan, however far it is.

        Raises:
            PlanNotFoundError: No plan has this id, or it has expired.
        """
        return await self.plans.get(plan_id, self.clock())

    async def completed(self, plan_id: str) -> PlanRecord:
        """Return a plan that has groups.

        Raises:
            PlanNotFoundError: No plan has this id, or it has expired.
            PlanNotCompletedError: It is still being made, or could not be made.
        """
        plan = await self.get(plan_id)
        info_of(plan)
        return plan

    async def page(self, plan: PlanRecord, begin: int, max_groups: int | None) -> PageOfGroups:
        """Return groups of a completed plan, from group `begin` on.

        A page may hold fewer groups than asked for and not be the last.

        Raises:
            PlanNotFoundError: The plan was deleted meanwhile.
        """
        info, limits = info_of(plan), self.limits
        wanted = limits.default_page_groups if max_groups is None else max_groups
        wanted = min(wanted, limits.max_page_groups)
        count = info.summary.group_count
        groups: list[bytes] = []
        if wanted and begin < count:
            head, chunk = await self.plans.chunk(plan, begin)

            def read() -> list[bytes]:
                return self.codec.read(head, chunk, begin, wanted, limits.max_page_splits)

            # The way to a thread and back takes longer than a small page.
            small = len(chunk.data) <= _READ_AT_ONCE_BYTES
            groups = read() if small else await self.runner.run(read)
        end = begin + len(groups)
        return PageOfGroups(plan=info, groups=groups, next_group=end if end < count else None)

    async def _refresh_if_stale(self, request: PlanRequest, asked_at: datetime) -> None:
        if may_refresh(request):
            oldest = asked_at - timedelta(seconds=request.max_staleness or 0)
            await self.refresher.refresh_unless_checked(request.table, oldest)

    def _record(self, table: StoredTable, request: PlanRequest, principal: str) -> PlanRecord:
        now = self.clock()
        return PlanRecord(
            plan_id=secrets.token_hex(16),
            principal=principal,
            table_id=table.table_id,
            snapshot_id=None,
            state="submitted",
            created_at=now,
            expires_at=now + self.limits.plan_ttl,
            request=request,
            request_key=None,
        )

    async def _reusable(self, plan: PlanRecord) -> PlanRecord | None:
        if not plan.request.reuse:
            return None
        assert plan.request_key is not None
        return await self.plans.find(plan.request_key, plan.created_at)

    async def _complete(
        self, table: StoredTable, snapshot: Snapshot, plan: PlanRecord, keep: _Keep
    ) -> PlanRecord:
        """Make a plan and keep it, or give it the groups of an equal one that is being made."""
        assert plan.request_key is not None
        leads = False

        async def work(check: Checkpoint) -> PlanRecord:
            nonlocal leads
            leads = True
            draft, seconds = await self._draft(table, snapshot, plan.request, check)
            info = described(table, snapshot, plan, draft, seconds)
            made = replace(plan, state="completed", info=info, body_id=plan.plan_id)
            check()
            await keep(made, draft.body)
            return made

        while True:
            try:
                made = await self.shared.run(plan.request_key, work)
            except _OF_ONE_CALLER:
                if leads:
                    raise
                continue
            if leads:
                return made
            made = same_groups(made, plan)
            try:
                await keep(made, None)
            except PlanNotFoundError:
                # The plan that has these groups was deleted at this very moment.
                continue
            return made

    async def _draft(
        self, table: StoredTable, snapshot: Snapshot, request: PlanRequest, check: Checkpoint
    ) -> tuple[Draft, float]:
        started = time.perf_counter()
        caching = await self.caching(table, snapshot)

        def draft(scan: Scan, decoded: Sequence[pa.Table]) -> Draft:
            return draft_plan(
                table.info.definition,
                scan,
                decoded,
                caching,
                request,
                max_files=self.limits.max_plan_files,
                codec=self.codec,
                check=check,
            )

        def look() -> Draft | Scan:
            scan = self._scan(snapshot, request)
            at_hand = self.manifests.at_hand(snapshot, scan.manifests, bloom=scan.asks_for_values)
            if len(at_hand) < len(scan.manifests):
                return scan
            # Another way to a thread and back would take as long as a small plan.
            return draft(scan, [at_hand[entry.manifest_id] for entry in scan.manifests])

        found = await self.runner.run(look)
        if isinstance(found, Scan):
            scan = found
            decoded = await self.manifests.read(
                request.table, snapshot, scan.manifests, bloom=scan.asks_for_values, check=check
            )
            found = await self.runner.run(lambda: draft(scan, decoded))
        return found, time.perf_counter() - started

    def _scan(self, snapshot: Snapshot, request: PlanRequest) -> Scan:
        return Scan.of(snapshot, self._expression(request, types_of(snapshot)))

    def _expression(self, request: PlanRequest, types: dict[str, pa.DataType]) -> Expression | None:
        if request.filter is None:
            return None
        max_nodes, max_depth = self.limits.max_filter_nodes, self.limits.max_filter_depth
        tree = (
            parse_sql(request.filter, max_nodes=max_nodes, max_depth=max_depth)
            if isinstance(request.filter, str)
            else request.filter
        )
        return bind(tree, types, max_nodes=max_nodes, max_depth=max_depth)
