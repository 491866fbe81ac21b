"""Wire models of streams: queries that write to a table batch by batch."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import Field, StringConstraints

from windrow_core.models.base import Answer, Request, Whole

QUERY_ID_PATTERN = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
MAX_CHECKPOINT_CHARACTERS = 4_096

QueryId: TypeAlias = Annotated[str, StringConstraints(pattern=QUERY_ID_PATTERN)]
_BatchId: TypeAlias = Annotated[int, Whole(0, 2**62)]
_QueryName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1_024)]
_Checkpoint: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_CHECKPOINT_CHARACTERS)
]


class StreamBatch(Request):
    """The batches of a stream that a write contains.

    They are recorded in the transaction that publishes the write, which must find `previous` there.
    """

    query_id: QueryId = Field(
        description="Id of the streaming query, which is in its checkpoint and outlives restarts."
    )
    batch_id: _BatchId = Field(description="The newest batch whose rows the write contains.")
    previous: _BatchId | None = Field(
        default=None, description="The newest batch before them; null if there is none."
    )
    query_name: _QueryName | None = None
    checkpoint: _Checkpoint | None = Field(
        default=None, description="Location of the query's checkpoint."
    )


class StreamRecord(Answer):
    """A streaming query that has written to a table."""

    query_id: str
    batch_id: int = Field(description="The newest batch whose rows have been published.")
    query_name: str | None = None
    checkpoint: str | None = None
    started_at: datetime = Field(description="When its first batch was published.")
    updated_at: datetime = Field(description="When its newest batch was published.")


class StreamPage(Answer):
    """One page of a table's streams, newest first."""

    streams: list[StreamRecord]
    next_page_token: str | None = None
