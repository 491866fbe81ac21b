"""Wire models of advice: which writes made a table's files, and what would have been better."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from windrow_core.models.base import Answer
from windrow_core.models.writes import RecordedScheme

# `explosion`: every task wrote into every partition. `many_tasks`: far more tasks than the data
# needs. `one_file_per_key`: each partition is one file, however large. `large_files`: files that
# are too large for other reasons. `small_appends`: many writes of little data. `fine_partitions`:
# more partitions than there is data for. `several_folders`: partition values that are spelled in
# several ways, each of which has a folder. `packs`: small files that are in no pack.
WriteTrouble: TypeAlias = Literal[
    "explosion", "many_tasks", "one_file_per_key", "large_files", "small_appends"
]
AdviceKind: TypeAlias = WriteTrouble | Literal["fine_partitions", "several_folders", "packs"]


class WriteOrigin(Answer):
    """One write, reconstructed from those of its files that are still in the table."""

    job: str | None = Field(
        description="Spark's UUID of the write job; null if the file names contain none."
    )
    write_id: str | None = Field(description="Id of the write if it was planned and reported.")
    scheme: RecordedScheme | None = Field(description="The scheme in the write's report.")
    first_at: datetime = Field(description="When the first file was finished.")
    last_at: datetime
    files: int
    small_files: int = Field(description="Files smaller than half the target.")
    partitions: int = Field(
        description="Number of partitions that it wrote into; each bucket counts separately."
    )
    tasks: int | None = Field(
        description="The largest task number plus one; null if the file names contain none."
    )
    size_bytes: int
    rows: int | None = Field(default=None, description="Null if the rows of a file are not known.")
    largest_file_bytes: int
    would_be: int = Field(
        description="Number of files that an exact write plan would have made instead."
    )
    trouble: WriteTrouble | None


class Advice(Answer):
    """A problem that some writes share, and its remedy."""

    kind: AdviceKind
    writes: int
    files: int = Field(description="Number of files that these writes made.")
    would_be: int = Field(description="Number of files that would have been enough.")
    problem: str
    remedy: str


class TableAdvice(Answer):
    """The writes that made the files of a table's current snapshot, and advice."""

    table: str
    snapshot_id: int
    target_file_bytes: int
    files: int
    small_files: int
    size_bytes: int
    would_be: int = Field(
        description="Number of files if each partition were written with an exact plan."
    )
    write_count: int
    writes: list[WriteOrigin] = Field(
        description="At most 100 writes, those with the most excess files first."
    )
    advice: list[Advice] = Field(description="Advice that saves the most files comes first.")
