"""Wire models of compaction: which partitions to compact, with costs and gains."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StrictBool, model_validator

from windrow_core.models.base import Answer, ByteSize, Request, Whole
from windrow_core.models.filters import Filter
from windrow_core.models.tables import Column

# In the order in which they are checked.
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
    """A request for the partitions of a table that are worth compacting."""

    target_file_size: ByteSize = Field(
        default=128 * 2**20,
        description="Target size of a file in bytes, or as text such as '128MB', the default.",
    )
    small_file_size: ByteSize | None = Field(
        default=None,
        description="Only files smaller than this are rewritten; half of the target by default, and "
        "at most.",
        exclude_if=lambda value: value is None,
    )
    filter: Filter | None = Field(
        default=None,
        description="A filter on partition columns only, which selects the partitions to consider.",
    )
    folders: Annotated[list[str], Field(max_length=10_000)] | None = Field(
        default=None,
        description="Folders of partitions, relative to the table's location: only these are "
        "considered. All by default.",
        exclude_if=lambda value: value is None,
    )
    min_files: Annotated[int, Whole(2, 1_000_000)] = Field(
        default=2, description="Partitions with fewer small files than this are left alone."
    )
    min_small_ratio: Annotated[float, Field(ge=0, le=1, strict=True)] = Field(
        default=0.0,
        description="Partitions are left alone if the share of small files among their files is "
        "below this.",
    )
    worth_reads: Annotated[int, Whole(1, 1_000_000_000)] = Field(
        default=3_000, description="Rewriting must pay for itself within this many reads."
    )
    max_batch_bytes: ByteSize = Field(
        default=8 * 2**30,
        description="Maximum bytes in one page; each page is one batch to rewrite.",
    )
    max_partitions: Annotated[int, Whole(1, 10_000)] = Field(
        default=1_000, description="Maximum number of partitions in one page."
    )
    snapshot_id: Annotated[int, Whole(1, 2**31 - 1)] | None = None
    offset: Annotated[int, Whole(0, 2**31 - 1)] = Field(
        default=0,
        description="`next_offset` of the previous page; send that page's `snapshot_id` too.",
    )
    with_paths: StrictBool = Field(default=False, description="Include the paths of the files.")

    @model_validator(mode="after")
    def _fits(self) -> CompactionRequest:
        if self.max_batch_bytes < self.target_file_size:
            raise ValueError(
                f"max_batch_bytes ({self.max_batch_bytes}) is below target_file_size "
                f"({self.target_file_size}): a batch must hold a file"
            )
        if (self.small_file_size or 0) > (self.target_file_size + 1) // 2:
            raise ValueError(
                f"small_file_size ({self.small_file_size}) is over half of target_file_size "
                f"({self.target_file_size}): rewritten files could be small again"
            )
        if self.offset and self.snapshot_id is None:
            raise ValueError("offset counts the partitions of one snapshot: give its snapshot_id")
        return self


class CompactionTotals(Answer):
    """Totals of all chosen partitions, on all pages."""

    partitions: int = Field(
        description="Number of partitions. Each bucket counts separately, and so does each piece "
        "of a partition that is larger than a batch."
    )
    files: int = Field(description="Number of small files to rewrite.")
    size_bytes: int
    rows: int
    becomes_bytes: int = Field(
        description="Expected size after rewriting; less than before, as small files also hold "
        "overhead."
    )
    becomes: int = Field(description="Number of files that an exact write plan makes of them.")
    cost_seconds: float = Field(
        description="Seconds of one core to rewrite them, with what a run costs beside them."
    )
    gain_seconds: float = Field(
        description="Seconds of one core that each later read of all of them saves."
    )


class CompactionPartitions(Answer):
    """Partitions that are worth compacting, as parallel columns in the order of paths."""

    folders: list[str] = Field(description="Folders relative to the table's location.")
    buckets: list[int | None]
    all_files: list[int] = Field(description="Number of all files, including large ones.")
    files: list[int] = Field(description="Number of small files, which are rewritten.")
    size_bytes: list[int] = Field(description="Size of the small files.")
    rows: list[int]
    becomes_bytes: list[int]
    becomes: list[int]
    cost_seconds: list[float]
    gain_seconds: list[float]
    paths: list[str] | None = Field(
        default=None, description="Paths of the small files, partition by partition."
    )


class LeftAlone(Answer):
    """Partitions that are left alone for one reason."""

    reason: LeftAloneReason
    explanation: str
    partitions: int
    files: int
    size_bytes: int


class CompactionPlan(Answer):
    """One page of the partitions that are worth compacting: one batch to rewrite."""

    table: str
    snapshot_id: int
    target_file_bytes: int
    small_file_bytes: int = Field(description="Files smaller than this are small.")
    file_count: int = Field(description="Number of files in all partitions that were considered.")
    partition_columns: list[Column]
    totals: CompactionTotals
    left_alone: list[LeftAlone]
    partitions: CompactionPartitions
    next_offset: int | None = None
