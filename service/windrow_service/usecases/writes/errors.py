"""Errors of writes.

* UseCaseError
  + NotFoundError
    - WriteNotFoundError
  + WriteStateError
  + WriteTakenError
  + WriteCancelledError
  + WriteNotCancellableError
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.usecases.errors import NotFoundError, UseCaseError


@dataclass(eq=False)
class WriteNotFoundError(NotFoundError):
    """The table has no such write."""

    table: str
    write_id: str
    message = "table {table!r} has no write {write_id}: {remedy}"
    remedy = "GET /tables/{table}/writes lists those it has, and a write begins in state staging"


@dataclass(eq=False)
class WriteStateError(UseCaseError):
    """A write cannot go from its state to the requested one."""

    table: str
    write_id: str
    state: str
    wanted: str
    message = "write {write_id} to table {table!r} is {state}, so it cannot be {wanted}: {remedy}"
    remedy = "a write goes from staging to committing to published, or is undone; begin another"


@dataclass(eq=False)
class WriteTakenError(UseCaseError):
    """A write belongs to another process."""

    table: str
    write_id: str
    host: str
    process: int
    message = (
        "write {write_id} to table {table!r} is in the hands of process {process} on host "
        "{host!r}: {remedy}"
    )
    remedy = "leave it to that, or wait until its lease has run out to take it over"


@dataclass(eq=False)
class WriteCancelledError(UseCaseError):
    """Somebody has cancelled a write."""

    table: str
    write_id: str
    by: str
    message = (
        "write {write_id} to table {table!r} was cancelled by {by!r}; nothing was changed: {remedy}"
    )
    remedy = "begin another"


@dataclass(eq=False)
class WriteNotCancellableError(UseCaseError):
    """A write has begun to move its files in, or is over."""

    table: str
    write_id: str
    state: str
    message = "write {write_id} to table {table!r} is {state}, and only one in state staging can be cancelled: {remedy}"
    remedy = "a commit ends in a moment, or is finished by the next write if its driver has died"
