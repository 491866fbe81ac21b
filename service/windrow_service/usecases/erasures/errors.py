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


@dataclass(eq=False)
class RemainsError(ConflictError):
    """Remains of erased rows cannot be erased now.

    Attributes:
        reason: What stays, and why.
    """

    table: str
    reason: str
    message = (
        "the rows are gone from the files of table {table!r}, but there is no receipt: {reason}; "
        "{remedy}"
    )
    remedy = "erase again, which continues from here"


class InvalidErasureError(InvalidError):
    """Rows to erase are not named as they should be."""
