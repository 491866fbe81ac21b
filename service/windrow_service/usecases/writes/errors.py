"""Errors of writes."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Call
from windrow_service.usecases.errors import ConflictError, NotFoundError


@dataclass(eq=False)
class WriteNotFoundError(NotFoundError):
    """Write not found."""

    table: str
    write_id: str
    message = "table {table!r} has no write {write_id}: {remedy}"
    remedy = "{call} lists its writes, and a write begins in state staging"
    call = Call("list_writes", name="table")


@dataclass(eq=False)
class WriteStateError(ConflictError):
    """Write is in another state."""

    table: str
    write_id: str
    state: str
    next_state: str
    message = (
        "write {write_id} to table {table!r} is {state}, so it cannot be {next_state}: {remedy}"
    )
    remedy = "a write goes from staging to committing to published, or is undone; begin another"


@dataclass(eq=False)
class BatchOrderError(ConflictError):
    """Stream has published other batches."""

    table: str
    query_id: str
    newest: int | None
    previous: int | None
    message = (
        "the newest batch of stream {query_id} in table {table!r} is {newest_batch}, but the write "
        "follows {previous_batch}: {remedy}"
    )
    remedy = "skip the batches that {call} lists as published"
    call = Call("list_streams", name="table")

    @property
    def newest_batch(self) -> str:
        """The newest batch in the table, in words."""
        return _batch(self.newest)

    @property
    def previous_batch(self) -> str:
        """The batch that the write follows, in words."""
        return _batch(self.previous)


@dataclass(eq=False)
class WriteTakenError(ConflictError):
    """Write belongs to another process."""

    table: str
    write_id: str
    host: str
    process: int
    message = (
        "write {write_id} to table {table!r} belongs to process {process} on host {host!r}: "
        "{remedy}"
    )
    remedy = "leave it to that process, or take it over once its lease has run out"


@dataclass(eq=False)
class WriteCancelledError(ConflictError):
    """Write was cancelled."""

    table: str
    write_id: str
    by: str
    message = (
        "write {write_id} to table {table!r} was cancelled by {by!r}; nothing was changed: {remedy}"
    )
    remedy = "begin another"


@dataclass(eq=False)
class WriteNotCancellableError(ConflictError):
    """Write can no longer be cancelled."""

    table: str
    write_id: str
    state: str
    message = (
        "write {write_id} to table {table!r} is {state}, and only a write in state staging can be "
        "cancelled: {remedy}"
    )
    remedy = "a commit ends in a moment; if its driver has died, the next write finishes it"


def _batch(batch_id: int | None) -> str:
    return "none" if batch_id is None else str(batch_id)
