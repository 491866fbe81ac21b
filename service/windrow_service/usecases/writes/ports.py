"""Ports of the store of writes and their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow_core.models import StreamRecord, WriteRecord, WriteUpdate
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Page
from windrow_service.usecases.snapshots.ports import WriteCommits

# How many of a table's newest writes keep the figures of single keys.
MAX_KEY_REPORTS = 100
# More than the number of any write or stream, which PostgreSQL keeps in 32 bits.
NEWEST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWrite:
    """A write, and its number among the writes to its table.

    Attributes:
        number: Greater than the numbers of earlier writes.
        info: The write as callers see it.
    """

    number: int
    info: WriteRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStream:
    """A stream, and its number among those that write to its table.

    Attributes:
        number: Greater than the numbers of streams that published their first batch before.
        info: The stream as callers see it.
    """

    number: int
    info: StreamRecord


class StreamStore(Protocol):
    """The streams that have written to each table."""

    async def page(self, table: str, before: int, limit: int) -> Page[StoredStream]:
        """Return at most `limit` streams with numbers under `before`, newest first.

        Raises:
            TableNotFoundError: No table has this name.
        """


class WriteHistory(Protocol):
    """Reports of earlier writes to a table."""

    async def reported(
        self, table: str, limit: int, *, keys: bool = False
    ) -> Sequence[WriteRecord]:
        """Return the newest published writes of a table that have a report, newest first.

        Args:
            table: Name of the table.
            limit: Most writes to return.
            keys: Whether reports include the figures of each key, if those are kept.

        Raises:
            TableNotFoundError: No table has this name.
        """


class WriteStore(WriteHistory, WriteCommits, Protocol):
    """The writes to each table, while they run and for some time after."""

    async def put(self, table: str, write_id: str, update: WriteUpdate) -> tuple[WriteRecord, bool]:
        """Begin a write, or record its progress; return it, and whether it is new.

        Repeating a call does no harm.

        Raises:
            TableNotFoundError: No table has this name.
            WriteNotFoundError: The write does not exist, and the update does not begin it.
            WriteStateError: The write cannot go to this state from its current one.
            WriteTakenError: The write belongs to another process.
            WriteCancelledError: Somebody has cancelled the write.
            WriteInProgressError: Another write is moving files into the table.
            BatchOrderError: Its stream has published other batches than the write follows.
        """

    async def cancel(self, table: str, write_id: str) -> WriteRecord:
        """End a write that has not begun to move files in; its driver will find it cancelled.

        A write that has been undone stays as it is.

        Raises:
            TableNotFoundError: No table has this name.
            WriteNotFoundError: The table has no such write.
            WriteNotCancellableError: The write has begun to move files in.
        """

    async def get(self, table: str, write_id: str) -> WriteRecord:
        """Return one write with its whole report.

        Raises:
            TableNotFoundError: No table has this name.
            WriteNotFoundError: The table has no such write.
        """

    async def recent(
        self, limit: int, among: Names, *, dead_only: bool = False
    ) -> Sequence[WriteRecord]:
        """Return at most `limit` writes to tables in `among`: unfinished ones, then the latest.

        Args:
            limit: Most writes to return.
            among: The tables.
            dead_only: Only unfinished writes whose drivers are presumed dead.
        """

    async def page(
        self, table: str, before: int, limit: int, *, open_only: bool
    ) -> Page[StoredWrite]:
        """Return at most `limit` writes with numbers under `before`, newest first.

        Raises:
            TableNotFoundError: No table has this name.
        """
