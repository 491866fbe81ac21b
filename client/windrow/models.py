"""The wire models: what travels between client and coordinator, as JSON.

They stand once, here; the service imports this module and nothing else of the client.
Requests refuse unknown fields. Sizes are bytes unless a name says otherwise.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
)

from windrow.sizes import parse_size

TABLE_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,127}){0,2}$"

ByteSize = Annotated[int, BeforeValidator(parse_size), Field(ge=1, le=2**50)]
TableName = Annotated[str, StringConstraints(pattern=TABLE_NAME_PATTERN, max_length=256)]
ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Scalar = bool | int | float | str | None


class Request(BaseModel):
    """Base of what a caller sends: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(BaseModel):
    """Base of what the coordinator answers; a reader ignores fields it does not know."""

    model_config = ConfigDict(frozen=True)


# --- filters ----------------------------------------------------------------


class Comparison(Request):
    """`column op value`, for example `amount > 5`."""

    op: Literal["eq", "ne", "lt", "le", "gt", "ge"]
    column: ColumnName
    value: Scalar


class In(Request):
    """`column IN (values)`."""

    op: Literal["in"]
    column: ColumnName
    values: Annotated[list[Scalar], Field(min_length=1, max_length=10_000)]


class Between(Request):
    """`column BETWEEN low AND high`, both ends inclusive."""

    op: Literal["between"]
    column: ColumnName
    low: Scalar
    high: Scalar


class IsNull(Request):
    """`column IS NULL` or `column IS NOT NULL`."""

    op: Literal["is_null", "is_not_null"]
    column: ColumnName


class StartsWith(Request):
    """`column LIKE 'prefix%'`."""

    op: Literal["starts_with"]
    column: ColumnName
    prefix: str


class Not(Request):
    """`NOT arg`."""

    op: Literal["not"]
    arg: FilterTree


class Junction(Request):
    """`args` joined by AND or by OR."""

    op: Literal["and", "or"]
    args: Annotated[list[FilterTree], Field(min_length=1, max_length=10_000)]


FilterTree = Annotated[
    Comparison | In | Between | IsNull | StartsWith | Not | Junction, Field(discriminator="op")
]

# The discriminator keeps what is wrong with a tree free of "it is no text either".
Filter = Annotated[
    Annotated[str, StringConstraints(max_length=65_536), Tag("text")]
    | Annotated[FilterTree, Tag("tree")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "tree"),
]


# --- tables -----------------------------------------------------------------


class Column(Request):
    """A column: its name and its type as Spark SQL writes it, for example `decimal(10,2)`."""

    name: ColumnName
    type: Annotated[str, StringConstraints(min_length=1, max_length=65_536)]


class BucketSpec(Request):
    """How rows were spread over buckets when the table was written."""

    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=64)]
    count: Annotated[int, Field(ge=1, le=1_000_000)]


class SortColumn(Request):
    """One column that every file is sorted by.

    `nulls_first` left out means what Spark does: first when ascending, last when descending.
    """

    name: ColumnName
    descending: bool = False
    nulls_first: bool | None = None


class TableDefinition(Request):
    """What a caller says of a table when it registers it.

    `schema` and `partition_columns` left out are taken from the files and the folders.
    """

    location: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    format: Literal["parquet"] = "parquet"
    columns: Annotated[list[Column], Field(max_length=10_000)] | None = None
    partition_columns: Annotated[list[Column], Field(max_length=64)] | None = None
    bucket_spec: BucketSpec | None = None
    sort_columns: Annotated[list[SortColumn], Field(max_length=64)] = []


class SnapshotInfo(Answer):
    """One immutable version of a table."""

    snapshot_id: int
    created_at: datetime
    file_count: int
    row_count: int
    size_bytes: int
    manifest_count: int
    columns: list[Column]
    partition_columns: list[Column]


class TableInfo(Answer):
    """A registered table and its current snapshot, if it has one."""

    name: str
    definition: TableDefinition
    created_at: datetime
    updated_at: datetime
    current_snapshot: SnapshotInfo | None = None


class TablePage(Answer):
    """One page of the registered tables, by name."""

    tables: list[TableInfo]
    next_page_token: str | None = None


class SnapshotPage(Answer):
    """One page of a table's snapshots, newest first."""

    snapshots: list[SnapshotInfo]
    next_page_token: str | None = None


class RefreshProgress(Answer):
    """How far a refresh is."""

    phase: Literal["listing", "reading footers", "publishing", "done"]
    folders_listed: int = 0
    files_found: int = 0
    footers_read: int = 0
    footers_total: int = 0


class RefreshStatus(Answer):
    """A refresh of one table: running, done or failed."""

    table: str
    status: Literal["running", "done", "failed"]
    started_at: datetime
    seconds: float
    progress: RefreshProgress
    changed: bool | None = Field(
        default=None, description="Whether a new snapshot was made; null while it runs."
    )
    files_added: int = 0
    files_removed: int = 0
    manifests_reused: int = 0
    snapshot: SnapshotInfo | None = None
    problem: dict[str, object] | None = Field(
        default=None, description="The RFC 9457 problem that ended a failed refresh."
    )


# --- plans ------------------------------------------------------------------


class PlanOptions(Request):
    """How splits are grouped. Sizes are bytes, or text such as `64MB`."""

    strategy: Literal["balanced", "openlookeng"] = "balanced"
    max_split_size: ByteSize = 64 * 2**20
    max_small_splits_grouped: Annotated[int, Field(ge=1, le=10_000_000)] | None = Field(
        default=None,
        description="Most splits in one group; none by default, 10 under `openlookeng`.",
    )
    open_file_cost: Annotated[int, BeforeValidator(parse_size), Field(ge=0, le=2**40)] | None = (
        Field(
            default=None,
            description="What opening a file costs, in bytes of reading; calibrated by default.",
        )
    )
    parallelism: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1, description="Tasks that run at the same time."
    )


class PlanRequest(Request):
    """A question for split groups."""

    table: TableName
    snapshot_id: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    filter: Filter | None = None
    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=10_000)] | None = None
    options: PlanOptions = PlanOptions()
    page_size: Annotated[int, Field(ge=0, le=10_000)] | None = Field(
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
    size_bytes: int
    residual_filter: FilterTree | None = Field(
        description="What pruning could not settle and the reader must still apply."
    )
    splits: list[Split]


class PlanSummary(Answer):
    """A plan in figures."""

    strategy: str
    files_total: int
    files_planned: int
    files_pruned_by_partition: int
    files_pruned_by_statistics: int
    size_bytes: int
    row_count: int
    group_count: int
    split_count: int
    largest_group_bytes: int
    smallest_group_bytes: int
    largest_group_splits: int
    groups_with_hosts: int
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
    columns: list[Column] = Field(description="The columns asked for, in that order.")
    hidden_columns: list[Column] = Field(
        description="Columns that residual filters and sort columns need besides those asked for."
    )
    partition_columns: list[Column]
    sort_columns: list[SortColumn]
    filter: FilterTree | None
    options: PlanOptions
    summary: PlanSummary
    groups: list[SplitGroup]
    next_page_token: str | None


class GroupPage(Answer):
    """One page of a plan's groups."""

    plan_id: str
    groups: list[SplitGroup]
    next_page_token: str | None


# --- service ----------------------------------------------------------------


class Limits(Answer):
    """What the coordinator enforces."""

    max_body_bytes: int
    max_filter_nodes: int
    max_filter_depth: int
    max_plan_files: int
    max_page_groups: int
    default_page_groups: int
    max_page_splits: int
    plan_ttl_seconds: int


class ServiceConfig(Answer):
    """How this coordinator is set up, as far as callers need to know."""

    version: str
    strategies: list[str]
    defaults: PlanOptions
    limits: Limits
    allowed_locations: list[str]


class Health(Answer):
    """A health check's answer."""

    status: Literal["ok"]


class Problem(BaseModel):
    """An RFC 9457 problem. `type` is stable and is what a program branches on."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


Not.model_rebuild()
Junction.model_rebuild()
