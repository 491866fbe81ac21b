"""Draft a plan: the groups of a table's surviving files, and figures about them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow_core.files.formats import begins_at_any_line
from windrow_core.files.places import place_of
from windrow_core.models import (
    Column,
    FileField,
    PlanRequest,
    PlanSummary,
    SortColumn,
    TableDefinition,
)
from windrow_core.models.plans import FilesInPacks, PlannedPack
from windrow_core.planning import PlanPhase
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.names import TableColumns
from windrow_service.filters.reading import read_filter
from windrow_service.filters.tree import to_tree
from windrow_service.planner.caching.cached import FALLBACK, HELD, PRIMARY, SECONDARY
from windrow_service.planner.caching.workers import Caching
from windrow_service.planner.packing.excerpts import excerpts_of
from windrow_service.planner.packs import PackedSplits, packed_splits
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, Policy
from windrow_service.planner.predict import predict_times
from windrow_service.planner.pruning.expressions import Expression, columns_of
from windrow_service.planner.splits import Bools
from windrow_service.telemetry.meters import UNMEASURED, Meters
from windrow_service.telemetry.spans import UNTRACED, Phase, Spans
from windrow_service.usecases.caches.table_caching import TableCaching
from windrow_service.usecases.packs.coverage import TablePacks, UsablePacks
from windrow_service.usecases.plans.choices import FileChooser
from windrow_service.usecases.plans.errors import InvalidColumnsError
from windrow_service.usecases.plans.options import SettledOptions, policy_of, settle
from windrow_service.usecases.plans.ports import GroupCodec, PlanBody
from windrow_service.usecases.ports import Checkpoint, Runner
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.snapshots.scans import ManifestReader, SnapshotScan, types_of
from windrow_service.usecases.tables.columns import default_fields, file_fields, wire_columns
from windrow_service.usecases.tables.ports import StoredTable

# Above this, times are not predicted: that deals groups to slots one by one, in Python.
_PREDICTED_GROUPS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan without its name and times.

    The groups themselves are not in it: even counting or freeing them takes 0.1 s for a million
    files, too long for the event loop.

    Attributes:
        summary: The plan in figures.
        body: Its groups, encoded.
        columns: The requested columns.
        hidden_columns: Further columns that residual filters and sort columns need.
        sort_columns: The table's sort columns, spelled as in `columns`.
        file_fields: How files hold the columns that are not found by name alone.
        outlines: Outlines of the files that are read by ranges.
        packs: Packs that hold the rows of some of the files.
        filter: The filter as a JSON tree; `Plan` makes nodes of it.
        options: The options that the plan was made with.
    """

    summary: PlanSummary
    body: PlanBody
    columns: list[Column]
    hidden_columns: list[Column]
    sort_columns: list[SortColumn]
    file_fields: dict[str, FileField]
    outlines: list[str]
    packs: list[PlannedPack]
    filter: Any
    options: SettledOptions


class _Phases:
    """The finished phases of making a plan."""

    def __init__(self, check: Checkpoint) -> None:
        self.past: list[Phase] = []
        self._check = check
        self._phase, self._since = PlanPhase.MANIFESTS, time.perf_counter()

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds that each phase took, by name."""
        return {phase.name: phase.ended_s - phase.began_s for phase in self.past}

    def begin(self, phase: PlanPhase) -> None:
        """End the current phase, and begin another."""
        self._check()
        self.end()
        self._phase = phase

    def end(self) -> None:
        """End the current phase."""
        now = time.perf_counter()
        self.past.append(Phase(self._phase.label, self._since, now))
        self._since = now


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPlan:
    """Draft plans of snapshots, off the event loop."""

    manifests: ManifestReader
    choose: FileChooser
    caching: TableCaching
    packs: TablePacks
    codec: GroupCodec
    runner: Runner
    filter_limits: FilterLimits
    max_plan_files: int
    meters: Meters = UNMEASURED
    spans: Spans = UNTRACED

    async def check_request(self, snapshot: Snapshot, request: PlanRequest) -> None:
        """Refuse a request whose filter or partitions cannot be planned."""
        await self.runner.run(lambda: self._expression(snapshot, request))
        await self.choose(snapshot, request)

    async def __call__(
        self, table: StoredTable, snapshot: Snapshot, request: PlanRequest, check: Checkpoint
    ) -> tuple[Draft, Mapping[str, float]]:
        """Return a draft, and how many seconds each phase took; `check` is called between steps.

        Raises:
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            InvalidFilterError: The filter cannot be planned.
            InvalidPartitionsError: The snapshot has no such partition.
            InvalidColumnsError: A requested column does not exist.
            PlanTooLargeError: More files survive than a plan may hold.
            PlanCancelledError: Nobody wants the plan any more.
            BusyError: Too much is being planned already.
        """
        phases = _Phases(check)
        try:
            caching = await self.caching(table, snapshot)
            choice = await self.choose(snapshot, request, check)
            # Few files are enough for a limit.
            packs = (
                await self.packs(table, snapshot)
                if request.accept and request.limit is None
                else None
            )
            draft = await self.manifests.scan(
                request.table,
                snapshot,
                lambda: self._expression(snapshot, request),
                lambda scan, files: draft_plan(
                    table.info.definition,
                    scan,
                    files,
                    caching,
                    packs,
                    request,
                    max_files=self.max_plan_files,
                    codec=self.codec,
                    check=check,
                    begin=phases.begin,
                ),
                choice=choice,
                bloom=True,
                # A split that reads all columns has no excerpt.
                excerpts=place_of(table.info.definition.location).has_excerpts
                and request.columns is not None,
                check=check,
            )
        finally:
            phases.end()
            self.spans.phases("plan", phases.past)
        seconds = phases.seconds
        self.meters.plan(draft.summary, seconds)
        return draft, seconds

    def _expression(self, snapshot: Snapshot, request: PlanRequest) -> Expression | None:
        if request.filter is None:
            return None
        return read_filter(request.filter, types_of(snapshot), self.filter_limits)


def draft_plan(
    definition: TableDefinition,
    scan: SnapshotScan,
    files: pa.Table,
    caching: Caching,
    packs: UsablePacks | None,
    request: PlanRequest,
    *,
    max_files: int,
    codec: GroupCodec,
    check: Checkpoint,
    begin: Callable[[PlanPhase], None],
) -> Draft:
    """Plan how to read the files of a scan. CPU-heavy: call it off the event loop."""
    types, expression = types_of(scan.snapshot), scan.expression
    columns = list(types) if request.columns is None else _columns(request.columns, types)
    # Rows without columns have no order.
    sort_columns = definition.sort_columns if columns else ()
    sort_names = _columns([column.name for column in sort_columns], types)
    resolution = settle(request, definition)
    policy = policy_of(resolution.options, max_files)
    if resolution.suits_caches:
        policy = replace(policy, cached_splits=None)
    fields = _file_fields(definition, scan, columns)
    reading = definition.kind.reading
    groups = plan_groups(
        files,
        expression,
        policy,
        caching.of,
        columns=columns,
        limit=_limit(definition, scan.snapshot, request),
        delete_files=scan.snapshot.delete_files,
        by_manifest=scan.others,
        file_format=reading.files,
        # Where only Spark's own reader reads the files, it knows the defaults from the session.
        mapped=bool(fields) and reading.files.is_grouped,
        any_line=begins_at_any_line(definition.format_options),
        begin=begin,
    )
    begin(PlanPhase.ENCODE)
    dependencies = {name for left in groups.residual_filters if left for name in columns_of(left)}
    dependencies.update(sort_names)
    hidden_names = [name for name in types if name in dependencies and name not in columns]
    if reading.files.has_excerpts:
        excerpts = excerpts_of(groups.files, groups.splits, [*columns, *hidden_names])
        groups = replace(groups, excerpts=excerpts)
    figures: dict[str, Any] = _predicted(groups, resolution, policy)
    if packs is not None:
        in_packs = _in_packs(packs, groups)
        figures["in_packs"] = FilesInPacks(files=in_packs.file_count, alone=in_packs.alone)
        if in_packs.file_count:
            groups = replace(groups, in_packs=in_packs)
    return Draft(
        summary=_summary(groups, policy).model_copy(update=figures),
        body=codec.encode(groups, check),
        columns=wire_columns(pa.schema([(name, types[name]) for name in columns])),
        hidden_columns=wire_columns(pa.schema([(name, types[name]) for name in hidden_names])),
        sort_columns=[
            column.model_copy(update={"name": name})
            for column, name in zip(sort_columns, sort_names, strict=True)
        ],
        file_fields=fields,
        outlines=list(groups.excerpts.outlines) if groups.excerpts is not None else [],
        packs=_planned_packs(packs, groups),
        filter=to_tree(expression) if expression is not None else None,
        options=resolution.dividing(groups.cached_splits),
    )


def _in_packs(packs: UsablePacks, groups: GroupedSplits) -> PackedSplits:
    splits = groups.splits
    sizes = np.asarray(groups.files["size_bytes"])[splits.file]
    return packed_splits(packs.coverage, groups.files, splits.file, splits.length == sizes)


def _planned_packs(packs: UsablePacks | None, groups: GroupedSplits) -> list[PlannedPack]:
    if packs is None or groups.in_packs is None:
        return []
    pack_ids = [packs.coverage.packs[at].pack_id for at in groups.in_packs.packs.tolist()]
    return [
        PlannedPack(path=one.path, size_bytes=one.size_bytes, row_count=one.row_count)
        for one in (packs.packs[pack_id] for pack_id in pack_ids)
    ]


def _file_fields(
    definition: TableDefinition, scan: SnapshotScan, columns: Sequence[str]
) -> dict[str, FileField]:
    """Return how files hold those of the columns read that are not found by name alone."""
    filter_columns = columns_of(scan.expression) if scan.expression is not None else ()
    names = [*columns, *filter_columns]
    if definition.kind.states_columns:
        return file_fields(scan.snapshot.data_schema, names)
    return default_fields(scan.snapshot.data_schema, names)


def _limit(definition: TableDefinition, snapshot: Snapshot, request: PlanRequest) -> int | None:
    """Return how many rows are enough; None if files may hold rows that readers must not see."""
    names_rows = definition.kind.reading.names_rows
    holds_unseen = names_rows and snapshot.info.valid_write_ids is not None
    return None if holds_unseen else request.limit


def _columns(names: Sequence[str], types: dict[str, pa.DataType]) -> list[str]:
    """Resolve names of columns: exactly if possible, else ignoring case."""
    resolver = TableColumns(types)
    columns: list[str] = []
    for name in names:
        column = resolver.find(name)
        if column is None:
            raise InvalidColumnsError(resolver.why_none(name))
        if column in columns:
            raise InvalidColumnsError(f"column {name!r} is asked for twice: name it once")
        columns.append(column)
    return columns


def _summary(groups: GroupedSplits, policy: Policy) -> PlanSummary:
    # np.unique would hold the interpreter's lock for 0.1 s if there are many splits.
    mask = np.zeros(len(groups.files), np.bool_)
    mask[groups.splits.file] = True
    counts = np.diff(groups.offsets)
    rows = groups.files["row_count"].filter(pa.array(mask))
    by_step = groups.pruning.pruned
    by_pruning: dict[str, Any] = {
        **{f"files_pruned_by_{step}": by.files for step, by in by_step.items()},
        **{f"bytes_pruned_by_{step}": by.size_bytes for step, by in by_step.items()},
    }
    return PlanSummary(
        strategy=policy.strategy,
        files_total=len(groups.files) + by_step["manifest"].files,
        files_planned=int(np.count_nonzero(mask)),
        **by_pruning,
        size_bytes=int(groups.splits.length.sum()),
        row_count=None if rows.null_count else int(rows.to_numpy().sum()),
        group_count=len(groups),
        split_count=len(groups.splits),
        largest_group_bytes=int(groups.size_bytes.max(initial=0)),
        smallest_group_bytes=int(groups.size_bytes.min()) if len(groups) else 0,
        largest_group_splits=int(counts.max(initial=0)),
        **_placements(groups, mask),
        delete_files=int(groups.files["delete_count"].to_numpy()[mask].sum()),
        delete_opens=len(groups.deletes.rows) if groups.deletes else 0,
        delete_opens_by_split=int(groups.splits.deletes.count.sum())
        if groups.splits.deletes is not None
        else 0,
        groups_with_hosts=int(np.count_nonzero(np.diff(groups.host_offsets))),
        planning_seconds=0.0,
        phase_seconds={},
    )


def _predicted(
    groups: GroupedSplits, resolution: SettledOptions, policy: Policy
) -> dict[str, float]:
    if len(groups) > _PREDICTED_GROUPS:
        return {}
    # Opening a file costs readers the same, whichever strategy made their groups.
    cost = resolution.explicit.open_file_cost
    reader = replace(policy, open_file_cost=DEFAULT_OPEN_FILE_COST if cost is None else cost)
    times = predict_times(groups, reader)
    return {name: round(seconds, 6) for name, seconds in asdict(times).items()}


def _placements(groups: GroupedSplits, mask: Bools) -> dict[str, Any]:
    cacheable = groups.cached.cacheable & mask
    counts = np.bincount(groups.cached.choice[cacheable], minlength=FALLBACK + 1).tolist()
    return {
        "cacheable_files": sum(counts),
        "cached_files": counts[HELD],
        "primary_placements": counts[PRIMARY],
        "secondary_placements": counts[SECONDARY],
        "fallback_placements": counts[FALLBACK],
    }
