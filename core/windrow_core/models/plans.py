"""Wire models of plans: the request, and the split groups in the answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from windrow_core.kinds.choice import reading_of
from windrow_core.kinds.kind import Reading
from windrow_core.models.base import Answer, ColumnName, Request, Scalar, TableName, Whole
from windrow_core.models.filters import Filter, FilterTree
from windrow_core.models.options import OptionSource, PlanDefaults, PlanOptions
from windrow_core.models.partitions import MAX_PARTITION_RANGES, AddedFiles, PartitionRange
from windrow_core.models.tables import Column, SortColumn, TableFormat, TableVersion
from windrow_core.planning import AloneReason, PlanPhase


class PlanRequest(Request):
    """A request for split groups."""

    table: TableName
    snapshot_id: Annotated[int, Whole(1, 2**31 - 1)] | None = None
    version: TableVersion | None = Field(
        default=None,
        description="Instead of `snapshot_id`: a version of a Delta table, or a snapshot id, "
        "branch or tag of an Iceberg table. A refresh must have made a snapshot of it.",
    )
    filter: Filter | None = None
    partitions: Annotated[list[PartitionRange], Field(max_length=MAX_PARTITION_RANGES)] | None = (
        Field(
            default=None,
            exclude_if=lambda ranges: ranges is None,
            description="Plan only the files of these partitions: ranges `[first, end]` of their "
            "numbers from `first` up to, but without, `end`, ascending and without overlaps. "
            "`list_partition_values` returns the numbers, which are those of one snapshot, so "
            "`snapshot_id` is required. With an empty list, no file is planned.",
        )
    )
    additions: AddedFiles | None = Field(
        default=None,
        exclude_if=lambda files: files is None,
        description="Plan only files that an older snapshot lacks; `snapshot_id` is required.",
    )
    columns: Annotated[list[ColumnName], Field(max_length=10_000)] | None = Field(
        default=None,
        description="Columns to read, in this order; all by default. An empty list is enough to "
        "count rows: only columns of residual filters are then decoded.",
    )
    limit: Annotated[int, Whole(1, 100_000_000_000)] | None = Field(
        default=None,
        description="Number of rows that are enough. Once files in which every row matches hold "
        "that many, no further files are planned. The plan may still hold more rows.",
    )
    accept: Annotated[list[Literal["packs"]], Field(max_length=1)] = Field(
        default=[],
        exclude_if=lambda kinds: not kinds,
        description="What the reader can read in place of a table's own files: `packs`, which hold "
        "the rows of many small ones.",
    )
    options: PlanOptions = PlanOptions()
    session_options: PlanDefaults = Field(
        default=PlanDefaults(),
        description="Options that the caller's session sets for all its reads. They override the "
        "table's `plan_options`, and `options` override them.",
    )
    max_staleness: Annotated[int, Whole(0, 31_536_000)] | None = Field(
        default=None,
        description="Seconds. If the table's last refresh is older, it is refreshed before "
        "planning. It has no effect with `snapshot_id` or `version`.",
    )
    reuse: bool = Field(
        default=False,
        description="Reuse the groups of an earlier plan for the same request and snapshot, if "
        "there is one. They reflect the cache rules and cached files of that time.",
    )
    page_size: Annotated[int, Whole(0, 10_000)] | None = Field(
        default=None,
        description="Number of groups in the first page; 1,000 unless the coordinator is "
        "configured otherwise. With 0, the answer holds no groups; fetch them page by page.",
    )

    @model_validator(mode="after")
    def _one_snapshot(self) -> PlanRequest:
        if self.snapshot_id is not None and self.version is not None:
            raise ValueError("snapshot_id and version both name a snapshot: give one of them")
        return self

    @model_validator(mode="after")
    def _added_to_a_snapshot(self) -> PlanRequest:
        if self.additions is not None and self.snapshot_id is None:
            raise ValueError(
                "added files are those of one snapshot: give its snapshot_id with them"
            )
        return self

    @model_validator(mode="after")
    def _partitions_of_a_snapshot(self) -> PlanRequest:
        if self.partitions is None:
            return self
        if self.snapshot_id is None:
            raise ValueError(
                "partitions are numbers of one snapshot: give its snapshot_id with them"
            )
        last = 0
        for first, end in self.partitions:
            if first >= end:
                raise ValueError(
                    f"partitions has the range [{first}, {end}], which is empty: a range ends after "
                    "the partition it begins with"
                )
            if first < last:
                raise ValueError(
                    f"partitions has the range [{first}, {end}] after one that ends at {last}: sort "
                    "the ranges, and join those that overlap"
                )
            last = end
        return self


class Delete(Answer):
    """A list of deleted rows of a data file of a Delta or Iceberg table."""

    kind: Literal["vector", "positions"] = Field(
        description="`vector`: a bitmap of positions, as Delta and Iceberg serialise it: at "
        "`[offset, offset + length)` of the file, or `inline`. `positions`: one of Iceberg's "
        "Parquet files with paths and positions."
    )
    path: str | None = None
    inline: str | None = Field(default=None, description="The bitmap, as Base64.")
    offset: int | None = None
    length: int | None = None
    size_bytes: int | None = Field(default=None, description="Length of the file.")


class Excerpt(Answer):
    """The parts of a large Parquet file on an object store that a plan needs."""

    outline: int = Field(description="Position among the plan's `outlines`.")
    chunks: list[int] = Field(
        description="For each row group of the split: the number of its rows and, for each leaf of "
        "the outline, the offset of its column chunk, the bytes of the chunk, the bytes of its "
        "dictionary page, and the number of its values."
    )


class PlannedPack(Answer):
    """A pack that holds the rows of some of a plan's files."""

    path: str = Field(description="Where it is: an absolute path, or a URI.")
    size_bytes: int
    row_count: int


class Split(Answer):
    """A byte range of one data file."""

    path: str
    start: int
    length: int
    size_bytes: int
    mtime_ns: int
    etag: str | None = Field(
        default=None, description="ETag of an object when it was listed, without quotes."
    )
    row_count: int | None = Field(default=None, description="Null if not known, as for text.")
    partition: dict[str, Scalar]
    native: bool | None = Field(
        default=None,
        description="Whether Spark's own reader of the format can read the rows of this file in "
        "the plan's columns; null if unknown.",
    )
    grouped: bool | None = Field(
        default=None,
        description="Whether the grouped reader can read them; null means true.",
    )
    first_block: int | None = Field(
        default=None,
        description="The number of the first stripe that a part of an ORC file covers.",
    )
    block_count: int | None = Field(
        default=None,
        description="Number of stripes that it covers; both are null for a whole file.",
    )
    first_row_id: int | None = Field(
        default=None,
        description="For transactional tables: the number of the file's first row among the rows "
        "of its bucket, if its rows have no identities of their own.",
    )
    deletes: list[Delete] | None = Field(
        default=None, description="Lists of deleted rows of the file; null if there are none."
    )

    excerpt: Excerpt | None = Field(
        default=None,
        description="Where the columns that the plan needs lie in the file, so that they can be "
        "read without its footer; null where the file is read as it is.",
    )
    pack: int | None = Field(
        default=None,
        description="Position among the plan's `packs` of one that holds the rows of this file; only "
        "where the request accepts packs. The file itself has the same rows.",
    )
    pack_row: int | None = Field(
        default=None, description="The number of the file's first row in that pack."
    )


class DeleteFile(Answer):
    """A file that names deleted rows of a transactional table."""

    path: str
    size_bytes: int
    mtime_ns: int


class FileField(Answer):
    """How files hold a column, or a field within one, that is not found by its name alone."""

    id: int | None = Field(default=None, description="The field's id in Parquet files.")
    names: list[str] = Field(
        default=[], description="Its names in files; if it has an id, in files without ids."
    )
    default: str | None = Field(
        default=None, description="Its value, as JSON, in rows of files that lack it."
    )
    fields: dict[str, FileField] = Field(
        default={},
        description="The fields within it, by name; `element` of lists, `key` and `value` of maps.",
    )


class SplitGroup(Answer):
    """The splits that one task reads."""

    group_id: int
    bucket: int | None
    hosts: list[str]
    cached_on: str | None = Field(
        default=None,
        description="The worker that holds the group's files, or will cache them when it reads "
        "them. A task that runs elsewhere does not cache them.",
    )
    size_bytes: int
    residual_filter: FilterTree | None = Field(
        description="The part of the filter that pruning could not decide; the reader must apply "
        "it to every row."
    )
    splits: list[Split]
    delete_files: list[DeleteFile] = Field(
        default=[],
        description="Files that name deleted rows of the group's files. Each applies to the files "
        "of its own partition and bucket; it is enough to read it once.",
    )


class FilesInPacks(Answer):
    """How many of a plan's files have their rows read from packs."""

    files: int
    alone: dict[AloneReason, int] = Field(
        description="The others, by reason: they are `in_no_pack`; they are `cut` into parts; so few "
        "rows of their pack are wanted that the files themselves are read sooner (`few_wanted`)."
    )


class PlanSummary(Answer):
    """Figures of a plan.

    Pruned files are counted by the step that removed them: ranges of whole manifests, then the
    partition values, statistics and Bloom filters of each file, and finally the limit.
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
    row_count: int | None = Field(
        default=None, description="Null if the rows of a planned file are not known."
    )
    group_count: int
    split_count: int
    largest_group_bytes: int
    smallest_group_bytes: int
    largest_group_splits: int
    groups_with_hosts: int
    cacheable_files: int = Field(default=0, description="Number of files that a cache rule marks.")
    cached_files: int = Field(
        default=0,
        description="Number of cacheable files already held by the worker that reads them.",
    )
    primary_placements: int = Field(
        default=0,
        description="Number of cacheable files that their first choice of worker will fetch.",
    )
    secondary_placements: int = Field(
        default=0,
        description="Number that the second choice will fetch, since the first has enough.",
    )
    fallback_placements: int = Field(
        default=0,
        description="Number that may be read anywhere and are not cached, for lack of room.",
    )
    delete_files: int = Field(
        default=0,
        description="Number of delete files of the planned files; the reader must apply them.",
    )
    delete_opens: int = Field(
        default=0,
        description="How often delete files are opened if each group opens those of all its splits "
        "once.",
    )
    delete_opens_by_split: int = Field(
        default=0, description="How often they would be opened if each split opened its own."
    )
    in_packs: FilesInPacks | None = Field(
        default=None,
        exclude_if=lambda in_packs: in_packs is None,
        description="Only where the request accepts packs, and the snapshot has some.",
    )
    planning_seconds: float
    phase_seconds: dict[str, float] = Field(
        default={},
        description="Seconds of each phase of planning: "
        + ", ".join(f"`{phase.label}`" for phase in PlanPhase)
        + ".",
    )
    longest_task_seconds: float | None = Field(
        default=None, description="Predicted time of the group with the most work."
    )
    slowest_slot_seconds: float | None = Field(
        default=None,
        description="Predicted time until the last of `parallelism` slots finishes; null for plans "
        "with more than 100,000 groups.",
    )
    all_tasks_seconds: float | None = Field(
        default=None, description="Predicted time of all groups, one after another."
    )


class Plan(Answer):
    """A plan with its first page of groups."""

    plan_id: str
    status: Literal["completed"]
    table: str
    registration: int | None = Field(
        default=None,
        description="Number of the table's registration, which is never used again: a table that "
        "is deleted and registered again under its name has another one, though its snapshots are "
        "numbered from 1 again.",
    )
    snapshot_id: int
    created_at: datetime
    expires_at: datetime
    location: str
    format: TableFormat = Field(default="parquet", description="Format of the files.")
    format_options: dict[str, str] = Field(
        default={}, description="How Spark reads the files, from the table's definition."
    )
    transactional: Literal["full", "insert_only"] | None = Field(
        default=None, description="As in the table's definition."
    )
    valid_write_ids: str | None = Field(
        default=None, description="For transactional tables: see `SnapshotInfo`."
    )
    logged: bool = Field(
        default=False,
        description="Whether the table keeps a log of its files, as Delta and Iceberg do. If so, "
        "no file changes once it is written, and each split has the `deletes` of its file.",
    )
    file_fields: dict[str, FileField] = Field(
        default={},
        description="Columns that have another name in files than in the table, or that are found "
        "by an id.",
    )
    outlines: list[str] = Field(
        default=[],
        description="What the footers of files with an `excerpt` have in common, for the columns "
        "that the plan needs. Each is JSON with `version`, `created_by`, `keys` and `columns`. A "
        "column has its `name`, its part of the `schema`, for each of its `leaves` the beginning "
        "of a chunk's metadata, and its type as `arrow`, a schema of one field, or null. `schema` "
        "and `leaves` are in Thrift's compact protocol; they and `arrow` are in Base64.",
    )
    packs: list[PlannedPack] = Field(
        default=[],
        exclude_if=lambda packs: not packs,
        description="Packs that hold the rows of some of the files.",
    )
    columns: list[Column] = Field(description="The requested columns, in that order.")
    hidden_columns: list[Column] = Field(
        description="Further columns that the residual filters and the sort order need."
    )
    partition_columns: list[Column]
    local_times: list[str] = Field(
        default=[],
        description="Partition columns of type `timestamp_ntz` that Spark reads as `timestamp`, in "
        "the time zone of each session: folders have no offset, and the type is inferred, or "
        "declared as `timestamp`.",
    )
    sort_columns: list[SortColumn]
    filter: FilterTree | None
    limit: int | None = None
    requested_options: PlanOptions | None = Field(
        default=None,
        description="The options of the request, its session and the table; null means the "
        "strategy's default.",
    )
    options: PlanOptions = Field(description="The options that the plan was made with.")
    option_sources: dict[str, OptionSource] = Field(
        default={}, description="Where the value of each option comes from."
    )
    summary: PlanSummary
    groups: list[SplitGroup]
    next_page_token: str | None

    @property
    def reading(self) -> Reading:
        """How the files are read."""
        return reading_of(self.format, self.transactional, is_logged=self.logged)


class PlanStatus(Answer):
    """A plan without groups: it is still being made, or failed."""

    plan_id: str
    status: Literal["submitted", "failed"]
    table: str
    snapshot_id: int | None = Field(
        default=None, description="Null until the refresh for `max_staleness` has ended."
    )
    created_at: datetime
    expires_at: datetime
    problem: dict[str, object] | None = Field(
        default=None, description="The RFC 9457 problem that the plan failed with."
    )


class GroupPage(Answer):
    """One page of a plan's groups."""

    plan_id: str
    groups: list[SplitGroup]
    next_page_token: str | None
