"""Wire models of tables, their snapshots and refreshes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from windrow.models.base import Answer, ColumnName, Request, Whole
from windrow.models.format_options import MAX_OPTIONS, checked_format_options
from windrow.models.options import PlanDefaults

# Given in place of valid write ids, for whatever is on disk.
ON_DISK = "on-disk"

TableFormat: TypeAlias = Literal[
    "parquet", "orc", "avro", "csv", "json", "text", "delta", "iceberg"
]


TableVersion: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Column(Request):
    """A column: its name and its type as Spark SQL writes it, for example `decimal(10,2)`."""

    name: ColumnName
    type: Annotated[str, StringConstraints(min_length=1, max_length=65_536)]


class BucketSpec(Request):
    """How the table's rows are divided into buckets."""

    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=64)]
    count: Annotated[int, Whole(1, 1_000_000)]


class SortColumn(Request):
    """One column that every file is sorted by.

    Without `nulls_first`, nulls are placed as in Spark: first when ascending, last when descending.
    """

    name: ColumnName
    descending: bool = False
    nulls_first: bool | None = None


class TableDefinition(Request):
    """The definition of a table, as registered.

    By default, `columns` are taken from the files, and `partition_columns` from the folders.
    """

    location: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    format: TableFormat = Field(
        default="parquet",
        description="Format of the files, whatever their suffix. `json` means one document per line. "
        "`delta` and `iceberg` are tables of Parquet files whose log tells which files they have, "
        "and their columns.",
    )
    format_options: dict[str, str] = Field(
        default={},
        max_length=MAX_OPTIONS,
        description="How Spark reads the files, by Spark's names of options: for example "
        "`header`, `sep` and `mode` of `csv`. Options about which files there are, about inferring "
        "columns and about writing are refused. What is left out is as in Spark. Tables of `text` in "
        "Hive have `serde` and its properties.",
    )
    transactional: Literal["full", "insert_only"] | None = Field(
        default=None,
        description="For tables that Hive keeps as transactional (ACID): `full` if single rows can "
        "be updated and deleted, which only tables of ORC can be; `insert_only` otherwise. Their "
        "inventory comes from refreshes alone.",
    )
    columns: Annotated[list[Column], Field(max_length=10_000)] | None = None
    partition_columns: Annotated[list[Column], Field(max_length=64)] | None = None
    listed_partitions: bool = Field(
        default=False,
        description="Whether only a list that a catalog gives (`PUT /tables/{name}/partitions`) says "
        "which partitions there are; until there is one, a refresh is refused.",
    )
    bucket_spec: BucketSpec | None = None
    sort_columns: list[SortColumn] = Field(default=[], max_length=64)
    bloom_columns: list[ColumnName] = Field(
        default=[],
        max_length=16,
        description="Columns for which a refresh builds a Bloom filter of each file. With them, "
        "`=` and `IN` prune files that minimum and maximum values cannot rule out.",
    )
    imported_from: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None,
        description="The catalog and table that an import took the definition from, such as "
        "`hive:sales.events`. Imports change no other tables.",
    )
    plan_options: PlanDefaults = Field(
        default=PlanDefaults(),
        description="Options of plans of this table, for what neither a request nor its session "
        "sets.",
    )

    @field_validator("format_options")
    @classmethod
    def _known_options(cls, given: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        # Without a format, that is what is wrong.
        return checked_format_options(info.data["format"], given) if "format" in info.data else {}


class LogFigures(Answer):
    """What the log of a Delta or Iceberg table says of it."""

    committed_at: datetime | None = Field(
        default=None, description="When the version was committed; null if the log does not tell."
    )
    versions: int | None = Field(
        default=None, description="Number of versions that the log still has; null if unknown."
    )
    small_files: int = Field(description="Number of files under 32 MB.")
    small_bytes: int = Field(description="Their bytes.")
    delete_files: int = Field(
        description="Number of deletion vectors, and of files that name deleted rows."
    )
    deleted_rows: int | None = Field(
        default=None, description="Rows that they delete; null if the log does not tell."
    )


class SnapshotInfo(Answer):
    """One immutable version of a table."""

    snapshot_id: int
    created_at: datetime
    file_count: int
    row_count: int | None = Field(
        default=None,
        description="Rows in the files, deleted ones included; null if those of a file are not "
        "known.",
    )
    size_bytes: int
    file_sizes: list[int] | None = Field(
        default=None,
        description="Numbers of files by size: the first entry counts empty files, and entry k "
        "after it those of 2^(k-1) bytes or more, but less than 2^k. Null for snapshots that an "
        "earlier version of Windrow made, and for changes of them.",
    )
    manifest_count: int
    columns: list[Column]
    partition_columns: list[Column]
    valid_write_ids: str | None = Field(
        default=None,
        description="For transactional tables: the write ids that the snapshot sees, as given to "
        "the refresh; null if it sees all that was on disk.",
    )
    table_version: str | None = Field(
        default=None,
        description="For Delta tables their version, for Iceberg tables the id of their snapshot.",
    )
    log: LogFigures | None = Field(
        default=None, description="For Delta and Iceberg tables: what their log says."
    )


class TableInfo(Answer):
    """A registered table and its current snapshot, if it has one."""

    name: str
    definition: TableDefinition
    created_at: datetime
    updated_at: datetime
    current_snapshot: SnapshotInfo | None = None
    partition_count: int | None = Field(
        default=None,
        description="Number of partitions in the list that a catalog gave; null if the table has no "
        "such list, so that its folders are its partitions.",
    )


class TablePage(Answer):
    """One page of the registered tables, by name."""

    tables: list[TableInfo]
    next_page_token: str | None = None


class SnapshotPage(Answer):
    """One page of a table's snapshots, newest first."""

    snapshots: list[SnapshotInfo]
    next_page_token: str | None = None


class RefreshRequest(Request):
    """What a refresh is asked for."""

    valid_write_ids: Annotated[str, StringConstraints(max_length=10_000_000)] | None = Field(
        default=None,
        description="For transactional tables: the write ids to see, as Hive's metastore tells "
        "them (`db.table:highest:least_open:open,…:aborted,…`), or `on-disk` for all that is on "
        "disk. Without, all that is on disk is seen, unless the current snapshot was made with "
        "write ids: then they must be given again, newer ones or `on-disk`.",
    )
    version: TableVersion | None = Field(
        default=None,
        description="Of a Delta table its version; of an Iceberg table the id of a snapshot, or the "
        "name of a branch or tag. It becomes a snapshot beside the current one, which plans can be "
        "made of by the same `version`. Without, the newest becomes the current one.",
    )


class RefreshProgress(Answer):
    """The progress of a refresh."""

    phase: Literal["listing", "reading footers", "publishing", "done"]
    folders_listed: int = 0
    folders_unchanged: int = Field(
        default=0, description="Number of folders not listed because they have not changed."
    )
    files_found: int = 0
    files_empty: int = Field(
        default=0, description="Number of files of 0 bytes; they are skipped, as in Spark."
    )
    files_uncommitted: int = Field(
        default=0,
        description="Number of files missing from the log of a Spark streaming query "
        "(`_spark_metadata`); they are skipped, as in Spark.",
    )
    footers_read: int = 0
    footers_total: int = 0


class RefreshStatus(Answer):
    """A refresh of one table: running, done, failed or cancelled.

    If its coordinator died, it is `failed` with the problem `refresh-abandoned`.
    """

    refresh_id: str
    table: str
    status: Literal["running", "done", "failed", "cancelled"]
    valid_write_ids: str | None = Field(
        default=None, description="The write ids that it was asked to see."
    )
    version: str | None = Field(
        default=None, description="The version of the table that it was asked for."
    )
    started_at: datetime
    seconds: float
    progress: RefreshProgress
    changed: bool | None = Field(
        default=None,
        description="Whether a new snapshot was made; null while the refresh runs.",
    )
    files_added: int = 0
    files_removed: int = 0
    manifests_reused: int = 0
    snapshot: SnapshotInfo | None = None
    problem: dict[str, object] | None = Field(
        default=None, description="The RFC 9457 problem of a refresh that failed or was cancelled."
    )
