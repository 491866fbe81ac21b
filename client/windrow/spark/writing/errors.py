"""Errors of writing a DataFrame, as the driver sees them before anything is moved.

* WriteError                    see `windrow.commits.errors`
  + UnfitRowsError              columns or partition values do not fit the table
  + UnstableColumnError         a column that places rows may have another value at a second attempt
  + NoSaltError                 no column can divide the rows of a key
  + TooManyKeysError            the rows have more keys than a plan may have
  + NotReproducibleError        the rows written are not those that were counted
  + StagingFailedError          a Spark task could not write its files
"""

from __future__ import annotations

from windrow.commits.errors import WriteError
from windrow.models import MAX_WRITE_KEYS

_MATERIALISE = (
    "write the rows to files first and read them again, or use `df.checkpoint()`, so that every "
    "attempt sees the same"
)


class UnfitRowsError(WriteError):
    """Columns of the DataFrame, or values in them, do not fit the table."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(table, reason)
        self.table = table
        self.reason = reason

    def __str__(self) -> str:
        return f"the rows do not fit table {self.table!r}: {self.reason}"


class UnstableColumnError(WriteError):
    """A column that decides where rows go may have another value at a task's second attempt."""

    def __init__(self, column: str, use: str, reason: str) -> None:
        super().__init__(column, use, reason)
        self.column = column
        self.use = use
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"column {self.column!r} cannot be {self.use}: {self.reason}. If a task ran again, rows "
            f"would be lost or there twice; take another column, or {_MATERIALISE}"
        )


class NoSaltError(WriteError):
    """The rows of a key are to be divided, and no column can do it."""

    def __init__(self, reasons: tuple[tuple[str, str], ...]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        shown = "; ".join(f"{column!r}: {reason}" for column, reason in self.reasons[:5])
        return (
            "large keys need a column whose hash divides their rows, and there is none"
            f"{f' ({shown})' if shown else ''}: {_MATERIALISE}"
        )


class TooManyKeysError(WriteError):
    """The rows have more keys than a plan may have."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        super().__init__(columns)
        self.columns = columns

    def __str__(self) -> str:
        return (
            f"the rows have more than {MAX_WRITE_KEYS:,} different values of "
            f"{', '.join(self.columns)}, which would each get a file: partition by fewer or coarser "
            "columns, or write a part of the rows at a time"
        )


class NotReproducibleError(WriteError):
    """The rows written are not those that were counted; nothing was moved into the table."""

    def __init__(self, table: str, counted: str, written: str) -> None:
        super().__init__(table, counted, written)
        self.table = table
        self.counted = counted
        self.written = written

    def __str__(self) -> str:
        return (
            f"the rows staged for table {self.table!r} are not those of the data: {self.counted} "
            f"there, {self.written} in files. The data is not the same each time it is computed, "
            f"or rows were lost; nothing was changed. To make it so, {_MATERIALISE}"
        )


class StagingFailedError(WriteError):
    """A Spark task could not write its files; what was staged is removed."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(table, reason)
        self.table = table
        self.reason = reason

    def __str__(self) -> str:
        return f"files for table {self.table!r} could not be staged, nothing was changed: {self.reason}"
