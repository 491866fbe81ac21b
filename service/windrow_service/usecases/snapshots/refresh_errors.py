"""Errors raised about refreshes.

* NotFoundError
  + RefreshNotFoundError
  + RefreshNotRunningError
* UseCaseError
  + RefreshFailedError
  + RefreshCancelledError
  + RefreshAbandonedError
"""

from __future__ import annotations

from typing import Any

from windrow_service.usecases.errors import NotFoundError, UseCaseError


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
