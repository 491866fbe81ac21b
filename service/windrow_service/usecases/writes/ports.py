"""Where writes and their reports are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow.models import WriteRecord, WriteUpdate
from windrow_service.usecases.names import Names
from windrow_service.usecases.snapshots.ports import WriteCommits

# How many of a table's newest writes keep the figures of single keys.
MAX_KEY_REPORTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWrite:
    """A write, and its number among those of its table.

    Attributes:
        number: Greater than those of earlier writes.
        info: As callers see it.
    """

    number: int
    info: WriteRecord


class WriteHistory(Protocol):
    """Reports of earlier writes to a table."""

    async def reported(
        self, table: str, limit: int, *, keys: bool = False
    ) -> Sequence[WriteRecord]:
        """Return the newest published writes of a table that have a report, newest first.

        Args:
            table: Its name.
            limit: Most writes to return.
            keys: Whether reports include the figures of each key, if those are kept.

        Raises:
            TableNotFoundError: No table has this name.
        """


class WriteStore(WriteHistory, WriteCommits, Protocol):
    """The writes to each table, while they run and for some time after."""

    async def put(self, table: str, write_id: str, update: WriteUpdate) -> tuple[WriteRecord, bool]:
        """Begin a write, or record how far it is; tell whether it is new. Repeating it is fine.

        Raises:
            TableNotFoundError: No table has this name.
            WriteNotFoundError: It does not exist, and the update does not begin it.
            WriteStateError: It cannot go to this state from its current one.
            WriteTakenError: It belongs to another process.
            WriteCancelledError: Somebody has cancelled it.
            WriteInProgressError: Another write is moving files into the table.
        """

    async def cancel(self, table: str, write_id: str) -> WriteRecord:
        """End a write that has not begun to move files in; its driver finds it cancelled.

        A write that has been undone stays as it is.

        Raises:
            TableNotFoundError: No table has this name.
            WriteNotFoundError: The table has no such write.
            WriteNotCancellableError: It has begun to move files in.
        """

    async def get(self, table: str, write_id: str) -> WriteRecord:
        """Return one write with all of its report.

        Raises:
            TableNotFoundError: No table has this name.
            WriteNotFoundError: It has no such write.
        """

    async def recent(self, limit: int, among: Names) -> Sequence[WriteRecord]:
        """Return at most `limit` writes to some tables: those that are not over, then the latest."""

    async def page(
        self, table: str, before: int, limit: int, *, open_only: bool
    ) -> Sequence[StoredWrite]:
        """Return at most `limit` writes with numbers under `before`, newest first.

        Args:
            table: Its name.
            before: A number.
            limit: Most writes to return.
            open_only: Leave out those that are over.

        Raises:
            TableNotFoundError: No table has this name.
        """
