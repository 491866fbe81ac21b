"""Advice on the wire: which writes made a table's files, and what would have avoided them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import Field

from windrow.models.base import Answer
from windrow.models.writes import WriteScheme

# `explosion`: every task wrote into every partition. `many_tasks`: far more tasks than bytes need.
# `one_file_per_key`: a partition's file is as large as the partition. `large_files`: otherwise too
# large. `small_appends`: little, again and again. `fine_partitions`: more of them than bytes fill.
WriteTrouble: TypeAlias = Literal[
    "explosion", "many_tasks", "one_file_per_key", "large_files", "small_appends"
]
AdviceKind: TypeAlias = WriteTrouble | Literal["fine_partitions"]


class WriteOrigin(Answer):
    """One write, as the files that are left of it tell."""

    job: str | None = Field(
        description="Spark's UUID of it; null where the files' names have none."
    )
    write_id: str | None = Field(description="Of a planned write that was reported.")
    scheme: WriteScheme | None = Field(description="As it was reported.")
    first_at: datetime = Field(description="When its first file was finished.")
    last_at: datetime
    files: int
    small_files: int = Field(description="Under half of the target.")
    partitions: int = Field(description="That it wrote into; a bucket is one of its own.")
    tasks: int | None = Field(description="Its greatest task number and one, where names tell.")
    size_bytes: int
    rows: int
    largest_file_bytes: int
    would_be: int = Field(description="Files that an exact write plan would have made.")
    trouble: WriteTrouble | None


class Advice(Answer):
    """What went wrong with some writes, and what to do."""

    kind: AdviceKind
    writes: int
    files: int = Field(description="Of those writes.")
    would_be: int = Field(description="Files that would have held the same.")
    problem: str
    remedy: str


class TableAdvice(Answer):
    """How the files of a table's current snapshot came about."""

    table: str
    snapshot_id: int
    target_file_bytes: int
    files: int
    small_files: int
    size_bytes: int
    would_be: int = Field(
        description="Files that an exact write plan would make of each partition."
    )
    write_count: int
    writes: list[WriteOrigin] = Field(
        description="Those of the most files too many first; at most 100."
    )
    advice: list[Advice] = Field(description="The most files to be saved first.")
