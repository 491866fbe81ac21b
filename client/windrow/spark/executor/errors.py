"""Errors that reading a split group raises on an executor.

* TaskReadError
  + StaleFileError
    - VanishedFileError
  + UnreadableFileError
  + AmbiguousColumnError
  + ColumnTypeError
  + OldTimeError
  + UnsortedFileError
  + ResidualFilterError

Spark carries an executor's error to the driver as text, so the text alone must say which file
it is about and what to do.
"""

from __future__ import annotations


class TaskReadError(Exception):
    """Base of every error that reading a split group raises on purpose."""


class StaleFileError(TaskReadError):
    """A file is not what it was when the plan was made.

    Attributes:
        path: The file.
        aspect: What differs: `size in bytes`, `modification time in ns` or `row count`.
        planned: Its value in the plan.
        found: Its value now.
    """

    def __init__(self, path: str, aspect: str, planned: int | None, found: int | None) -> None:
        super().__init__(path, aspect, planned, found)
        self.path = path
        self.aspect = aspect
        self.planned = planned
        self.found = found

    def __str__(self) -> str:
        return (
            f"file {self.path!r} has changed since the plan was made: its {self.aspect} was"
            f" {self.planned} and is {self.found}; refresh the table and plan again"
            " (in full, `refresh --full`, if files are written in place)"
        )


class VanishedFileError(StaleFileError):
    """A file of the plan does not exist any more."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "existence", None, None)
        self.args = (path,)

    def __str__(self) -> str:
        return (
            f"file {self.path!r} has vanished since the plan was made;"
            " refresh the table and plan again"
        )


class UnreadableFileError(TaskReadError):
    """A file cannot be opened, or is not valid Parquet.

    Attributes:
        path: The file.
        reason: What the operating system or the Parquet reader said.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"file {self.path!r} cannot be read as Parquet: {self.reason};"
            " repair or remove the file, then refresh the table and plan again"
        )


class AmbiguousColumnError(TaskReadError):
    """A file has several columns that could be the one wanted.

    Attributes:
        path: The file.
        column: The column wanted.
        candidates: The names in the file that match it.
    """

    def __init__(self, path: str, column: str, candidates: tuple[str, ...]) -> None:
        super().__init__(path, column, candidates)
        self.path = path
        self.column = column
        self.candidates = candidates

    def __str__(self) -> str:
        return (
            f"file {self.path!r} has several columns that could be {self.column!r}:"
            f" {', '.join(map(repr, self.candidates))}; rewrite the file with one of them"
        )


class ColumnTypeError(TaskReadError):
    """A column of a file has a type that does not widen to the table's.

    Attributes:
        path: The file.
        column: The column, with the path inside it when it is nested.
        file_type: Its type in the file, as Arrow writes it.
        table_type: Its type in the table, as Arrow writes it.
    """

    def __init__(self, path: str, column: str, file_type: str, table_type: str) -> None:
        super().__init__(path, column, file_type, table_type)
        self.path = path
        self.column = column
        self.file_type = file_type
        self.table_type = table_type

    def __str__(self) -> str:
        return (
            f"column {self.column!r} of file {self.path!r} is {self.file_type}, which cannot be"
            f" read as the table's {self.table_type}; declare the column with a type that holds"
            " both, or rewrite the file"
        )


class OldTimeError(TaskReadError):
    """A column holds old dates or times that cannot be told.

    Attributes:
        path: The file.
        column: The column.
        reason: Why, and what can be done.
    """

    def __init__(self, path: str, column: str, reason: str) -> None:
        super().__init__(path, column, reason)
        self.path = path
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"column {self.column!r} of file {self.path!r} {self.reason}"


class UnsortedFileError(TaskReadError):
    """A file is not sorted by the columns that the table declares it to be sorted by.

    Attributes:
        path: The file.
        columns: The sort columns.
    """

    def __init__(self, path: str, columns: tuple[str, ...]) -> None:
        super().__init__(path, columns)
        self.path = path
        self.columns = columns

    def __str__(self) -> str:
        return (
            f"file {self.path!r} is not sorted by {', '.join(self.columns)} as the table"
            " declares; rewrite the file, or register the table without sort columns"
        )


class ResidualFilterError(TaskReadError):
    """The part of the filter that is left to the reader cannot be evaluated.

    Attributes:
        reason: What stands in the way.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the plan's residual filter cannot be evaluated: {self.reason};"
            " use a client of the same version as the coordinator"
        )
