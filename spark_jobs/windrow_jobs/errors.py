"""Errors that Spark jobs raise.

* JobError
  + UnfitTableError        the job cannot take the inventory of such a table
  + UnfitFilesError        files or folders are in the way; nothing was published
  + TableMovedError        somebody changed the table meanwhile; nothing was published
"""

from __future__ import annotations

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
