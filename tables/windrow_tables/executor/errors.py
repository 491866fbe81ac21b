"""Errors that reading a split group raises on an executor.

Spark carries an executor's error to the driver as text, so the text alone must say which file
it is about and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow_core.errors import StatedError


class TaskReadError(StatedError):
    """Base of every error that reading a split group raises on purpose."""


@dataclass(eq=False)
class StaleFileError(TaskReadError):
    """A file has changed since the plan was made.

    Attributes:
        aspect: What differs: `size in bytes`, `modification time in ns`, `ETag` or `row count`.
        before: Its value in the plan.
        now: Its value now.
    """

    path: str
    aspect: str
    before: int | str | None
    now: int | str | None
    message = (
        "file {path!r} has changed since the plan was made: its {aspect} was {before} and is "
        "{now}; {remedy}"
    )
    remedy = "refresh the table and plan again"


@dataclass(eq=False)
class VanishedFileError(StaleFileError):
    """A file of the plan does not exist any more."""

    aspect: str = field(default="existence", init=False)
    before: int | None = field(default=None, init=False)
    now: int | None = field(default=None, init=False)
    message = "file {path!r} has vanished since the plan was made; {remedy}"
    remedy = "refresh the table and plan again"


@dataclass(eq=False)
class UnreadableFileError(TaskReadError):
    """A file cannot be opened, or is not of its format.

    Attributes:
        reason: What is wrong, for example the message of the format's reader.
        format: The format; empty if the file cannot be read as anything.
    """

    path: str
    reason: str
    format: str = ""
    message = "file {path!r} cannot be read{as_format}: {reason}; {remedy}"
    remedy = "make it readable, or restore it if it is damaged, then refresh and plan again"

    @property
    def as_format(self) -> str:
        """The format's part of the message."""
        return f" as {self.format}" if self.format else ""


@dataclass(eq=False)
class InaccessibleFileError(UnreadableFileError):
    """The operating system does not let a file be read, whatever is in it.

    The reason says what to do about that.
    """

    message = "file {path!r} cannot be read: {reason}; {remedy}"
    remedy = "then read again, with the same plan"


@dataclass(eq=False)
class StoreError(UnreadableFileError):
    """An object store does not return a file; the reason completes a sentence about the file."""

    message = "file {path!r} {reason}; {remedy}"
    remedy = (
        "credentials, region and endpoint come from the executors' environment: see "
        "docs/how-to/object-stores.md"
    )


@dataclass(eq=False)
class ScratchError(TaskReadError):
    """Temporary files, for what does not fit into memory, cannot be written.

    Attributes:
        folder: Folder of the temporary files.
        reason: Why, and what to do about it.
    """

    folder: str
    reason: str
    message = "temporary files of this task cannot be written in {folder!r}: {reason}; {remedy}"
    remedy = "or name another folder in SPARK_LOCAL_DIRS on the executors"


@dataclass(eq=False)
class AcidFileError(TaskReadError):
    """A file of a transactional table is not as Hive writes it."""

    path: str
    reason: str
    message = "file {path!r} of a transactional table cannot be read: {reason}; {remedy}"
    remedy = "repair its folder in Hive, then refresh the table and plan again"


@dataclass(eq=False)
class DeletesError(TaskReadError):
    """The deleted rows of a file cannot be found out, or do not fit the file."""

    path: str
    reason: str
    message = "file {path!r} cannot be read: {reason}; {remedy}"
    remedy = "repair the table with its own engine, then refresh it and plan again"


@dataclass(eq=False)
class AmbiguousColumnError(TaskReadError):
    """A file has several columns that could be the wanted one.

    Attributes:
        column: The wanted column.
        candidates: The names in the file that match it.
    """

    path: str
    column: str
    candidates: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"file {self.path!r} has several columns that could be {self.column!r}:"
            f" {', '.join(map(repr, self.candidates))}; rewrite the file with one of them"
        )


@dataclass(eq=False)
class ColumnTypeError(TaskReadError):
    """A column of a file has a type that does not widen to the table's.

    Attributes:
        column: The column, with the path inside it if it is nested.
        file_type: Its type in the file, as Arrow writes it.
        table_type: Its type in the table, as Arrow writes it.
    """

    path: str
    column: str
    file_type: str
    table_type: str
    message = (
        "column {column!r} of file {path!r} is {file_type}, which cannot be read as the table's "
        "{table_type}; {remedy}"
    )
    remedy = "give the table's column a type that holds both, or rewrite the file"


@dataclass(eq=False)
class OldTimeError(TaskReadError):
    """A column holds old dates or times of an uncertain calendar.

    Attributes:
        reason: Why, and what can be done.
    """

    path: str
    column: str
    reason: str
    message = "column {column!r} of file {path!r} {reason}"


@dataclass(eq=False)
class UnsortedFileError(TaskReadError):
    """A file is not sorted by the columns that the table declares it to be sorted by."""

    path: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"file {self.path!r} is not sorted by {', '.join(self.columns)} as the table"
            " declares; rewrite the file, or register the table without sort columns"
        )


@dataclass(eq=False)
class ResidualFilterError(TaskReadError):
    """The part of the filter that is left to the reader cannot be evaluated."""

    reason: str
    message = "the plan's residual filter cannot be evaluated: {reason}; {remedy}"
    remedy = "use a client of the same version as the coordinator"
