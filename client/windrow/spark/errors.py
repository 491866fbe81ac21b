"""Errors of reading a plan on Spark, as the driver sees them.

* WindrowError
  + ReadError
    - SparkConnectError         the session has no JVM within reach
    - CaseSensitiveNamesError   the session tells names apart by case
    - UnsupportedFormatError    the table's files are not Parquet
    - UnsupportedDeletesError   rows of the files were deleted since
    - UnsupportedTypeError      a column's type cannot be read
    - TaskFailedError           a task stopped; `kind` names an error of `executor.errors`
"""

from __future__ import annotations

from windrow.errors import WindrowError


class ReadError(WindrowError):
    """Base of every error of reading a plan on Spark."""


class SparkConnectError(ReadError):
    """The session is one of Spark Connect, which gives no way to place tasks."""

    def __str__(self) -> str:
        return (
            "Windrow needs a classic Spark session: Spark Connect cannot say where rows and tasks go;"
            " start the session with `.master(...)` instead of `.remote(...)`"
        )


class CaseSensitiveNamesError(ReadError):
    """The session tells `id` from `ID`, and a table's files were united without regard to case."""

    def __str__(self) -> str:
        return (
            "spark.sql.caseSensitive is true, and a table's columns are united without regard to"
            " case, so that rows could be others than Spark's: set it to false to read them"
        )


class UnsupportedFormatError(ReadError):
    """The table's files are of a format that can be planned, but not read.

    Attributes:
        table: The table.
        format: Its format.
    """

    def __init__(self, table: str, format: str) -> None:
        super().__init__(table, format)
        self.table = table
        self.format = format

    def __str__(self) -> str:
        return (
            f"table {self.table!r} is {self.format}, and only Parquet is read: read its location"
            f" with `spark.read.{self.format}`, or the splits of `client.plan` with a reader of"
            " your own"
        )


class UnsupportedDeletesError(ReadError):
    """Delete files apply to the plan's files, and reading them would bring deleted rows back.

    Attributes:
        table: The table.
        delete_files: How many there are.
    """

    def __init__(self, table: str, delete_files: int) -> None:
        super().__init__(table, delete_files)
        self.table = table
        self.delete_files = delete_files

    def __str__(self) -> str:
        return (
            f"{self.delete_files:,} delete files apply to the planned files of {self.table!r}, and"
            " they are not applied here: compact the table first, or read the splits of"
            " `client.plan` with a reader that applies them"
        )


class UnsupportedTypeError(ReadError):
    """A column has a type that cannot pass from Arrow to Spark.

    Attributes:
        column: The column.
        type_name: Its type, as Spark SQL writes it.
    """

    def __init__(self, column: str, type_name: str) -> None:
        super().__init__(column, type_name)
        self.column = column
        self.type_name = type_name

    def __str__(self) -> str:
        return (
            f"column {self.column!r} is {self.type_name}, which this reader cannot hand to Spark;"
            " leave it out of the columns asked for"
        )


class TaskFailedError(ReadError):
    """A task could not read its group.

    Attributes:
        kind: The error's class in `windrow.spark.executor.errors`, such as `StaleFileError`.
        detail: What it said: the file, what is wrong with it and what to do.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    def __str__(self) -> str:
        return self.detail
