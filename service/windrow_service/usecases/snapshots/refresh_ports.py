"""What the use cases need so that one refresh of a table runs at a time, over all replicas."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from windrow.models import RefreshStatus

# Whether a refresh that runs is still wanted: "lost" is one that another has taken over.
Standing = Literal["wanted", "cancelled", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRecord:
    """The refresh of a table that runs, or that ended last.

    Attributes:
        table_id: The table's number.
        full: Whether every folder is listed, not only those that changed.
        lease_until: When it may be taken for abandoned; None once it has ended.
        status: What callers see, as its runner last wrote it.
        previous: How the refresh before it ended; None if there was none, or it did not end.
    """

    table_id: int
    full: bool
    lease_until: datetime | None
    status: RefreshStatus
    previous: RefreshStatus | None = None


class RefreshStore(Protocol):
    """The refresh of each table, whichever replica runs it."""

    async def begin(
        self, status: RefreshStatus, *, full: bool, now: datetime, lease_until: datetime
    ) -> RefreshRecord:
        """Begin a refresh unless one of the table runs already; return the one that runs.

        Args:
            status: Of the refresh that is begun; `refresh_id` tells whether it was.
            full: Whether it lists every folder.
            now: A refresh whose lease has run out by now is abandoned.
            lease_until: Of the refresh that is begun.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def renew(self, table_id: int, status: RefreshStatus, lease_until: datetime) -> Standing:
        """Go on with a refresh, and write down how far it is, unless it is lost."""

    async def finish(self, table_id: int, status: RefreshStatus) -> bool:
        """Write down how a refresh ended; tell whether it was neither lost nor ended before."""

    async def get(self, table: str) -> RefreshRecord:
        """Return the refresh of a table that runs, or that ended last.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotFoundError: It has never been refreshed.
        """

    async def cancel(self, table: str, now: datetime) -> RefreshRecord:
        """Ask for the refresh that runs to stop.

        Raises:
            TableNotFoundError: No table has this name.
            RefreshNotRunningError: No refresh of it runs.
        """
