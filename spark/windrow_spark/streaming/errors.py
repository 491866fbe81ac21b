"""Errors of streams."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import WindrowError


class StreamError(WindrowError):
    """Base of errors that stop a stream."""


@dataclass(eq=False)
class CheckpointLostError(StreamError):
    """A query seems to be an earlier one that has lost its checkpoint; nothing was written.

    Attributes:
        table: The table.
        query_id: The query.
        earlier_id: The earlier query.
        likeness: What both have in common.
        batch_id: The newest batch of the earlier query.
    """

    table: str
    query_id: str
    earlier_id: str
    likeness: str
    batch_id: int
    message = (
        "query {query_id} is new, but another one with {likeness} has written table {table!r} up "
        "to its batch {batch_id}: if its checkpoint is gone, rows would be there twice; nothing "
        "was written: {remedy}"
    )
    remedy = (
        "restore the checkpoint of query {earlier_id} or, if all rows are new, give the option "
        "('replaces_query', '{earlier_id}')"
    )


@dataclass(eq=False)
class WaitingBatchError(StreamError):
    """The folder of a waiting batch cannot be read."""

    path: str
    reason: str
    message = "the rows of a stream that wait in {path!r} cannot be read: {reason}; {remedy}"
    remedy = "a newer version may have written them: start the query with that one"
