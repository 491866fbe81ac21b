"""Wire models of writes to a table: those in progress, and reports of finished ones."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from windrow_core.models.base import Answer, Request, Scalar, Whole
from windrow_core.models.streams import StreamBatch
from windrow_core.models.tables import Column
from windrow_core.models.writes import MAX_WRITE_KEYS, FileCountBasis, RecordedScheme, WriteMode

WRITE_ID_PATTERN = r"^[0-9a-f]{32}$"

# `staging`: files are written to a separate folder. `committing`: they are moved into the table,
# and nobody else may publish. `published` and `undone` are final.
WriteState: TypeAlias = Literal["staging", "committing", "published", "undone"]
# What an overwrite does if files have been added to its partitions since it began: fail, or
# remove them too.
WriteConflict: TypeAlias = Literal["fail", "overwrite"]
# A `removal` drops partitions and has no files of its own.
WriteKind: TypeAlias = Literal["write", "compaction", "removal"]
WriteId: TypeAlias = Annotated[str, StringConstraints(pattern=WRITE_ID_PATTERN)]

MAX_GAINED_FOLDERS = 100_000

_Count: TypeAlias = Annotated[int, Whole(0, 2**63 - 1)]
_Counts: TypeAlias = Annotated[list[_Count], Field(max_length=MAX_WRITE_KEYS)]
_Values: TypeAlias = Annotated[list[Scalar], Field(max_length=MAX_WRITE_KEYS)]


class KeyReport(Request):
    """Outcome by key (partition values without the bucket), as parallel columns."""

    columns: Annotated[list[Column], Field(max_length=64)]
    values: Annotated[list[_Values], Field(max_length=64)]
    rows: _Counts
    files: _Counts
    bytes: _Counts
    planned_files: _Counts | None = None


class WriteReport(Request):
    """Planned and actual figures of a write; later estimates are based on them."""

    scheme: RecordedScheme
    basis: FileCountBasis
    target_file_bytes: _Count
    planned_files: _Count | None = None
    tasks: _Count
    rows: _Count
    files: _Count
    small_files: Annotated[_Count, Field(description="Files smaller than half the target.")]
    bytes: _Count
    largest_file_bytes: _Count
    row_hash: Annotated[str, StringConstraints(max_length=64)] = Field(
        description="Sum of the hashes of all rows in any order, the same for input and files. Empty "
        "for compactions, which compare values instead."
    )
    unhashed_columns: Annotated[list[str], Field(max_length=10_000)] = Field(
        default=[],
        description="Columns whose type Spark cannot hash; only their rows were counted.",
    )
    count_seconds: Annotated[float, Field(ge=0)]
    write_seconds: Annotated[float, Field(ge=0)]
    check_seconds: Annotated[float, Field(ge=0)]
    commit_seconds: Annotated[float, Field(ge=0)]
    keys: KeyReport | None = None


class WriteUpdate(Request):
    """The state of a write; sent when it begins, at each step, and to renew its lease."""

    kind: WriteKind = "write"
    mode: WriteMode
    state: WriteState
    host: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(
        description="Host of the driver."
    )
    process: Annotated[int, Whole(1, 2**31 - 1)] = Field(description="The driver's process id.")
    lease_seconds: Annotated[int, Whole(1, 3600)] = Field(
        default=30, description="A driver that is silent for this long is presumed dead."
    )
    takes_over: bool = Field(
        default=False,
        description="This process takes over from a driver that died, to finish or undo its write.",
    )
    report: WriteReport | None = None
    batch: StreamBatch | None = Field(
        default=None,
        exclude_if=lambda batch: batch is None,
        description="The batches of a stream that the write contains; given when the write begins.",
    )


class WriteRecord(Answer):
    """One write to a table."""

    write_id: str
    table: str
    kind: WriteKind
    mode: WriteMode
    state: WriteState
    host: str
    process: int
    started_at: datetime
    updated_at: datetime
    expires_at: datetime | None = Field(
        description="When its lease ends; null once the write has ended."
    )
    alive: bool = Field(description="Whether its lease is still valid.")
    snapshot_id: int | None = Field(default=None, description="The snapshot that it published.")
    cancelled_by: str | None = Field(
        default=None, description="Name of the token of the caller who cancelled it."
    )
    batch: StreamBatch | None = Field(
        default=None, description="The batches of a stream that it contains."
    )
    report: WriteReport | None = Field(
        default=None,
        description="The write's report. Its `keys` are kept for the newest 100 writes, and left "
        "out in lists of writes.",
    )


class GainedFiles(Answer):
    """Folders with files that are new or changed since an older snapshot."""

    snapshot_id: int = Field(description="The current snapshot, which holds these files.")
    folders: list[str] = Field(
        description="Folders relative to the table's location; an empty string is the location "
        f"itself. At most the first {MAX_GAINED_FOLDERS:,} by name."
    )
    complete: bool = Field(description="Whether these are all such folders.")


class WritePage(Answer):
    """One page of a table's writes, newest first."""

    writes: list[WriteRecord]
    next_page_token: str | None = None
