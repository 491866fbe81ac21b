"""Explain a plan: the reasons for its groups, and the groups that other strategies would make."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from windrow_core.files.formats import begins_at_any_line
from windrow_core.models import (
    DeleteOpens,
    GroupReason,
    Locality,
    Plan,
    PlanExplanation,
    PrunedFiles,
    StrategyFigures,
    WorkerPlacement,
)
from windrow_service.filters.reading import read_filter
from windrow_service.planner.caching.workers import Caching
from windrow_service.planner.explain import fill_histogram, tally_placements, tally_reasons
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST
from windrow_service.planner.predict import Prediction, predict
from windrow_service.planner.pruning.expressions import Expression
from windrow_service.usecases.caches.table_caching import TableCaching
from windrow_service.usecases.plans.choices import FileChooser
from windrow_service.usecases.plans.errors import PlanSnapshotGoneError
from windrow_service.usecases.plans.options import policy_of, with_defaults
from windrow_service.usecases.plans.ports import PlanRecord
from windrow_service.usecases.plans.records import info_of
from windrow_service.usecases.snapshots.errors import SnapshotNotFoundError, TableNotRefreshedError
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader, SnapshotScan, types_of
from windrow_service.usecases.tables.errors import TableNotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainPlan:
    """Plan again from the snapshot that a plan is pinned to, with every strategy."""

    snapshots: SnapshotStore
    manifests: ManifestReader
    choose: FileChooser
    caching: TableCaching
    max_plan_files: int

    async def __call__(self, record: PlanRecord) -> PlanExplanation:
        """Explain a plan, given the files that workers hold now.

        Raises:
            PlanNotCompletedError: The plan is still being made, or could not be made.
            PlanSnapshotGoneError: The plan's snapshot was dropped.
            PlanTooLargeError: The plan holds more files than are allowed now.
            BusyError: Too much is being planned already.
        """
        plan = info_of(record)
        try:
            table, snapshot = await self.snapshots.get(plan.table, plan.snapshot_id)
            if table.table_id != record.table_id:
                # Another table has this name now.
                raise SnapshotNotFoundError(plan.table, plan.snapshot_id)
            caching = await self.caching(table, snapshot)
            choice = await self.choose(snapshot, record.request)
            return await self.manifests.scan(
                plan.table,
                snapshot,
                lambda: _expression(plan, snapshot),
                lambda scan, files: self._explain(plan, scan, files, caching),
                choice=choice,
                bloom=True,
            )
        except (TableNotFoundError, TableNotRefreshedError, SnapshotNotFoundError) as error:
            raise PlanSnapshotGoneError(plan.plan_id, plan.table, plan.snapshot_id) from error

    def _explain(
        self, plan: Plan, scan: SnapshotScan, files: pa.Table, caching: Caching
    ) -> PlanExplanation:
        base = plan.requested_options or plan.options
        open_file_cost = (
            DEFAULT_OPEN_FILE_COST if base.open_file_cost is None else base.open_file_cost
        )
        figures: list[StrategyFigures] = []
        fields: dict[str, Any] = {}
        own = plan.options.strategy
        for strategy in (own, *(name for name in STRATEGIES if name != own)):
            options = with_defaults(base.model_copy(update={"strategy": strategy}))
            policy = policy_of(options, self.max_plan_files)
            groups = plan_groups(
                files,
                scan.expression,
                policy,
                caching.of,
                limit=plan.limit,
                by_manifest=scan.others,
                file_format=plan.reading.files,
                any_line=begins_at_any_line(plan.format_options),
            )
            prediction = predict(groups, replace(policy, open_file_cost=open_file_cost))
            figures.append(_figures(strategy, groups, prediction))
            if strategy == own:
                fields = _own_fields(groups, prediction, policy.max_split_size)
            # Keeping the groups of two strategies would take twice the memory.
            del groups
        return PlanExplanation(
            plan_id=plan.plan_id,
            table=plan.table,
            snapshot_id=plan.snapshot_id,
            options=plan.options,
            option_sources=plan.option_sources,
            open_file_cost=open_file_cost,
            files_total=plan.summary.files_total,
            files_planned=plan.summary.files_planned,
            size_bytes=plan.summary.size_bytes,
            split_count=plan.summary.split_count,
            delete_files=DeleteOpens(
                by_group=plan.summary.delete_opens, by_split=plan.summary.delete_opens_by_split
            )
            if plan.summary.delete_opens
            else None,
            in_packs=plan.summary.in_packs,
            strategies=figures,
            **fields,
        )


def _expression(plan: Plan, snapshot: Snapshot) -> Expression | None:
    return None if plan.filter is None else read_filter(plan.filter, types_of(snapshot))


def _figures(strategy: str, groups: GroupedSplits, prediction: Prediction) -> StrategyFigures:
    return StrategyFigures(
        strategy=strategy,
        group_count=len(groups),
        fewest_groups=prediction.fewest_groups,
        fill=prediction.fill,
        host_local_bytes=prediction.host_local_bytes,
        longest_task_seconds=prediction.longest_task_seconds,
        slowest_slot_seconds=prediction.slowest_slot_seconds,
        all_tasks_seconds=prediction.all_tasks_seconds,
    )


def _own_fields(
    groups: GroupedSplits, prediction: Prediction, max_split_size: int
) -> dict[str, Any]:
    size_bytes = int(groups.splits.length.sum())
    located_bytes, at_host = prediction.located_bytes, prediction.host_local_bytes
    return {
        "pruned": [
            PrunedFiles(step=step, **asdict(counts))
            for step, counts in groups.pruning.pruned.items()
        ],
        "reasons": [
            GroupReason(reason=reason, **asdict(of))
            for reason, of in tally_reasons(groups, max_split_size).items()
        ],
        "placements": [WorkerPlacement(**asdict(of)) for of in tally_placements(groups)],
        "fill_histogram": fill_histogram(groups, max_split_size).tolist(),
        "locality": Locality(
            host_bytes=at_host,
            rack_bytes=prediction.rack_local_bytes,
            elsewhere_bytes=located_bytes - at_host - prediction.rack_local_bytes,
            unknown_bytes=size_bytes - located_bytes,
        ),
    }
