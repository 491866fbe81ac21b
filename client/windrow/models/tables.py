"""Tables, their snapshots and refreshes on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from windrow.models.base import Answer, ColumnName, Request, Whole

TableFormat: TypeAlias = Literal["parquet", "orc", "csv", "json", "text"]


class Column(Request):
    """A column: its name and its type as Spark SQL writes it, for example `decimal(10,2)`."""

    name: ColumnName
    type: Annotated[str, StringConstraints(min_length=1, max_length=65_536)]


class BucketSpec(Request):
    """How rows were spread over buckets when the table was written."""

    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=64)]
    count: Annotated[int, Whole(1, 1_000_000)]


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
    format: TableFormat = Field(
        default="parquet",
        description="Of files whose suffix does not say. `json` is one document per line. What "
        "is not Parquet is planned from a published inventory; only Parquet is refreshed and "
        "read.",
    )
    columns: Annotated[list[Column], Field(max_length=10_000)] | None = None
    partition_columns: Annotated[list[Column], Field(max_length=64)] | None = None
    bucket_spec: BucketSpec | None = None
    sort_columns: list[SortColumn] = Field(default=[], max_length=64)
    bloom_columns: list[ColumnName] = Field(
        default=[],
        max_length=16,
        description="Columns that a refresh builds Bloom filters for, of each file; `=` and `IN` "
        "on them then prune files whose least and greatest values do not.",
    )


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
    folders_unchanged: int = Field(
        default=0, description="Folders that were not listed, as they hold what they held."
    )
    files_found: int = 0
    files_empty: int = Field(
        default=0, description="Files of 0 bytes, which are passed over, as Spark does."
    )
    files_uncommitted: int = Field(
        default=0,
        description="Files that the log of a Spark streaming query (`_spark_metadata`) does not "
        "name, which are passed over, as Spark does.",
    )
    footers_read: int = 0
    footers_total: int = 0


class RefreshStatus(Answer):
    """A refresh of one table: running, done, failed or cancelled.

    One whose coordinator has died is `failed`, with the problem `refresh-abandoned`.
    """

    refresh_id: str
    table: str
    status: Literal["running", "done", "failed", "cancelled"]
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
        default=None, description="The RFC 9457 problem that ended a refresh which is not done."
    )
