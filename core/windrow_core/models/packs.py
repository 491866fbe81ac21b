"""Wire models of packs: files elsewhere that hold the rows of many small files of a table."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from windrow_core.models.base import Answer, ByteSize, Request, Whole
from windrow_core.models.filters import Filter
from windrow_core.models.maintenance import MAX_EXEMPT_FOLDERS, MAX_MIN_AGE_S
from windrow_core.planning import UnpackedReason

PackState: TypeAlias = Literal["published", "withdrawn", "removed"]
SHA256_PATTERN = "[0-9a-f]{64}"
# Of a packer that dies, rows may be on the disk for as long.
LONGEST_LEASE_S = 600


def _is_missing(value: object) -> bool:
    return value is None


class PackingRequest(Request):
    """A request for the files of a table that are worth a pack."""

    max_file_size: ByteSize = Field(
        default=2**20, description="Larger files gain little, and stay as they are."
    )
    min_files: Annotated[int, Whole(2, 1_000_000)] = Field(
        default=48, description="Fewest files that are worth a pack."
    )
    pieces: Annotated[int, Whole(1, 1_000)] = Field(
        default=1,
        description="Most pieces that few files are divided into, such as processes that pack; many "
        "files are divided into more.",
    )
    filter: Filter | None = Field(
        default=None,
        description="Partitions to pack, as a filter on partition columns only; all by default.",
        exclude_if=_is_missing,
    )
    exempt_folders: list[Annotated[str, Field(max_length=1_024)]] = Field(
        default=[],
        max_length=MAX_EXEMPT_FOLDERS,
        description="Folders of partitions to leave alone, relative to the table's location.",
        exclude_if=lambda value: not value,
    )
    min_age_seconds: Annotated[int, Whole(0, MAX_MIN_AGE_S)] = Field(
        default=0,
        description="Partitions that were written to more recently are left alone.",
        exclude_if=lambda value: not value,
    )


class UnpackedFiles(Answer):
    """Files that are not packed now, and why."""

    reason: UnpackedReason
    files: int


class PackingPlan(Answer):
    """The files of a table that are worth a pack, in figures."""

    table: str
    registration: int
    snapshot_id: int
    definition: str = Field(
        description="A digest of what the partition values in packs depend on; packs of another "
        "one are not used."
    )
    location: str
    folder: str = Field(description="Where packs lie: an absolute path, or a URI.")
    home: str = Field(description="Name of the table's folder there.")
    files: int
    size_bytes: int
    row_count: int
    pieces: int
    core_seconds: float = Field(description="Predicted time of packing, on one core.")
    saved_seconds: float = Field(
        description="Predicted time that a read of all these files saves afterwards, on one core."
    )
    left_alone: list[UnpackedFiles] = Field(description="The other files, by reason.")

    @property
    def repaid_after(self) -> int:
        """The number of reads after which packing has saved what it costs."""
        return math.ceil(self.core_seconds / self.saved_seconds) if self.saved_seconds else 0


class PackingRunRequest(Request):
    """A sign of life of whoever packs files of a table."""

    snapshot_id: int = Field(description="The snapshot whose files are packed.")
    lease_seconds: Annotated[int, Whole(0, LONGEST_LEASE_S)] = Field(
        default=60,
        description="How long until the next sign of life at the latest, and no longer than half of "
        "`erase_within` of the coordinator, or a minute; 0 ends the run, which has "
        "left nothing in the folder of packs but what is published.",
    )


class PackDescription(Request):
    """A pack that was made."""

    definition: Annotated[str, Field(pattern=SHA256_PATTERN)]
    path: Annotated[str, Field(max_length=4_096)]
    digest: Annotated[str, Field(pattern=SHA256_PATTERN)]
    size_bytes: Annotated[int, Whole(1, 2**50)]
    row_count: Annotated[int, Whole(0, 2**50)]
    kind: Annotated[str, Field(pattern=SHA256_PATTERN)] | None = Field(
        default=None,
        description="A digest of what its files have in common: layout, and who may read them. "
        "Many packs of one kind are packed again, into one.",
        exclude_if=_is_missing,
    )


class PackSource(Request):
    """A file that a pack was made of, as the inventory has it."""

    path: Annotated[str, Field(max_length=4_096)]
    size_bytes: Annotated[int, Whole(0, 2**50)]
    mtime_ns: Annotated[int, Whole(0, 2**63 - 1)]
    etag: Annotated[str, Field(max_length=1_024)] | None = None
    row_count: Annotated[int, Whole(0, 2**50)]
    digest: Annotated[str, Field(pattern=SHA256_PATTERN)] = Field(
        description="SHA-256 of the file's bytes."
    )
    inode: Annotated[int, Whole(0, 2**64 - 1)] | None = Field(
        default=None,
        description="Inode number of the file that was packed, where that tells files apart.",
    )
    changed_ns: Annotated[int, Whole(0, 2**63 - 1)] | None = Field(
        default=None,
        description="When it last changed in any way (`ctime`), in nanoseconds since 1970. On local "
        "disks, a pack does not stand for a file of which these two are not known.",
    )


class NewPack(PackDescription):
    """A pack that was made, with its sources."""

    sources: Annotated[list[PackSource], Field(min_length=1, max_length=10_000)] = Field(
        description="The files, in the order in which the pack has their rows."
    )


class Pack(Answer):
    """A pack of a table."""

    pack_id: str = Field(description="SHA-256 of its bytes.")
    path: str
    size_bytes: int
    row_count: int
    source_count: int = Field(description="Number of files whose rows it has.")
    state: PackState
    made_at: datetime
    gone_since: datetime | None = Field(
        default=None,
        description="When a source of it was first missing, or replaced. Its rows leave the disk "
        "within `erase_within` of that time.",
    )
    withdrawn_at: datetime | None = None
    withdrawn_because: str | None = None
    removed_at: datetime | None = Field(
        default=None, description="When its last byte left the disk."
    )


class PackList(Answer):
    """The packs of a table, newest first."""

    packs: list[Pack]
