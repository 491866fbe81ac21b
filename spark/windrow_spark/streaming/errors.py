"""Errors of streams."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_calls.errors import WindrowError


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
class SnapshotsGoneError(StreamError):
    """A snapshot that a stream goes on from, or one after it, has been dropped."""

    table: str
    snapshot_id: int
    message = (
        "snapshot {snapshot_id} of table {table!r}, or one that follows it, is no longer kept, "
        "so Windrow cannot tell what was added since: {remedy}"
    )
    remedy = (
        "start a query with a new checkpoint, from the whole table or with the option "
        "startingSnapshot; WINDROW_SNAPSHOTS__KEEP_LAST and WINDROW_SNAPSHOTS__MAX_AGE keep "
        "snapshots for longer"
    )


@dataclass(eq=False)
class RemovedFilesError(StreamError):
    """Files that a stream may have read are gone, or were rewritten."""

    table: str
    snapshot_id: int
    files: int
    message = (
        "snapshot {snapshot_id} of table {table!r} lacks {files} of the files before it: their rows "
        "were removed or rewritten, which a stream cannot undo; {remedy}"
    )
    remedy = "give the option ('removedFiles', 'ignore'), to read only what is added"


@dataclass(eq=False)
class StreamColumnsError(StreamError):
    """The columns of a table are no longer those that a stream began with."""

    table: str
    columns: str
    message = "{columns} of table {table!r} changed since the stream was started: {remedy}"
    remedy = "start the query again"


@dataclass(eq=False)
class WaitingBatchError(StreamError):
    """The folder of a waiting batch cannot be read."""

    path: str
    reason: str
    message = "the rows of a stream that wait in {path!r} cannot be read: {reason}; {remedy}"
    remedy = "a newer version may have written them: start the query with that one"
