"""Errors of writes to tables.

* WindrowError
  + WriteError
    - UnfitLocationError          nothing can be committed there
    - StagedFilesError            what was staged does not fit the table
    - PartitionChangedError       files that are to be replaced have changed
    - WriteConflictError          others have added files to what is to be replaced
    - DefinitionChangedError      the table is defined otherwise by now
    - CommitBlockedError          another write moves its files in for too long
    - CommitInterruptedError      some partitions are moved in, and the rest is not yet
    - UnpublishedError            all files are moved in, and the coordinator refuses them
    - UnknownCommitError          a commit that the coordinator does not know was interrupted
    - UnreadableIntentError       what an interrupted commit was to move cannot be told
"""

from __future__ import annotations

from windrow.errors import WindrowError


class WriteError(WindrowError):
    """Base of what stops a write to a table."""


class UnfitLocationError(WriteError):
    """Nothing can be committed at a table's location."""

    def __init__(self, table: str, location: str, reason: str) -> None:
        super().__init__(table, location, reason)
        self.table = table
        self.location = location
        self.reason = reason

    def __str__(self) -> str:
        return f"table {self.table!r} cannot be written at {self.location!r}: {self.reason}"


class StagedFilesError(WriteError):
    """What was staged does not fit the table; nothing was moved."""

    def __init__(self, table: str, path: str, reason: str) -> None:
        super().__init__(table, path, reason)
        self.table = table
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path!r} cannot be moved into table {self.table!r}: {self.reason}"


class PartitionChangedError(WriteError):
    """Files that a write takes the place of have changed since it began; nothing was moved."""

    def __init__(self, table: str, partition: str, path: str, reason: str) -> None:
        super().__init__(table, partition, path, reason)
        self.table = table
        self.partition = partition
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        where = f"partition {self.partition!r} of table" if self.partition else "table"
        return (
            f"{where} {self.table!r} has changed since the write began: {self.path!r} "
            f"{self.reason}; nothing was changed, begin again"
        )


class WriteConflictError(WriteError):
    """Files came into what a write replaces after it began; nothing was moved."""

    def __init__(self, table: str, mode: str, folders: tuple[str, ...], reason: str) -> None:
        super().__init__(table, mode, folders, reason)
        self.table = table
        self.mode = mode
        self.folders = folders
        self.reason = reason

    def __str__(self) -> str:
        where = f" in {self.folders[0]!r}" if self.folders and self.folders[0] else ""
        if len(self.folders) > 1:
            where += f" and {len(self.folders) - 1:,} more"
        return (
            f"mode {self.mode} would remove files of table {self.table!r}{where} that {self.reason} "
            "after this write began; nothing was changed. Write again from the rows that are there "
            'now, or with conflict="overwrite" to remove them'
        )


class DefinitionChangedError(WriteError):
    """A table's definition has changed since a write to it began; nothing was moved."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"the definition of table {self.table!r} has changed since the write began; nothing "
            "was changed, write again"
        )


class CommitBlockedError(WriteError):
    """Another write has been moving its files in for too long; nothing was moved."""

    def __init__(self, table: str, waited_s: float, reason: str) -> None:
        super().__init__(table, waited_s, reason)
        self.table = table
        self.waited_s = waited_s
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"waited {self.waited_s:.0f} s to commit to table {self.table!r}, and nothing was "
            f"changed: {self.reason}"
        )


class CommitInterruptedError(WriteError):
    """A commit came to a halt halfway; whoever comes next finishes it."""

    def __init__(self, table: str, write_id: str, done: int, total: int, reason: str) -> None:
        super().__init__(table, write_id, done, total, reason)
        self.table = table
        self.write_id = write_id
        self.done = done
        self.total = total
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the commit of write {self.write_id} to table {self.table!r} came to a halt with "
            f"{self.done:,} of {self.total:,} partitions moved in ({self.reason}): no row is lost; "
            f"mend that, and `windrow write recover {self.table}` or the next write finishes it"
        )


class UnpublishedError(WriteError):
    """All files were moved in, and the coordinator refuses the inventory."""

    def __init__(self, table: str, write_id: str, reason: str) -> None:
        super().__init__(table, write_id, reason)
        self.table = table
        self.write_id = write_id
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the files of write {self.write_id} lie in table {self.table!r}, and the coordinator "
            f"refuses its inventory ({self.reason}): mend that, then "
            f"`windrow table refresh {self.table}`"
        )


class UnknownCommitError(WriteError):
    """A commit was interrupted that the coordinator knows nothing of."""

    def __init__(self, table: str, folder: str) -> None:
        super().__init__(table, folder)
        self.table = table
        self.folder = folder

    def __str__(self) -> str:
        return (
            f"a commit to table {self.table!r} was interrupted that this coordinator does not know "
            f"({self.folder!r}): it belongs to another coordinator, or this one's database was "
            f"lost; recover it there, or here with `windrow write recover {self.table} --force`"
        )


class UnreadableIntentError(WriteError):
    """What an interrupted commit was to move cannot be told."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(folder, reason)
        self.folder = folder
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the intent of the commit in {self.folder!r} cannot be read ({self.reason}): recover "
            "it with the version of Windrow that wrote it"
        )
