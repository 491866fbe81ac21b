"""Wire models of the partitions that a catalog knows of a table."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from windrow_core.models.base import Answer, Request, Scalar, Whole

MAX_JSON_PARTITIONS = 10_000
# Most ranges of partitions that a plan may name.
MAX_PARTITION_RANGES = 50_000
# The number of a table's registration, in the metadata of streams.
REGISTRATION = "registration"

_Number = Annotated[int, Whole(0, 2**31 - 1)]
PartitionRange = tuple[_Number, _Number]


class TablePartition(Request):
    """One partition: its values and the folder of its files."""

    values: list[Annotated[str, StringConstraints(max_length=4096)]] = Field(
        max_length=64,
        description="A text for each partition column of the definition, in that order, as Hive's "
        "metastore has it: not escaped; `__HIVE_DEFAULT_PARTITION__` for null.",
    )
    location: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="Folder of the files, as the coordinator sees it; it may lie outside the "
        "table's location, under any allowed prefix."
    )


class PartitionList(Request):
    """All partitions of a table, if they are few."""

    partitions: list[TablePartition] = Field(max_length=MAX_JSON_PARTITIONS)


class PartitionListChange(Answer):
    """The changes that a new list of partitions made."""

    partition_count: int | None = Field(
        description="Number of partitions in the list; null if it was removed, so that folders are "
        "the partitions again."
    )
    added: int
    removed: int
    moved: int = Field(description="Number of partitions that now have another location.")


class PartitionPage(Answer):
    """One page of a table's list of partitions, by location."""

    partitions: list[TablePartition]
    next_page_token: str | None = None


class PartitionValues(Answer):
    """One partition of a snapshot: distinct values among its files, and figures of these files."""

    number: int = Field(
        description="Its number in this snapshot, which `partitions` of plans refers to: partitions "
        "are numbered from 0 in the order of their values, nulls first."
    )
    partition: dict[str, Scalar] = Field(description="The values, as splits have them.")
    file_count: int
    size_bytes: int
    row_count: int | None = Field(
        description="Null if the rows of some file are not known, or some may be deleted."
    )


class PartitionValuesPage(Answer):
    """One page of a snapshot's partitions, by number."""

    snapshot_id: int
    partitions: list[PartitionValues]
    next_page_token: str | None = None


class AddedFiles(Request):
    """Files that a snapshot has and an older one lacks: those of some positions, by path."""

    since: Annotated[int, Whole(0, 2**31 - 1)] = Field(
        default=0, description="The older snapshot; 0 means before the first."
    )
    first: _Number = Field(default=0, description="Position of the first file.")
    end: _Number | None = Field(
        default=None, description="Position after the last file; all files by default."
    )


class AddedFilesInfo(Answer):
    """How many files a snapshot has that an older one lacks, and how many fit within limits."""

    snapshot_id: int
    since: int
    file_count: int = Field(description="Number of all added files; a rewritten file is one.")
    removed_file_count: int = Field(
        description="Number of files of the older snapshot that are gone or rewritten."
    )
    end: int = Field(description="Position after the last file within the limits.")
    size_bytes: int = Field(description="Bytes of the files from `first` up to `end`.")
