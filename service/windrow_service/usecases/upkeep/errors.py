"""Errors of compaction."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.usecases.errors import ConflictError, InvalidError


class InvalidCompactionError(InvalidError):
    """Selection of partitions is not valid."""


@dataclass(eq=False)
class FormatNotCompactableError(ConflictError):
    """Files of this format cannot be compacted."""

    table: str
    format: str
    message = "table {table!r} has {format} files, but only Parquet can be compacted: {remedy}"
    remedy = "rewrite it with the program that writes it"
