"""Errors of erasing rows."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_calls.errors import WindrowError


class ErasureError(WindrowError):
    """Base of errors that stop an erasure."""


@dataclass(eq=False)
class UnerasableFilesError(ErasureError):
    """Files stand in the way of an erasure; nothing of this round was changed.

    Attributes:
        files: How many.
        path: One of them.
        reason: Why it cannot be read, or written anew.
    """

    table: str
    files: int
    path: str
    reason: str
    message = (
        "rows cannot be erased from table {table!r}: {files:file} cannot be read or rewritten, such "
        "as {path!r} ({reason}); {remedy}"
    )
    remedy = "repair or remove them, then erase again"


@dataclass(eq=False)
class RestlessTableError(ErasureError):
    """Others change a table faster than rows are erased from it."""

    table: str
    reason: str
    message = (
        "others keep changing table {table!r} ({reason}), so there is no receipt: rows may be left; "
        "{remedy}"
    )
    remedy = "erase again when its writers pause"
