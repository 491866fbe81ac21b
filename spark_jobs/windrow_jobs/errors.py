"""Errors that Spark jobs raise.

* JobError
  + UnfitTableError        the job cannot take the inventory of such a table
  + UnfitFilesError        files or folders are in the way; nothing was published
  + TableMovedError        somebody changed the table meanwhile; nothing was published
  + ColdFilesError         cacheable files are in no cache
  + RowsDifferError        rows were not the same once they were rewritten
  + PartitionsLeftError    partitions could not be rewritten
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windrow.errors import WindrowError


class JobError(WindrowError):
    """Base of every error that a Spark job raises on purpose."""


class UnfitTableError(JobError):
    """The job cannot take the inventory of such a table."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(table, reason)
        self.table = table
        self.reason = reason

    def __str__(self) -> str:
        return f"table {self.table!r} {self.reason}"


class UnfitFilesError(JobError):
    """Files or folders of the table are in the way of an inventory.

    Attributes:
        reason: Which, and what to do about it.
    """

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(table, reason)
        self.table = table
        self.reason = reason

    def __str__(self) -> str:
        return f"nothing was published of table {self.table!r}: {self.reason}"


class TableMovedError(JobError):
    """The table's definition or current snapshot changed while its files were read."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"table {self.table!r} was changed while its files were read, and nothing was "
            "published: run the job again"
        )


class ColdFilesError(JobError):
    """Cacheable files are not in the cache of the worker that is to hold them.

    Attributes:
        table: The table.
        elsewhere_files: Files whose tasks Spark did not run on their worker.
        failed_files: Files that could not be fetched, or not be kept.
        reasons: Why, of some.
    """

    def __init__(
        self, table: str, elsewhere_files: int, failed_files: int, reasons: Sequence[str]
    ) -> None:
        super().__init__(table, elsewhere_files, failed_files, reasons)
        self.table = table
        self.elsewhere_files = elsewhere_files
        self.failed_files = failed_files
        self.reasons = reasons

    def __str__(self) -> str:
        counts = {
            "were looked at by other hosts alone": self.elsewhere_files,
            "could not be fetched or kept": self.failed_files,
        }
        said = " and ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        return (
            f"of the cacheable files of {self.table!r}, {said}: {'; '.join(self.reasons)}; what "
            "was fetched stays, and the same command again fetches the rest"
        )


class RowsDifferError(JobError):
    """What was written is not what was read; nothing of it was moved in."""

    def __init__(self, table: str, read: str, written: str) -> None:
        super().__init__(table, read, written)
        self.table = table
        self.read = read
        self.written = written

    def __str__(self) -> str:
        return (
            f"of table {self.table!r}, {self.read} were read and {self.written} written: nothing "
            "was changed; run again, and if it says the same, report it"
        )


class PartitionsLeftError(JobError):
    """Partitions could not be rewritten; others were."""

    def __init__(self, table: str, reasons: Mapping[str, str]) -> None:
        super().__init__(table, reasons)
        self.table = table
        self.reasons = reasons

    def __str__(self) -> str:
        name, reason = next(iter(self.reasons.items()))
        return (
            f"partitions of table {self.table!r} that were left as they are: "
            f"{len(self.reasons):,}, such as {name} ({reason}); the same command again tries them"
        )
