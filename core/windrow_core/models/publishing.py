"""Wire models for publishing inventories and expiring snapshots."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from windrow_core.models.base import Answer, ColumnName, Request, Scalar, Whole
from windrow_core.models.tables import Column, SnapshotInfo

MAX_JSON_FILES = 10_000

PublishMode: TypeAlias = Literal["full", "delta"]
FilePath: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
_Count: TypeAlias = Annotated[int, Whole(0, 2**63 - 1)]


class ColumnBounds(Request):
    """Statistics of one column of a file; null means unknown."""

    min: Scalar = Field(default=None, description="As text if JSON has no such type.")
    max: Scalar = Field(default=None, description="As text if JSON has no such type.")
    null_count: _Count | None = None


class InventoryFile(Request):
    """One data file of a published inventory."""

    path: FilePath = Field(description="Path relative to the table's location.")
    size_bytes: _Count = Field(
        description="Size of the file. A table may have at most 2^53 bytes and 2^53 rows in all."
    )
    mtime_ns: Annotated[int, Whole(-(2**63), 2**63 - 1)]
    row_count: _Count | None = Field(
        default=None, description="Null if not known; required for tables of Parquet or ORC."
    )
    bucket: Annotated[int, Whole(0, 2**31 - 1)] | None = None
    hosts: list[str] = Field(default=[], max_length=100)
    row_group_offsets: list[_Count] = Field(default=[], max_length=10_000)
    delete_count: Annotated[int, Whole(0, 2**31 - 1)] = 0
    delete_bytes: _Count = 0
    stats_see_nan: bool = False
    grouped_columns: list[ColumnName] | None = Field(
        default=None,
        max_length=10_000,
        description="Columns of the file that Spark's own Parquet reader may read differently from "
        "the grouped reader, because of their type or encoding; null if unknown.",
    )
    native_columns: list[ColumnName] | None = Field(
        default=None,
        max_length=10_000,
        description="Columns of an ORC file that only Spark's own reader reads correctly; null if "
        "unknown, and for other formats.",
    )
    stats: dict[ColumnName, ColumnBounds] = Field(default={}, max_length=10_000)


class InventoryChange(Request):
    """A small inventory, or a small change to one: at most 10,000 files."""

    mode: PublishMode | None = Field(
        default=None,
        description="`full`: `added` lists all files of the table. `delta`: files that are neither "
        "added nor removed stay.",
    )
    columns: Annotated[list[Column], Field(max_length=10_000)] | None = Field(
        default=None,
        description="Columns of the files, for a full inventory. By default they stay as they are, "
        "or are taken from `stats`.",
    )
    added: list[InventoryFile] = Field(default=[], max_length=MAX_JSON_FILES)
    removed: list[FilePath] = Field(default=[], max_length=MAX_JSON_FILES)

    @model_validator(mode="after")
    def _is_small(self) -> InventoryChange:
        if len(self.added) + len(self.removed) > MAX_JSON_FILES:
            raise ValueError(
                f"more than {MAX_JSON_FILES:,} files are added and removed: send an Arrow stream"
            )
        return self


class PublishedSnapshot(SnapshotInfo):
    """A snapshot that was just published, and figures of the change."""

    files_added: int = Field(description="Number of new and changed files.")
    files_removed: int = Field(description="Number of removed and changed files.")
    manifests_written: int
    manifests_reused: int
    bytes_written: int = Field(
        description="Bytes of new manifests and of records that mark rows of old ones as removed."
    )


class SnapshotExpiry(Request):
    """Which snapshots to keep; the others are dropped."""

    keep_last: Annotated[int, Whole(1, 1_000_000)] | None = Field(
        default=None,
        description="Number of newest snapshots to keep; set by the coordinator by default.",
    )
    max_age_seconds: Annotated[int, Whole(0, 3_153_600_000)] | None = Field(
        default=None,
        description="Younger snapshots are kept, up to the coordinator's maximum number; set by the "
        "coordinator by default.",
    )


class ExpiredSnapshots(Answer):
    """The snapshots that were dropped."""

    snapshot_ids: list[int]
