"""What can go wrong with erasures."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.usecases.errors import ConflictError, InvalidError


@dataclass(eq=False)
class UnerasableTableError(ConflictError):
    """No rows are erased from the table.

    Attributes:
        reason: Why not, and what to do.
    """

    table: str
    reason: str
    message = "no rows are erased from table {table!r}: {reason}"


class InvalidErasureError(InvalidError):
    """Rows to erase are not named as they should be."""
