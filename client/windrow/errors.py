"""Errors that the client raises.

* WindrowError
  + CoordinatorUnreachableError
  + IncompletePlanError
  + UnsupportedAnswerError
  + InvalidArgumentError          a parameter that cannot be, or that there is not
  + CacheSqlError                 SQL text about caches that is not supported
  + ProblemError                  the coordinator answered with an RFC 9457 problem
    - NotFoundError               table, snapshot, plan, refresh, page, cache rule or worker; or a
                                  plan's snapshot
    - InvalidRequestError         the request can never work as sent
    - TableChangedError           If-Match did not hold
    - TableNotRefreshedError      the table has no snapshot yet
    - NotAuthenticatedError       the token is missing or not valid
    - NotAllowedError             the token lacks a scope, or the location is outside the
                                  allowed prefixes
    - BusyError                   try again after `retry_after_s`
    - OutcomeUnknownError         the change may or may not have been made
    - WriteInProgressError        files of a write are being moved into the table
    - WriteLostError              a write is over, or in the hands of another process
  + WriteError                    see `windrow.commits.errors`: what stops a write to a table
  + ReadError                     see `windrow.spark.errors`: what a task finds while it reads
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.models import Problem


class WindrowError(Exception):
    """Base of every error that the client raises on purpose."""


class CoordinatorUnreachableError(WindrowError):
    """No answer came from the coordinator."""

    def __init__(self, url: str, attempts: int, reason: str) -> None:
        super().__init__(url, attempts, reason)
        self.url = url
        self.attempts = attempts
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"no answer from the coordinator at {self.url} after {self.attempts} attempts "
            f"({self.reason}): is it running? `windrow serve` starts one"
        )


class IncompletePlanError(WindrowError):
    """The stream of groups ended before its end marker, or does not add up."""

    def __init__(self, plan_id: str, reason: str) -> None:
        super().__init__(plan_id, reason)
        self.plan_id = plan_id
        self.reason = reason

    def __str__(self) -> str:
        return f"plan {self.plan_id} arrived incomplete ({self.reason}): ask for it again"


class UnsupportedAnswerError(WindrowError):
    """The coordinator's answer is not one that this client understands."""


class InvalidArgumentError(WindrowError, ValueError):
    """What was passed cannot be; nothing was sent.

    Attributes:
        argument: The parameter; below it, fields and positions after dots.
    """

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(argument, reason)
        self.argument = argument
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class CacheSqlError(WindrowError):
    """SQL text about caches is not one of the statements that are supported, or finds no rule."""


class ProblemError(WindrowError):
    """The coordinator refused, and said why.

    Attributes:
        problem: The RFC 9457 problem; branch on its `type`.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem.detail


class NotFoundError(ProblemError):
    """The table, snapshot, plan, refresh, page, cache rule or worker is not there."""


class InvalidRequestError(ProblemError):
    """The request can never work as it was sent."""


class TableChangedError(ProblemError):
    """The table has changed since the caller looked at it."""


class TableNotRefreshedError(ProblemError):
    """The table has no snapshot yet: refresh it."""


class NotAuthenticatedError(ProblemError):
    """The coordinator asks for a token, and got none that is valid."""

    def __str__(self) -> str:
        return f"{self.problem.detail}; set WINDROW_TOKEN, or windrow.connect(url, token=...)"


class NotAllowedError(ProblemError):
    """The token lacks a scope, or the location is one that the coordinator may not read."""


class BusyError(ProblemError):
    """The coordinator has too much to do.

    Attributes:
        retry_after_s: When to try again, in seconds.
    """

    def __init__(self, problem: Problem, retry_after_s: float) -> None:
        super().__init__(problem)
        self.args = (problem, retry_after_s)
        self.retry_after_s = retry_after_s


class OutcomeUnknownError(ProblemError):
    """The change may or may not have been made: look before asking again."""


class WriteInProgressError(ProblemError):
    """Files of another write are being moved into the table."""


class WriteLostError(ProblemError):
    """A write is over, or in the hands of another process; nothing more may come of it here."""


class RefreshFailedError(ProblemError):
    """A refresh ended with a problem; nothing was published."""


_BY_TYPE: dict[str, type[ProblemError]] = {
    "urn:windrow:problem:table-not-refreshed": TableNotRefreshedError,
    "urn:windrow:problem:outcome-unknown": OutcomeUnknownError,
    "urn:windrow:problem:write-in-progress": WriteInProgressError,
    "urn:windrow:problem:write-state": WriteLostError,
    "urn:windrow:problem:write-taken": WriteLostError,
}
_BY_STATUS: dict[int, type[ProblemError]] = {
    401: NotAuthenticatedError,
    403: NotAllowedError,
    404: NotFoundError,
    410: NotFoundError,
    412: TableChangedError,
    413: InvalidRequestError,
    422: InvalidRequestError,
}


def error_of(problem: Problem, retry_after_s: float = 1.0) -> ProblemError:
    """Return the error for a problem: by its type, else by its status."""
    if problem.status in (429, 503):
        return BusyError(problem, retry_after_s)
    by_status = _BY_STATUS.get(problem.status, ProblemError)
    return _BY_TYPE.get(problem.type, by_status)(problem)
