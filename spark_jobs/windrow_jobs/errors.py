"""Errors that Spark jobs raise."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_calls.errors import WindrowError


class JobError(WindrowError):
    """A Spark job could not do everything; the text says what is left, and what to do."""


@dataclass(eq=False)
class UnfitTableError(JobError):
    """The job cannot take the inventory of such a table."""

    table: str
    reason: str
    message = "table {table!r} {reason}"


@dataclass(eq=False)
class UnfitFilesError(JobError):
    """Files or folders of the table prevent an inventory.

    Attributes:
        reason: The files or folders, and what to do about them.
    """

    table: str
    reason: str
    message = "nothing was published for table {table!r}: {reason}"


@dataclass(eq=False)
class TableMovedError(JobError):
    """The table's definition or current snapshot changed while its files were read."""

    table: str
    message = (
        "table {table!r} was changed while its files were read, and nothing was published: {remedy}"
    )
    remedy = "run the job again"


@dataclass(eq=False)
class NoConsentError(JobError):
    """Readers that list folders would see rows twice, and nobody has agreed to that."""

    table: str
    message = (
        "nothing was compacted: during a compaction of table {table!r}, readers that list "
        "folders find old and new files, and so every row twice; {remedy}"
    )
    remedy = (
        "if all its readers use Windrow, or may see that for a while, give "
        "--readers-may-see-both, or readers_may_see_both=True in Python"
    )
