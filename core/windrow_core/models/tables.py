"""Wire models of tables, their snapshots and refreshes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StrictBool, StringConstraints, ValidationInfo, field_validator

from windrow_core.kinds.choice import kind_of
from windrow_core.kinds.kind import TableKind
from windrow_core.models.base import Answer, ColumnName, Request, Whole
from windrow_core.models.format_options import MAX_OPTIONS, checked_format_options
from windrow_core.models.options import PlanDefaults

# Given instead of valid write ids, to read everything that is on disk.
ON_DISK = "on-disk"

_LOCAL_TIME = "timestamp_ntz"

TableFormat: TypeAlias = Literal[
    "parquet", "orc", "avro", "csv", "json", "text", "delta", "iceberg"
]


TableVersion: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Column(Request):
    """A column: its name and its type as Spark SQL writes it, for example `decimal(10,2)`."""

    name: ColumnName
    type: Annotated[str, StringConstraints(min_length=1, max_length=65_536)]
    default: Annotated[str, StringConstraints(min_length=1, max_length=65_536)] | None = Field(
        default=None,
        exclude_if=lambda default: default is None,
        description="Its value, as JSON, in rows of files that lack the column: of a data column, "
        "in tables of `parquet`, `orc`, `csv` and `json`. Binary values are texts of hexadecimal "
        "digits; dates, times without zone and decimals are texts. By default, it is null.",
    )


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
        description="Format of the files, whatever their suffix. `json` means one document per "
        "line. `delta` and `iceberg` are tables of Parquet files whose log states their files and "
        "columns.",
    )
    format_options: dict[str, str] = Field(
        default={},
        max_length=MAX_OPTIONS,
        description="Options with which Spark reads the files, by Spark's names: for example "
        "`header`, `sep` and `mode` of `csv`. Options that select files, infer columns or affect "
        "writing are refused. Options that are left out have Spark's defaults. Hive's tables of "
        "`text` have `serde` and its properties.",
    )
    transactional: Literal["full", "insert_only"] | None = Field(
        default=None,
        description="For Hive's transactional (ACID) tables: `full` if single rows can be updated "
        "and deleted, which is possible only with ORC; `insert_only` otherwise. Their inventory "
        "comes only from refreshes.",
    )
    columns: Annotated[list[Column], Field(max_length=10_000)] | None = None
    partition_columns: Annotated[list[Column], Field(max_length=64)] | None = None
    listed_partitions: bool = Field(
        default=False,
        description="Whether the partitions come only from a catalog's list (`PUT "
        "/tables/{name}/partitions`); until there is a list, refreshes are refused.",
    )
    bucket_spec: BucketSpec | None = None
    sort_columns: list[SortColumn] = Field(default=[], max_length=64)
    bloom_columns: list[ColumnName] = Field(
        default=[],
        max_length=16,
        description="Columns for which a refresh builds a Bloom filter of each file. With them, "
        "`=` and `IN` prune files that minimum and maximum values cannot rule out.",
    )
    trust_folder_times: bool = Field(
        default=False,
        exclude_if=lambda trusts: not trusts,
        description="Whether refreshes skip folders whose time has not changed, on local disks and "
        "NFS. This is quicker if the table has millions of files, but a file that is rewritten in "
        "place, under its name, is found only by plans with `max_staleness` and by refreshes with "
        "`full`. Once such a file was found, no folder is skipped. By default, every refresh "
        "compares every file.",
    )
    imported_from: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None,
        description="The catalog and table that an import took the definition from, such as "
        "`hive:sales.events`. Imports change no other tables.",
    )
    plan_options: PlanDefaults = Field(
        default=PlanDefaults(),
        description="Options for plans of this table that neither a request nor its session sets.",
    )

    @property
    def kind(self) -> TableKind:
        """What can be done with the table, and how its files are read."""
        return kind_of(self.format, self.transactional)

    @field_validator("format_options")
    @classmethod
    def _known_options(cls, options: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        # A format that is not valid has an error of its own.
        return checked_format_options(info.data["format"], options) if "format" in info.data else {}


class LogFigures(Answer):
    """Figures from the log of a Delta or Iceberg table."""

    committed_at: datetime | None = Field(
        default=None, description="When the version was committed; null if the log does not say."
    )
    versions: int | None = Field(
        default=None, description="Number of versions that the log still has; null if unknown."
    )
    small_files: int = Field(description="Number of files under 32 MB.")
    small_bytes: int = Field(description="Bytes of these files.")
    delete_files: int = Field(
        description="Number of deletion vectors, and of files that name deleted rows."
    )
    deleted_rows: int | None = Field(
        default=None, description="Number of rows that they delete; null if the log does not say."
    )


class SnapshotInfo(Answer):
    """One immutable version of a table."""

    snapshot_id: int
    created_at: datetime
    file_count: int
    row_count: int | None = Field(
        default=None,
        description="Number of rows in the files, including deleted rows; null if it is not known "
        "for every file.",
    )
    size_bytes: int
    file_sizes: list[int] | None = Field(
        default=None,
        description="Numbers of files by size: the first entry counts empty files, and entry k "
        "after it those of 2^(k-1) bytes or more, but less than 2^k. Null for snapshots that an "
        "earlier version of Windrow made, and for changes of them.",
    )
    fewest_files: int | None = Field(
        default=None,
        description="How many files of at most 128 MiB the same folders would need: at least one "
        "for each folder, or bucket in it. After a change that is not a refresh it is a lower bound; "
        "null for snapshots that an earlier version of Windrow made.",
    )
    manifest_count: int
    columns: list[Column]
    partition_columns: list[Column]
    valid_write_ids: str | None = Field(
        default=None,
        description="For transactional tables: the valid write ids, as given to the refresh; null "
        "if the snapshot contains everything that was on disk.",
    )
    table_version: str | None = Field(
        default=None,
        description="For Delta tables the version, for Iceberg tables the id of the snapshot.",
    )
    log: LogFigures | None = Field(
        default=None, description="For Delta and Iceberg tables: figures from their log."
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
    deletion_protection: bool = Field(
        default=False,
        description="Whether deleting the table, dropping its partitions and dropping its snapshots "
        "are refused.",
    )


def local_times(definition: TableDefinition, partition_columns: Sequence[Column]) -> list[str]:
    """Return the partition columns with local times that sessions of Spark take for `timestamp`.

    They are of type `timestamp_ntz`, but are not declared so.

    Args:
        definition: The table's definition.
        partition_columns: The partition columns of one of its snapshots.
    """
    if definition.kind.states_columns:
        return []
    own = {
        column.name.lower()
        for column in (*(definition.columns or ()), *(definition.partition_columns or ()))
        if column.type.strip().lower() == _LOCAL_TIME
    }
    return [
        column.name
        for column in partition_columns
        if column.type == _LOCAL_TIME and column.name.lower() not in own
    ]


class TableProtection(Request):
    """Whether a table is protected from deletion."""

    deletion_protection: StrictBool


class TablePage(Answer):
    """One page of the registered tables, by name."""

    tables: list[TableInfo]
    next_page_token: str | None = None


class SnapshotPage(Answer):
    """One page of a table's snapshots, newest first."""

    snapshots: list[SnapshotInfo]
    next_page_token: str | None = None


class RefreshRequest(Request):
    """A request to refresh a table."""

    valid_write_ids: Annotated[str, StringConstraints(max_length=10_000_000)] | None = Field(
        default=None,
        description="For transactional tables: the valid write ids, as Hive's metastore reports "
        "them (`db.table:highest:least_open:open,…:aborted,…`), or `on-disk` for everything on "
        "disk, which is also the default. If the current snapshot was made with write ids, newer "
        "ones or `on-disk` must be given.",
    )
    version: TableVersion | None = Field(
        default=None,
        description="A version of a Delta table; or a snapshot id, branch or tag of an Iceberg "
        "table. It becomes an additional snapshot, which plans can name by the same `version`. By "
        "default, the newest version becomes the current snapshot.",
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
        default=None, description="The valid write ids that were given in the request."
    )
    version: str | None = Field(
        default=None, description="The version of the table that was given in the request."
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
