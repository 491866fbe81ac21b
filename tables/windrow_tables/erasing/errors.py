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


@dataclass(eq=False)
class LostProcessError(ErasureError):
    """A process that worked on files was lost; the table is whole, and no receipt is given."""

    table: str
    message = (
        "the erasure from table {table!r} did not finish: a process was lost, most likely because "
        "memory ran out; {remedy}"
    )
    remedy = (
        "erase again with fewer processes (--processes); a script that names a number needs "
        "`if __name__ == '__main__':` around what it does"
    )
