"""Errors of compaction.

* UseCaseError
  + InvalidCompactionError
  + FormatNotCompactableError
"""

from windrow_service.usecases.errors import UseCaseError


class InvalidCompactionError(UseCaseError):
    """What was asked for does not fit the table."""


class FormatNotCompactableError(UseCaseError):
    """The table's files are of a format that is not rewritten."""

    def __init__(self, table: str, format: str) -> None:
        super().__init__(table, format)
        self.table = table
        self.format = format

    def __str__(self) -> str:
        return (
            f"table {self.table!r} is made of {self.format} files, and only Parquet is compacted: "
            "rewrite it with the program that writes it"
        )
