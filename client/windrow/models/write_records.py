"""Writes to a table on the wire: who writes now, and reports of those that are over."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from windrow.models.base import Answer, Request, Scalar, Whole
from windrow.models.tables import Column
from windrow.models.writes import MAX_WRITE_KEYS, FileCountBasis, WriteMode, WriteScheme

WRITE_ID_PATTERN = r"^[0-9a-f]{32}$"

# `staging`: files are made aside. `committing`: they are moved in, and nobody else may publish.
# `published` and `undone` are ends.
WriteState: TypeAlias = Literal["staging", "committing", "published", "undone"]
# What an overwrite does about files that came into its partitions after it began: it fails, or it
# removes them, too.
WriteConflict: TypeAlias = Literal["fail", "overwrite"]
WriteKind: TypeAlias = Literal["write", "compaction"]
WriteId: TypeAlias = Annotated[str, StringConstraints(pattern=WRITE_ID_PATTERN)]

MAX_GAINED_FOLDERS = 100_000

_Count: TypeAlias = Annotated[int, Whole(0, 2**63 - 1)]
_Counts: TypeAlias = Annotated[list[_Count], Field(max_length=MAX_WRITE_KEYS)]
_Values: TypeAlias = Annotated[list[Scalar], Field(max_length=MAX_WRITE_KEYS)]


class KeyReport(Request):
    """What became of each key (its partition values, without buckets); columns lie side by side."""

    columns: Annotated[list[Column], Field(max_length=64)]
    values: Annotated[list[_Values], Field(max_length=64)]
    rows: _Counts
    files: _Counts
    bytes: _Counts
    planned_files: _Counts | None = None


class WriteReport(Request):
    """What a write was to make, and what it made; the next estimate rests on it."""

    scheme: WriteScheme
    basis: FileCountBasis
    target_file_bytes: _Count
    planned_files: _Count | None = None
    tasks: _Count
    rows: _Count
    files: _Count
    small_files: Annotated[_Count, Field(description="Under half of the target.")]
    bytes: _Count
    largest_file_bytes: _Count
    row_hash: Annotated[str, StringConstraints(max_length=64)] = Field(
        description="Order-independent sum of the hashes of all rows, of input and files alike."
    )
    unhashed_columns: Annotated[list[str], Field(max_length=10_000)] = Field(
        default=[], description="Columns that Spark has no hash of; only their rows were counted."
    )
    count_seconds: Annotated[float, Field(ge=0)]
    write_seconds: Annotated[float, Field(ge=0)]
    check_seconds: Annotated[float, Field(ge=0)]
    commit_seconds: Annotated[float, Field(ge=0)]
    keys: KeyReport | None = None


class WriteUpdate(Request):
    """How far a write is; sent when it begins, to keep its lease, and at each step."""

    kind: WriteKind = "write"
    mode: WriteMode
    state: WriteState
    host: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(
        description="Where the driver runs."
    )
    process: Annotated[int, Whole(1, 2**31 - 1)] = Field(description="The driver's process id.")
    lease_seconds: Annotated[int, Whole(1, 3600)] = Field(
        default=30, description="Without another word in this time, the driver counts as dead."
    )
    takes_over: bool = Field(
        default=False,
        description="Of a driver that has died: this process finishes its write, or undoes it.",
    )
    report: WriteReport | None = None


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
    expires_at: datetime | None = Field(description="Of its lease; null once it is over.")
    alive: bool = Field(description="Whether its lease holds.")
    snapshot_id: int | None = Field(default=None, description="The snapshot that it published.")
    report: WriteReport | None = Field(
        default=None,
        description="Of those of the newest 100 writes, and of one alone, with what became of "
        "each key; of a list of writes without.",
    )


class GainedFiles(Answer):
    """Where a table has files that it had not in an older snapshot, or had otherwise."""

    snapshot_id: int = Field(description="The current snapshot, which has them.")
    folders: list[str] = Field(
        description="Relative to the table's location; the empty text is the location itself. The "
        f"first {MAX_GAINED_FOLDERS:,} by name."
    )
    complete: bool = Field(description="Whether these are all.")


class WritePage(Answer):
    """One page of a table's writes, newest first."""

    writes: list[WriteRecord]
    next_page_token: str | None = None
