"""Make a plan, and page through one."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.models import (
    Column,
    Plan,
    PlanOptions,
    PlanRequest,
    PlanSummary,
    SortColumn,
    TableDefinition,
)
from windrow_service.filters.bind import bind
from windrow_service.filters.sql import parse_sql
from windrow_service.filters.tree import to_tree
from windrow_service.planner.expressions import Expression, columns_of
from windrow_service.planner.file_keys import Holding, locate
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import DEFAULT_MAX_INITIAL_SPLIT_SIZE, Policy
from windrow_service.planner.strategies import STRATEGIES
from windrow_service.usecases.cache_ports import CacheMap
from windrow_service.usecases.errors import InvalidColumnsError
from windrow_service.usecases.ports import (
    Clock,
    GroupCodec,
    PlanStore,
    Runner,
    SnapshotStore,
    StoredPlan,
    TableStore,
)
from windrow_service.usecases.scans import Scan, types_of
from windrow_service.usecases.types import wire_columns
from windrow_service.usecases.workers import holdings_of


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
    plans: PlanStore
    cache: CacheMap
    codec: GroupCodec
    runner: Runner
    clock: Clock
    limits: PlanLimits

    async def __call__(self, request: PlanRequest) -> PageOfGroups:
        """Return a plan with its first page of groups.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The table does not have the snapshot asked for.
            InvalidFilterError: The filter cannot be planned.
            InvalidColumnsError: A column asked for is not there.
            PlanTooLargeError: More files survive than a plan may hold.
            BusyError: Too much is being planned already.
        """
        table, snapshot = await self.snapshots.get(request.table, request.snapshot_id)
        started = time.perf_counter()
        scan = await self.runner.run(
            lambda: Scan.of(snapshot, self._expression(request, types_of(snapshot)))
        )
        bodies = await self.snapshots.bodies(request.table, snapshot, scan.manifests)
        holdings = await holdings_of(self.cache, table.table_id, self.clock)
        drafted = await self.runner.run(
            lambda: self._draft(table.info.definition, scan, bodies, holdings, request)
        )
        now = self.clock()
        info = Plan(
            plan_id=secrets.token_hex(16),
            status="completed",
            table=request.table,
            snapshot_id=snapshot.info.snapshot_id,
            created_at=now,
            expires_at=now + self.limits.plan_ttl,
            location=table.info.definition.location,
            format=table.info.definition.format,
            sort_columns=drafted.sort_columns,
            partition_columns=snapshot.info.partition_columns,
            columns=drafted.columns,
            hidden_columns=drafted.hidden_columns,
            filter=drafted.filter,
            limit=request.limit,
            requested_options=request.options,
            options=drafted.options,
            summary=drafted.summary.model_copy(
                update={"planning_seconds": round(time.perf_counter() - started, 6)}
            ),
            groups=[],
            next_page_token=None,
        )
        plan = StoredPlan(info=info, body=drafted.body)
        await self.plans.put(plan)
        return await self._page(plan, 0, self._page_size(request.page_size))

    async def page(self, plan_id: str, begin: int, max_groups: int | None) -> PageOfGroups:
        """Return groups of a stored plan, from group `begin` on.

        Raises:
            PlanNotFoundError: No plan has this id, or it has expired.
        """
        plan = await self.plans.get(plan_id, self.clock())
        return await self._page(plan, begin, self._page_size(max_groups))

    def _page_size(self, asked: int | None) -> int:
        wanted = self.limits.default_page_groups if asked is None else asked
        return min(wanted, self.limits.max_page_groups)

    async def _page(self, plan: StoredPlan, begin: int, max_groups: int) -> PageOfGroups:
        groups = await self.runner.run(
            lambda: (
                self.codec.read(plan.body, begin, max_groups, self.limits.max_page_splits)
                if max_groups
                else []
            )
        )
        end = begin + len(groups)
        more = end < plan.info.summary.group_count
        return PageOfGroups(plan=plan.info, groups=groups, next_group=end if more else None)

    def _draft(
        self,
        definition: TableDefinition,
        scan: Scan,
        bodies: Sequence[bytes],
        holdings: Sequence[Holding],
        request: PlanRequest,
    ) -> _Draft:
        types, expression = types_of(scan.snapshot), scan.expression
        columns = list(types) if request.columns is None else _columns(request.columns, types)
        sort_names = _columns([column.name for column in definition.sort_columns], types)
        options = with_defaults(request.options)
        policy = policy_of(options, self.limits.max_plan_files)
        files = scan.files(bodies)
        groups = plan_groups(
            files,
            expression,
            policy,
            locate(files, holdings),
            limit=request.limit,
            by_manifest=scan.pruned,
            table_format=definition.format,
        )
        needed = {name for left in groups.residual_filters if left for name in columns_of(left)}
        needed.update(sort_names)
        hidden = [name for name in types if name in needed and name not in columns]
        return _Draft(
            summary=_summary(groups, options),
            body=self.codec.encode(groups),
            columns=wire_columns(pa.schema([(name, types[name]) for name in columns])),
            hidden_columns=wire_columns(pa.schema([(name, types[name]) for name in hidden])),
            sort_columns=[
                column.model_copy(update={"name": name})
                for column, name in zip(definition.sort_columns, sort_names, strict=True)
            ],
            filter=to_tree(expression) if expression is not None else None,
            options=options,
        )

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


def with_defaults(options: PlanOptions) -> PlanOptions:
    """Return options in which what the caller left out is said by the strategy."""
    strategy = STRATEGIES[options.strategy]
    chosen = {
        "min_split_size": min(strategy.min_split_size, options.max_split_size),
        "max_initial_split_size": min(DEFAULT_MAX_INITIAL_SPLIT_SIZE, options.max_split_size),
        "max_small_splits_grouped": strategy.max_small_splits_grouped,
        "open_file_cost": strategy.open_file_cost,
    }
    missing = {name: value for name, value in chosen.items() if getattr(options, name) is None}
    return options.model_copy(update=missing)


def policy_of(options: PlanOptions, max_files: int) -> Policy:
    """Return the planner's policy for options that `with_defaults` has completed."""
    return Policy(**options.model_dump(), max_files=max_files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    # The groups themselves stay behind: even to count or to free them takes 0.1 s for a
    # million files, which the event loop must not spend.
    summary: PlanSummary
    body: bytes
    columns: list[Column]
    hidden_columns: list[Column]
    sort_columns: list[SortColumn]
    # A JSON tree; `Plan` makes nodes of it.
    filter: Any
    options: PlanOptions


def _columns(asked: Sequence[str], types: dict[str, pa.DataType]) -> list[str]:
    """Resolve names of columns: exactly, else without regard to case."""
    folded: dict[str, list[str]] = {}
    for name in types:
        folded.setdefault(name.lower(), []).append(name)
    found: list[str] = []
    for name in asked:
        matches = [name] if name in types else folded.get(name.lower(), [])
        if len(matches) != 1:
            known = ", ".join(matches or types)
            raise InvalidColumnsError(f"no column {name!r}; the table has {known}")
        if matches[0] in found:
            raise InvalidColumnsError(f"column {name!r} is asked for twice: name it once")
        found.append(matches[0])
    return found


def _summary(groups: GroupedSplits, options: PlanOptions) -> PlanSummary:
    # Not np.unique, which holds the interpreter's lock for 0.1 s where there are many.
    planned = np.zeros(len(groups.files), np.bool_)
    planned[groups.splits.file] = True
    counts = np.diff(groups.offsets)
    rows = groups.files["row_count"].to_numpy()[planned]
    pruned = groups.pruning.pruned
    return PlanSummary(
        strategy=options.strategy,
        files_total=len(groups.files) + pruned["manifest"].files,
        files_planned=int(np.count_nonzero(planned)),
        **{f"files_pruned_by_{step}": by.files for step, by in pruned.items()},
        **{f"bytes_pruned_by_{step}": by.size_bytes for step, by in pruned.items()},
        size_bytes=int(groups.splits.length.sum()),
        row_count=int(rows.sum()),
        group_count=len(groups),
        split_count=len(groups.splits),
        largest_group_bytes=int(groups.size_bytes.max(initial=0)),
        smallest_group_bytes=int(groups.size_bytes.min()) if len(groups) else 0,
        largest_group_splits=int(counts.max(initial=0)),
        delete_files=int(groups.files["delete_count"].to_numpy()[planned].sum()),
        groups_with_hosts=int(np.count_nonzero(np.diff(groups.host_offsets))),
        planning_seconds=0.0,
    )
