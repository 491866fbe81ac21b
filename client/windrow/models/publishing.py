"""Published inventories, and the keeping of snapshots, on the wire."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from windrow.models.base import Answer, ColumnName, Request, Scalar, Whole
from windrow.models.tables import Column, SnapshotInfo

MAX_JSON_FILES = 10_000

PublishMode: TypeAlias = Literal["full", "delta"]
FilePath: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
_Count: TypeAlias = Annotated[int, Whole(0, 2**63 - 1)]


class ColumnBounds(Request):
    """What is known of one column of a file; null is not known."""

    min: Scalar = Field(default=None, description="As text where JSON has no such type.")
    max: Scalar = Field(default=None, description="As text where JSON has no such type.")
    null_count: _Count | None = None


class InventoryFile(Request):
    """One data file of a published inventory."""

    path: FilePath = Field(description="Relative to the table's location.")
    size_bytes: _Count = Field(
        description="All files of a table may come to 2^53, and so may their rows."
    )
    mtime_ns: Annotated[int, Whole(-(2**63), 2**63 - 1)]
    row_count: _Count
    bucket: Annotated[int, Whole(0, 2**31 - 1)] | None = None
    hosts: list[str] = Field(default=[], max_length=100)
    row_group_offsets: list[_Count] = Field(default=[], max_length=10_000)
    delete_count: Annotated[int, Whole(0, 2**31 - 1)] = 0
    delete_bytes: _Count = 0
    stats_see_nan: bool = False
    stats: dict[ColumnName, ColumnBounds] = Field(default={}, max_length=10_000)


class InventoryChange(Request):
    """A small inventory, or a small change of one: at most 10,000 files."""

    mode: PublishMode | None = Field(
        default=None,
        description="`full`: `added` is all files there are. `delta`: the others stay.",
    )
    columns: Annotated[list[Column], Field(max_length=10_000)] | None = Field(
        default=None,
        description="The columns that the files hold, of a whole inventory; as before, or as "
        "`stats` tells them, by default.",
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
    """A snapshot that was just published, and what that took."""

    files_added: int = Field(description="New and changed files.")
    files_removed: int = Field(description="Files that are gone or have changed.")
    manifests_written: int
    manifests_reused: int
    bytes_written: int = Field(description="Of manifests, and of what notes their rows as gone.")


class SnapshotExpiry(Request):
    """Which snapshots may go: those that are neither among the last ones nor young."""

    keep_last: Annotated[int, Whole(1, 1_000_000)] | None = Field(
        default=None, description="So many of the newest stay; as the coordinator is set up."
    )
    max_age_seconds: Annotated[int, Whole(0, 3_153_600_000)] | None = Field(
        default=None, description="Younger ones stay; as the coordinator is set up."
    )


class ExpiredSnapshots(Answer):
    """The snapshots that went."""

    snapshot_ids: list[int]
