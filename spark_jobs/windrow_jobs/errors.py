"""Errors that Spark jobs raise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.errors import WindrowError


class JobError(WindrowError):
    """Base of every error that a Spark job raises on purpose."""


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
class ColdFilesError(JobError):
    """Cacheable files are not in the cache of the worker that should hold them.

    Attributes:
        elsewhere_files: Files whose tasks Spark did not run on their worker.
        failed_files: Files that could not be fetched or kept.
        reasons: Reasons for a few of them.
    """

    table: str
    elsewhere_files: int
    failed_files: int
    reasons: Sequence[str]

    def __str__(self) -> str:
        counts = {
            "were seen only by other hosts": self.elsewhere_files,
            "could not be fetched or kept": self.failed_files,
        }
        failed = " and ".join(f"{count:,} {text}" for text, count in counts.items() if count)
        return (
            f"of the cacheable files of {self.table!r}, {failed}: {'; '.join(self.reasons)}; "
            "fetched files stay cached, and a later run fetches only the rest"
        )


@dataclass(eq=False)
class PartitionsLeftError(JobError):
    """Partitions could not be rewritten; others were."""

    table: str
    reasons: Mapping[str, str]

    def __str__(self) -> str:
        name, reason = next(iter(self.reasons.items()))
        return (
            f"partitions of table {self.table!r} that could not be rewritten: "
            f"{len(self.reasons):,}, such as {name} ({reason}); the same command tries them again"
        )
