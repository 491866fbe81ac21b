"""Compaction on the wire: which partitions hold more small files than they must."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StrictBool, model_validator

from windrow.models.base import Answer, ByteSize, Request, Whole
from windrow.models.filters import Filter
from windrow.models.tables import Column

# As in the order in which they are looked for.
LeftAloneReason: TypeAlias = Literal[
    "deletes",
    "layout",
    "no_bucket",
    "large_files",
    "few_files",
    "small_ratio",
    "no_rows",
    "not_worth",
]


class CompactionRequest(Request):
    """A question for the partitions of a table that are worth compacting."""

    target_file_size: ByteSize = Field(
        default=128 * 2**20, description="Bytes, or text such as '128MB', which is the default."
    )
    filter: Filter | None = Field(
        default=None, description="On partition columns alone: which partitions to look at."
    )
    min_files: Annotated[int, Whole(2, 1_000_000)] = Field(
        default=2, description="Small files of a partition, below which it is left alone."
    )
    min_small_ratio: Annotated[float, Field(ge=0, le=1, strict=True)] = Field(
        default=0.0, description="Small files among all of a partition, likewise."
    )
    worth_reads: Annotated[int, Whole(1, 1_000_000_000)] = Field(
        default=3_000, description="Within so many reads the rewriting must pay."
    )
    max_batch_bytes: ByteSize = Field(
        default=8 * 2**30, description="Most bytes of one page, which is one batch to rewrite."
    )
    max_partitions: Annotated[int, Whole(1, 10_000)] = Field(
        default=1_000, description="Most partitions of one page."
    )
    snapshot_id: Annotated[int, Whole(1, 2**31 - 1)] | None = None
    offset: Annotated[int, Whole(0, 2**31 - 1)] = Field(
        default=0, description="`next_offset` of the page before, and its `snapshot_id`."
    )
    with_paths: StrictBool = Field(default=False, description="Name the files, too.")

    @model_validator(mode="after")
    def _fits(self) -> CompactionRequest:
        if self.max_batch_bytes < self.target_file_size:
            raise ValueError(
                f"max_batch_bytes ({self.max_batch_bytes}) is below target_file_size "
                f"({self.target_file_size}): a batch must hold a file"
            )
        if self.offset and self.snapshot_id is None:
            raise ValueError("offset counts the partitions of one snapshot: give its snapshot_id")
        return self


class CompactionTotals(Answer):
    """What all chosen partitions come to, on whichever page they are."""

    partitions: int = Field(
        description="A bucket counts as one of its own, and so does each piece of a partition "
        "that is more than a batch."
    )
    files: int = Field(description="Small files that would be rewritten.")
    size_bytes: int
    rows: int
    becomes_bytes: int = Field(
        description="What the rows are expected to take then: a small file is not all rows."
    )
    becomes: int = Field(description="Files that an exact write plan makes of them.")
    cost_seconds: float = Field(description="Of one core, to rewrite them.")
    gain_seconds: float = Field(
        description="Of one core, that a read of all of them saves from then on."
    )


class CompactionPartitions(Answer):
    """Partitions that are worth compacting, in the order of paths; columns lie side by side."""

    folders: list[str] = Field(description="Relative to the table's location.")
    buckets: list[int | None]
    all_files: list[int] = Field(description="Files that lie there, large ones too.")
    files: list[int] = Field(description="Small files, which are rewritten.")
    size_bytes: list[int] = Field(description="Of the small files.")
    rows: list[int]
    becomes_bytes: list[int]
    becomes: list[int]
    cost_seconds: list[float]
    gain_seconds: list[float]
    paths: list[str] | None = Field(
        default=None, description="Of the small files, one partition after the other."
    )


class LeftAlone(Answer):
    """Partitions that are not worth compacting, and why."""

    reason: LeftAloneReason
    explanation: str
    partitions: int
    files: int
    size_bytes: int


class CompactionPlan(Answer):
    """One page of the partitions that are worth compacting: a batch to rewrite at once."""

    table: str
    snapshot_id: int
    target_file_bytes: int
    small_file_bytes: int = Field(description="A file under this is small.")
    file_count: int = Field(description="Of all partitions that were looked at.")
    partition_columns: list[Column]
    totals: CompactionTotals
    left_alone: list[LeftAlone]
    partitions: CompactionPartitions
    next_offset: int | None = None
