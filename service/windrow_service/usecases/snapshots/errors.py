"""Errors of snapshots: of looking one up, of refreshing and of publishing.

* UseCaseError
  + NotFoundError
    - SnapshotNotFoundError
    - RefreshNotFoundError
    - RefreshNotRunningError
  + TableNotRefreshedError
  + FormatNotRefreshableError
  + TableContendedError
  + BloomColumnsChangedError
  + InventoryOutdatedError
  + RefreshFailedError
  + RefreshCancelledError
  + RefreshAbandonedError
"""

from __future__ import annotations

from typing import Any

from windrow_service.usecases.errors import NotFoundError, UseCaseError


class SnapshotNotFoundError(NotFoundError):
    """The table has no such snapshot."""

    def __init__(self, table: str, snapshot_id: int) -> None:
        super().__init__(table, snapshot_id)
        self.table = table
        self.snapshot_id = snapshot_id

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has no snapshot {self.snapshot_id}: "
            f"GET /tables/{self.table}/snapshots lists those it has"
        )


class TableNotRefreshedError(UseCaseError):
    """The table has no snapshot yet."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return f"table {self.table!r} has no snapshot yet: POST /tables/{self.table}/refresh first"


class FormatNotRefreshableError(UseCaseError):
    """The table's files have no footers that a refresh could read."""

    def __init__(self, table: str, format: str) -> None:
        super().__init__(table, format)
        self.table = table
        self.format = format

    def __str__(self) -> str:
        return (
            f"table {self.table!r} is {self.format}, and only Parquet is refreshed: publish its "
            f"inventory with POST /tables/{self.table}/snapshots"
        )


class TableContendedError(UseCaseError):
    """Others publish the table all the time, and each was faster."""

    def __init__(self, table: str, attempts: int, retry_after_s: int) -> None:
        super().__init__(table, attempts, retry_after_s)
        self.table = table
        self.attempts = attempts
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return (
            f"table {self.table!r} was published by others {self.attempts} times meanwhile, and "
            f"nothing was changed: try again in {self.retry_after_s} s, with fewer, larger deltas"
        )


class BloomColumnsChangedError(UseCaseError):
    """A delta does not fit, as the table's definition asks for other Bloom filters by now."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"bloom_columns of table {self.table!r} have changed since its current snapshot: "
            "refresh it, or publish a whole inventory, before the next delta"
        )


class InventoryOutdatedError(UseCaseError):
    """A whole inventory was listed before a write's files had all been moved in."""

    def __init__(self, table: str, listed_at: str, written_at: str) -> None:
        super().__init__(table, listed_at, written_at)
        self.table = table
        self.listed_at = listed_at
        self.written_at = written_at

    def __str__(self) -> str:
        return (
            f"the inventory of table {self.table!r} was listed at {self.listed_at}, and a write "
            f"moved files in until {self.written_at}: list them again"
        )


class RefreshNotFoundError(NotFoundError):
    """The table has never been refreshed."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has never been refreshed: "
            f"POST /tables/{self.table}/refresh starts a refresh"
        )


class RefreshNotRunningError(NotFoundError):
    """There is nothing to cancel."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"no refresh of table {self.table!r} is running: "
            f"GET /tables/{self.table}/refresh tells how the last one ended"
        )


class RefreshFailedError(UseCaseError):
    """A refresh that somebody waited for has ended, perhaps elsewhere, with a problem.

    Attributes:
        problem: The RFC 9457 problem.
    """

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return str(self.problem["detail"])


class RefreshCancelledError(UseCaseError):
    """Somebody asked for a refresh to stop."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"the refresh of table {self.table!r} was cancelled; nothing was published: "
            f"POST /tables/{self.table}/refresh starts another"
        )


class RefreshAbandonedError(UseCaseError):
    """The coordinator that ran a refresh has died, or is being stopped."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table
        self.retry_after_s = 1

    def __str__(self) -> str:
        return (
            f"the refresh of table {self.table!r} was abandoned, as the coordinator that ran it has "
            f"stopped: POST /tables/{self.table}/refresh starts another"
        )
