"""Errors of compaction.

* UseCaseError
  + InvalidCompactionError
  + FormatNotCompactableError
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.usecases.errors import UseCaseError

COMPACT_IN_HIVE = "Hive's own compaction merges its files (ALTER TABLE … COMPACT 'major')"


class InvalidCompactionError(UseCaseError):
    """The request does not fit the table."""


@dataclass(eq=False)
class FormatNotCompactableError(UseCaseError):
    """The table's files have a format that Windrow does not compact."""

    table: str
    format: str
    message = "table {table!r} is made of {format} files, and only Parquet is compacted: {remedy}"
    remedy = "rewrite it with the program that writes it"
