"""Errors of writing a DataFrame, as the driver sees them before anything is moved."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.models import MAX_WRITE_KEYS
from windrow_tables.commits.errors import WriteError

_MATERIALISE = (
    "write the rows to files first and read them again, or use `df.checkpoint()`, so that every "
    "attempt sees the same"
)


@dataclass(eq=False)
class UnfitRowsError(WriteError):
    """Columns of the DataFrame, or values in them, do not fit the table."""

    table: str
    reason: str
    message = "the rows do not fit table {table!r}: {reason}"


@dataclass(eq=False)
class UnstableColumnError(WriteError):
    """A column that decides where rows go may change at a task's second attempt."""

    column: str
    use: str
    reason: str
    message = (
        "column {column!r} cannot be {use}: {reason}. If a task ran again, rows would be lost or "
        "appear twice; {remedy}"
    )
    remedy = f"choose another column, or {_MATERIALISE}"


@dataclass(eq=False)
class NoSaltError(WriteError):
    """The rows of a key must be divided, and no column can divide them."""

    reasons: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        shown = "; ".join(f"{column!r}: {reason}" for column, reason in self.reasons[:5])
        return (
            "large keys need a column whose hash divides their rows, and there is none"
            f"{f' ({shown})' if shown else ''}: {_MATERIALISE}"
        )


@dataclass(eq=False)
class TooManyKeysError(WriteError):
    """The rows have more keys than a plan may have."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"the rows have more than {MAX_WRITE_KEYS:,} different values of "
            f"{', '.join(self.columns)}, which would each get a file: partition by fewer or coarser "
            "columns, or write a part of the rows at a time"
        )


@dataclass(eq=False)
class NotReproducibleError(WriteError):
    """The rows written differ from those that were counted; nothing was moved into the table."""

    table: str
    counted: str
    written: str
    message = (
        "the rows staged for table {table!r} differ from the input: {counted} in the input, "
        "{written} in files. The data is not the same each time it is computed, or rows were "
        "lost; nothing was changed. To make the data the same each time, {remedy}"
    )
    remedy = _MATERIALISE


@dataclass(eq=False)
class StagingFailedError(WriteError):
    """A Spark task could not write its files; what was staged is removed."""

    table: str
    reason: str
    message = "files for table {table!r} could not be staged, nothing was changed: {reason}"
