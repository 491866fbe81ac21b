"""Plans on the wire: what is asked, and the split groups that come back."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from windrow.models.base import (
    Answer,
    ByteSize,
    ColumnName,
    Request,
    Scalar,
    Size,
    TableName,
    Whole,
)
from windrow.models.filters import Filter, FilterTree
from windrow.models.tables import Column, SortColumn, TableFormat


class PlanOptions(Request):
    """How splits are grouped. Sizes are bytes, or text such as `64MB`."""

    strategy: Literal["balanced", "openlookeng", "spark", "iceberg", "tez"] = "balanced"
    max_split_size: ByteSize = 64 * 2**20
    min_split_size: ByteSize | None = Field(
        default=None,
        description="Below this, `tez` (50 MB by default) and `iceberg` (16 MiB) do not make "
        "smaller groups for the sake of parallelism.",
    )
    max_initial_split_size: ByteSize | None = Field(
        default=None,
        description="Where large files are cut for the first splits; 32 MiB by default, or "
        "`max_split_size` if that is less.",
    )
    max_initial_splits: Annotated[int, Whole(0, 1_000_000)] = Field(
        default=0, description="How many splits are the first."
    )
    max_small_splits_grouped: Annotated[int, Whole(1, 10_000_000)] | None = Field(
        default=None,
        description="Most splits in one group; none by default, 10 under `openlookeng`.",
    )
    open_file_cost: Annotated[int, Size(0, 2**40)] | None = Field(
        default=None,
        description="What opening a file costs, in bytes of reading; calibrated by default, "
        "4 MiB under `spark` and `iceberg`.",
    )
    parallelism: Annotated[int, Whole(1, 1_000_000)] = Field(
        default=1, description="Tasks that run at the same time."
    )
    cached_splits: Literal["separate", "by_worker"] = Field(
        default="separate",
        description="`separate`: a cacheable split is never grouped. `by_worker`: those of one "
        "bucket that are cached on the same worker may share a group.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> PlanOptions:
        for name in ("min_split_size", "max_initial_split_size"):
            size = getattr(self, name)
            if size is not None and size > self.max_split_size:
                raise ValueError(
                    f"{name} ({size}) is above max_split_size ({self.max_split_size}): it may be "
                    f"1 to {self.max_split_size}"
                )
        return self


class PlanRequest(Request):
    """A question for split groups."""

    table: TableName
    snapshot_id: Annotated[int, Whole(1, 2**31 - 1)] | None = None
    filter: Filter | None = None
    columns: Annotated[list[ColumnName], Field(max_length=10_000)] | None = Field(
        default=None,
        description="Columns to read, in this order; all if not given. None at all (`[]`) is "
        "enough to count rows: only what residual filters compare is then decoded.",
    )
    limit: Annotated[int, Whole(1, 100_000_000_000)] | None = Field(
        default=None,
        description="How many rows are enough. Once files of which every row matches hold that "
        "many, no other files are planned; the plan may still hold more rows than these.",
    )
    options: PlanOptions = PlanOptions()
    max_staleness: Annotated[int, Whole(0, 31_536_000)] | None = Field(
        default=None,
        description="Seconds. If the table's files were last looked at longer ago, they are "
        "looked at first. Not with `snapshot_id`.",
    )
    reuse: bool = Field(
        default=False,
        description="Take the groups of a plan that was made before for the same request and "
        "snapshot, if there is one. Cache rules, and where workers hold files, are as they were.",
    )
    page_size: Annotated[int, Whole(0, 10_000)] | None = Field(
        default=None,
        description="Groups in the first page, 1,000 if the coordinator is not set up otherwise; "
        "0 leaves them all for later.",
    )


class Split(Answer):
    """A byte range of one data file."""

    path: str
    start: int
    length: int
    size_bytes: int
    mtime_ns: int
    row_count: int
    partition: dict[str, Scalar]


class SplitGroup(Answer):
    """The splits that one task reads."""

    group_id: int
    bucket: int | None
    hosts: list[str]
    cached_on: str | None = Field(
        default=None,
        description="The worker that holds the group's files, or is to keep them once it reads "
        "them; a task that runs elsewhere reads them past its cache.",
    )
    size_bytes: int
    residual_filter: FilterTree | None = Field(
        description="What pruning could not settle and the reader must still apply."
    )
    splits: list[Split]


class PlanSummary(Answer):
    """A plan in figures.

    What is pruned is counted by the step that does it: ranges of whole manifests, then of
    each file its partition values, its statistics, its Bloom filters, and last the limit.
    """

    strategy: str
    files_total: int
    files_planned: int
    files_pruned_by_manifest: int = 0
    files_pruned_by_partition: int
    files_pruned_by_statistics: int
    files_pruned_by_bloom: int = 0
    files_pruned_by_limit: int = 0
    bytes_pruned_by_manifest: int = 0
    bytes_pruned_by_partition: int = 0
    bytes_pruned_by_statistics: int = 0
    bytes_pruned_by_bloom: int = 0
    bytes_pruned_by_limit: int = 0
    size_bytes: int
    row_count: int
    group_count: int
    split_count: int
    largest_group_bytes: int
    smallest_group_bytes: int
    largest_group_splits: int
    groups_with_hosts: int
    cacheable_files: int = Field(default=0, description="That a cache rule marks.")
    cached_files: int = Field(
        default=0, description="Cacheable files that the worker they are read on holds."
    )
    primary_placements: int = Field(
        default=0, description="Cacheable files to be fetched by the first choice of worker."
    )
    secondary_placements: int = Field(
        default=0, description="By the second choice, as the first has enough."
    )
    fallback_placements: int = Field(
        default=0, description="By no worker in particular, and not cached: there is no room."
    )
    delete_files: int = Field(
        default=0, description="Delete files that apply to planned files; a reader must apply them."
    )
    planning_seconds: float


class Plan(Answer):
    """The answer to a plan request, with its first page of groups."""

    plan_id: str
    status: Literal["completed"]
    table: str
    snapshot_id: int
    created_at: datetime
    expires_at: datetime
    location: str
    format: TableFormat = "parquet"
    columns: list[Column] = Field(description="The columns asked for, in that order.")
    hidden_columns: list[Column] = Field(
        description="Columns that residual filters and sort columns need besides those asked for."
    )
    partition_columns: list[Column]
    sort_columns: list[SortColumn]
    filter: FilterTree | None
    limit: int | None = None
    requested_options: PlanOptions | None = Field(
        default=None, description="As they were asked for; null is what the strategy says."
    )
    options: PlanOptions = Field(description="As the plan was made.")
    summary: PlanSummary
    groups: list[SplitGroup]
    next_page_token: str | None


class PlanStatus(Answer):
    """A plan that was submitted and has no groups, since it is still being made, or failed."""

    plan_id: str
    status: Literal["submitted", "failed"]
    table: str
    snapshot_id: int | None = Field(
        default=None, description="Not known before a refresh that `max_staleness` asked for."
    )
    created_at: datetime
    expires_at: datetime
    problem: dict[str, object] | None = Field(
        default=None, description="The RFC 9457 problem that it failed with."
    )


class GroupPage(Answer):
    """One page of a plan's groups."""

    plan_id: str
    groups: list[SplitGroup]
    next_page_token: str | None
