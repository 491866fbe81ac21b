"""Errors of writes to tables."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_calls.errors import WindrowError


class WriteError(WindrowError):
    """Base of errors that stop a write to a table."""


@dataclass(eq=False)
class UnfitLocationError(WriteError):
    """Nothing can be committed at a table's location."""

    table: str
    location: str
    reason: str
    message = "table {table!r} cannot be written at {location!r}: {reason}"


@dataclass(eq=False)
class UnfitRemovalError(WriteError):
    """A filter does not select whole partitions; nothing was removed."""

    table: str
    reason: str
    message = "no partitions of table {table!r} were dropped: {reason}"


@dataclass(eq=False)
class StagedFilesError(WriteError):
    """The staged files do not fit the table; nothing was moved."""

    table: str
    path: str
    reason: str
    message = "{path!r} cannot be moved into table {table!r}: {reason}"


@dataclass(eq=False)
class PartitionChangedError(WriteError):
    """Files that a write replaces have changed since it began; nothing was moved."""

    table: str
    partition: str
    path: str
    reason: str

    def __str__(self) -> str:
        where = f"partition {self.partition!r} of table" if self.partition else "table"
        return (
            f"{where} {self.table!r} has changed since the write began: {self.path!r} "
            f"{self.reason}; nothing was changed, begin again"
        )


@dataclass(eq=False)
class WriteConflictError(WriteError):
    """Others published files that a write would remove; nothing was moved."""

    table: str
    mode: str
    folders: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        where = f" in {self.folders[0]!r}" if self.folders and self.folders[0] else ""
        if len(self.folders) > 1:
            where += f" and {len(self.folders) - 1:,} more"
        return (
            f"mode {self.mode} would remove files of table {self.table!r}{where} that {self.reason} "
            "after this write began; nothing was changed. Write again from the table's current "
            'rows, or with conflict="overwrite" to remove them'
        )


@dataclass(eq=False)
class DefinitionChangedError(WriteError):
    """A table's definition has changed since a write to it began; nothing was moved."""

    table: str
    message = (
        "the definition of table {table!r} has changed since the write began; nothing was "
        "changed, {remedy}"
    )
    remedy = "write again"


@dataclass(eq=False)
class CommitBlockedError(WriteError):
    """Another commit takes too long, or cannot be finished; nothing was moved."""

    table: str
    waited_s: float
    reason: str
    message = (
        "waited {waited_s:.0f} s to commit to table {table!r}, and nothing was changed: {reason}"
    )


@dataclass(eq=False)
class CommitInterruptedError(WriteError):
    """A commit stopped halfway; the next writer finishes it."""

    table: str
    write_id: str
    done: int
    total: int
    reason: str
    message = (
        "the commit of write {write_id} to table {table!r} stopped with {done:,} of "
        "{total:partition} moved in ({reason}): no row is lost; {remedy}"
    )
    remedy = "fix that; the next write, or `windrow write recover {table}`, then finishes it"


@dataclass(eq=False)
class UnpublishedError(WriteError):
    """All files were moved in, but the coordinator refuses the inventory."""

    table: str
    write_id: str
    reason: str
    message = (
        "the files of write {write_id} are in table {table!r}, but the coordinator refuses its "
        "inventory ({reason}): {remedy}"
    )
    remedy = "fix that, then `windrow table refresh {table}`"


@dataclass(eq=False)
class UnknownCommitError(WriteError):
    """The coordinator does not know an interrupted commit."""

    table: str
    folder: str
    message = (
        "this coordinator does not know an interrupted commit to table {table!r} ({folder!r}): it "
        "belongs to another coordinator, or this one's database was lost; {remedy}"
    )
    remedy = "recover it there, or here with `windrow write recover {table} --force`"


@dataclass(eq=False)
class UnsafeIntentError(WriteError):
    """The intent of an interrupted commit names what is not part of the table."""

    table: str
    folder: str
    reason: str
    message = (
        "the intent of the commit in {folder!r} is not followed, because {reason}; nothing was "
        "changed: {remedy}"
    )
    remedy = (
        "find out who wrote it, move that folder away, then `windrow write recover {table} --force`"
    )


@dataclass(eq=False)
class UnreadableIntentError(WriteError):
    """The intent of an interrupted commit cannot be read."""

    folder: str
    reason: str
    message = "the intent of the commit in {folder!r} cannot be read ({reason}): {remedy}"
    remedy = "recover it with the version of Windrow that wrote it"
