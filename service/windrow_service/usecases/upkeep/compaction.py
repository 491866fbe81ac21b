"""Find the partitions of a table that are worth compacting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.cards import count_text, seconds_text
from windrow_core.models import (
    CompactionPartitions,
    CompactionPlan,
    CompactionRequest,
    CompactionTotals,
    LeftAlone,
    LeftAloneReason,
    TableInfo,
)
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.reading import read_filter
from windrow_service.planner.caching.cacheable import MarkingRule
from windrow_service.planner.folders import numbered_folders
from windrow_service.planner.maintenance.corrections import PIECE_SECONDS
from windrow_service.planner.pruning.expressions import Expression
from windrow_service.planner.splits import NO_BUCKET, Bools, Ints
from windrow_service.planner.upkeep.compaction import (
    CHOSEN,
    VERDICTS,
    Candidates,
    CompactionPolicy,
    find_candidates,
    page_of,
)
from windrow_service.planner.upkeep.value_folders import Homes
from windrow_service.telemetry.meters import UNMEASURED, Meters
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import (
    ManifestReader,
    SnapshotScan,
    columns_beside_partitions,
    types_of,
)
from windrow_service.usecases.tables.columns import wire_columns
from windrow_service.usecases.tables.errors import unsupported
from windrow_service.usecases.upkeep.errors import (
    FormatNotCompactableError,
    InvalidCompactionError,
)

# Figures of partitions that the answer has for each, and their sums.
_FIGURES = (
    "files",
    "size_bytes",
    "rows",
    "becomes_bytes",
    "becomes",
    "cost_seconds",
    "gain_seconds",
)
# One answer lists the paths of all these files.
MAX_BATCH_FILES = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCompaction:
    """Judge a table's partitions by the cost of their small files, and list a batch of them."""

    snapshots: SnapshotStore
    manifests: ManifestReader
    filter_limits: FilterLimits
    meters: Meters = UNMEASURED

    async def __call__(self, name: str, request: CompactionRequest) -> CompactionPlan:
        """Return one page of the partitions that are worth compacting, and figures for all.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The table does not have that snapshot, or no longer has it.
            TransactionalTableError: Hive compacts the table.
            LoggedTableError: The table's own engine compacts it.
            FormatNotCompactableError: The table's files are not Parquet.
            InvalidFilterError: The filter cannot be read, or names an unknown column.
            InvalidCompactionError: The filter names a column that is not a partition column.
            BusyError: Too much is waiting already.
        """
        table, snapshot = await self.snapshots.get(name, request.snapshot_id)
        require_compactable(table.info)
        definition = table.info.definition
        is_bucketed = definition.bucket_spec is not None
        # The catalog would still know of the folders that were left.
        joins = table.info.partition_count is None
        plan = await self.manifests.scan(
            name,
            snapshot,
            lambda: self._expression(request, snapshot),
            lambda scan, files: _planned(name, scan, files, request, is_bucketed, joins),
        )
        self.meters.compaction_planned()
        return plan

    def _expression(self, request: CompactionRequest, snapshot: Snapshot) -> Expression | None:
        if request.filter is None:
            return None
        expression = read_filter(request.filter, types_of(snapshot), self.filter_limits)
        others = columns_beside_partitions(expression, snapshot)
        if others:
            raise InvalidCompactionError(
                f"{', '.join(map(repr, others))} cannot choose what to compact, since partitions "
                f"are compacted whole: use partition columns, which are "
                f"{', '.join(snapshot.partition_schema.names) or 'missing in this table'}"
            )
        return expression


def require_compactable(table: TableInfo) -> None:
    """Make sure that a table can be compacted here.

    Raises:
        TransactionalTableError: Hive compacts the table.
        LoggedTableError: The table's own engine compacts it.
        FormatNotCompactableError: The table's files are not Parquet.
    """
    name, definition = table.name, table.definition
    kind = definition.kind
    if kind.compacting is not None:
        raise unsupported(table, "compaction here", kind.compacting)
    if not kind.files.is_written:
        raise FormatNotCompactableError(name, definition.format)


def _planned(
    name: str,
    scan: SnapshotScan,
    files: pa.Table,
    request: CompactionRequest,
    is_bucketed: bool,
    joins: bool,
) -> CompactionPlan:
    if scan.expression is not None:
        files = files.filter(pa.array(MarkingRule(scan.expression).marks(files)))
    if request.folders is not None:
        files = files.filter(
            pc.is_in(_homes(scan, files, joins), pa.array(request.folders, pa.string()))
        )
    policy = CompactionPolicy(
        target_bytes=request.target_file_size,
        min_files=request.min_files,
        min_small_ratio=request.min_small_ratio,
        worth_reads=request.worth_reads,
        max_bytes=request.max_batch_bytes,
        max_files=MAX_BATCH_FILES,
        below_bytes=request.small_file_size,
    )
    partition = scan.snapshot.partition_schema
    candidates = find_candidates(
        files,
        partition,
        joins=joins,
        columns=len(scan.snapshot.data_schema),
        is_bucketed=is_bucketed,
        policy=policy,
    )
    page = page_of(candidates, request.offset, max_candidates=request.max_partitions, policy=policy)
    end = request.offset + len(page)
    return CompactionPlan(
        table=name,
        snapshot_id=scan.snapshot.info.snapshot_id,
        target_file_bytes=policy.target_bytes,
        small_file_bytes=policy.small_bytes,
        file_count=len(files),
        partition_columns=wire_columns(partition),
        totals=_totals(candidates),
        left_alone=_left_alone(candidates, request),
        partitions=_columns(files, candidates, page, with_paths=request.with_paths),
        next_offset=end if end < len(candidates.chosen) else None,
    )


def _homes(scan: SnapshotScan, files: pa.Table, joins: bool) -> pa.Array:
    """Return the folder that each file is compacted into."""
    coded = numbered_folders(files)
    if not joins:
        return coded.dictionary_decode()
    homes = Homes.of(files, scan.snapshot.partition_schema)
    folder = coded.indices.to_numpy(zero_copy_only=False)
    return homes.names.take(pa.array(homes.of_folder[folder]))


def _totals(candidates: Candidates) -> CompactionTotals:
    choice = candidates.chosen
    sums = {name: getattr(candidates, name)[choice].sum().item() for name in _FIGURES}
    if len(choice):
        sums["cost_seconds"] += PIECE_SECONDS
    return CompactionTotals(partitions=len(choice), **sums)


def _columns(
    files: pa.Table, candidates: Candidates, page: Ints, *, with_paths: bool
) -> CompactionPartitions:
    paths = files["path"].take(pa.array(candidates.rows_of(page))) if with_paths else None
    return CompactionPartitions(
        folders=candidates.folders.take(pa.array(page)).to_pylist(),
        buckets=[None if one == NO_BUCKET else one for one in candidates.bucket[page].tolist()],
        all_files=candidates.all_files[page].tolist(),
        paths=None if paths is None else paths.to_pylist(),
        **{name: getattr(candidates, name)[page].tolist() for name in _FIGURES},
    )


def _left_alone(candidates: Candidates, request: CompactionRequest) -> list[LeftAlone]:
    explanations = _explanations(request)
    entries = []
    for number, reason in enumerate(VERDICTS):
        at = candidates.verdict == number
        if number != CHOSEN and reason != "chosen" and at.any():
            entries.append(
                LeftAlone(
                    reason=reason,
                    explanation=explanations[reason]
                    + (
                        _gain_of_fewer(candidates, at & candidates.pays)
                        if reason == "few_files"
                        else ""
                    ),
                    partitions=int(np.count_nonzero(at)),
                    files=int(candidates.files[at].sum()),
                    size_bytes=int(candidates.size_bytes[at].sum()),
                )
            )
    return entries


def _gain_of_fewer(candidates: Candidates, at: Bools) -> str:
    """Return, as text, what a lower `min_files` would gain, if anything."""
    if not at.any():
        return ""
    return (
        f"; with min_files={int(candidates.files[at].min())}, {int(candidates.files[at].sum()):,} of them "
        f"would become {int(candidates.becomes[at].sum()):,} for "
        f"{seconds_text(float(candidates.cost_seconds[at].sum()))} of one core, and each read of them "
        f"would save {seconds_text(float(candidates.gain_seconds[at].sum()))}"
    )


def _explanations(request: CompactionRequest) -> dict[LeftAloneReason, str]:
    return {
        "deletes": "delete files apply here, and must be applied first by the program that made "
        "them",
        "layout": "the rows, written by Spark, would go to another folder",
        "no_bucket": "some files have no known bucket, though the table is bucketed",
        "large_files": "no small files",
        "few_files": f"fewer than {request.min_files:,} small files",
        "small_ratio": f"less than {request.min_small_ratio:.0%} of the files are small",
        "no_rows": "the small files hold no rows",
        "not_worth": f"it would take more than {count_text(request.worth_reads, 'read')} to pay "
        "off (worth_reads)",
    }
