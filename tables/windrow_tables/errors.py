"""Errors of reading a table, with Spark or without."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_calls.errors import WindrowError


class ReadError(WindrowError):
    """Base of every error of reading a plan on Spark."""


@dataclass(eq=False)
class UnfitReadError(ReadError):
    """A table cannot be used in this way, or not with these columns.

    Attributes:
        reason: What cannot be done, and why.
        way_out: What to do instead.
    """

    reason: str
    way_out: str
    message = "{reason}: {way_out}"


@dataclass(eq=False)
class OnlySparkReadsError(ReadError):
    """Only Spark's own reader reads some files, but the request rules it out.

    Attributes:
        obstacle: Why Spark's own reader cannot be used.
        way_out: What to do about it.
        path: One of the files, if it depends on the file and the columns asked for.
    """

    table: str
    format: str
    obstacle: str
    way_out: str
    path: str = ""

    def __str__(self) -> str:
        what = (
            f"file {self.path!r} of table {self.table!r} has a column that only Spark's own "
            f"{self.format.upper()} reader reads correctly"
            if self.path
            else f"table {self.table!r} is {self.format}, which only Spark's own reader reads"
        )
        return f"{what}, and {self.obstacle}: {self.way_out}"


@dataclass(eq=False)
class UnsupportedDeletesError(ReadError):
    """Delete files apply to the plan's files; without them, deleted rows would reappear."""

    table: str
    delete_files: int
    message = (
        "the planned files of {table!r} have {delete_files:delete file}, which cannot be applied "
        "here: {remedy}"
    )
    remedy = (
        "compact the table first, or read the splits of `client.plan` with a reader that applies "
        "them"
    )
