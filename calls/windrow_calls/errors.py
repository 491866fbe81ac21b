"""Errors that the client raises."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from windrow_core.errors import StatedError

if TYPE_CHECKING:
    from windrow_core.models import Problem


# Packages whose frames no caller looks for; Spark's may lie anywhere, as SPARK_HOME says.
_INSIDE = (
    "py4j",
    "pyspark",
    "windrow",
    "windrow_calls",
    "windrow_core",
    "windrow_jobs",
    "windrow_spark",
    "windrow_tables",
)


class WindrowError(StatedError):
    """Base of every error that the client raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks show: the line of the caller, and what is wrong.

        The traceback itself stays whole, for debuggers and logs.
        """
        return [*_line_of_caller(self), f"{type(self).__name__}: {self}"]


def _line_of_caller(error: BaseException) -> list[str]:
    """Return the last line outside of this package and the libraries that it uses."""
    libraries = [str(Path(sys.prefix)), str(Path(sys.base_prefix) / "lib")]
    origins = [spec.origin for name in _INSIDE if (spec := find_spec(name)) and spec.origin]
    inside = (*(str(Path(origin).parent) for origin in origins), *libraries)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.line and not frame.filename.startswith(inside)
    ]
    return [f"line {frames[-1].lineno}: {frames[-1].line}"] if frames else []


@dataclass(eq=False)
class CoordinatorUnreachableError(WindrowError):
    """No answer came from the coordinator."""

    url: str
    attempts: int
    reason: str
    message = (
        "no answer from the coordinator at {url} after {attempts:attempt} ({reason}): {remedy}"
    )
    remedy = "make sure that it is running, or start one with `windrow serve`"


@dataclass(eq=False)
class IncompletePlanError(WindrowError):
    """The stream of groups was cut, or does not match its end marker."""

    plan_id: str
    reason: str
    message = "plan {plan_id} arrived incomplete ({reason}): {remedy}"
    remedy = "ask for it again"


class UnsupportedAnswerError(WindrowError):
    """The coordinator's answer is not one that this client understands."""


@dataclass(eq=False)
class InvalidArgumentError(WindrowError, ValueError):
    """An argument is not valid; nothing was sent.

    Attributes:
        argument: The parameter; fields and positions within it follow after dots.
    """

    argument: str
    reason: str
    message = "{reason}"


class CacheSqlError(WindrowError):
    """SQL text about caches is not a supported statement, or names no rule."""


@dataclass(eq=False)
class ProblemError(WindrowError):
    """The coordinator refused, and said why.

    Attributes:
        problem: The RFC 9457 problem; branch on its `type`.
    """

    problem: Problem
    message = "{detail}"

    @property
    def detail(self) -> str:
        """The problem's detail, with calls of the client as remedies."""
        return self.problem.worded("python")


class NotFoundError(ProblemError):
    """The table, snapshot, plan, refresh, page, cache rule or worker does not exist."""


class InvalidRequestError(ProblemError):
    """The request can never work as it was sent."""


class TableChangedError(ProblemError):
    """The table has changed since the caller looked at it."""


class UnconfirmedReplacementError(ProblemError):
    """The new definition would drop snapshots or a list of partitions: pass `replace=True`."""


class TableProtectedError(ProblemError):
    """The table, or one with files in the same folder, is protected: `client.unprotect_table` ends that."""


class TableNotRefreshedError(ProblemError):
    """The table has no snapshot yet: refresh it."""


class NotAuthenticatedError(ProblemError):
    """The coordinator requires a token, but got no valid one."""

    message = "{detail}; {remedy}"
    remedy = "set WINDROW_TOKEN or WINDROW_TOKEN_FILE, or windrow.connect(url, token=...)"


class NotAllowedError(ProblemError):
    """The token lacks a scope, or the location is one that the coordinator may not read."""


@dataclass(eq=False)
class BusyError(ProblemError):
    """The coordinator has too much to do.

    Attributes:
        retry_after_s: When to try again, in seconds.
    """

    retry_after_s: float


class OutcomeUnknownError(ProblemError):
    """The change may or may not have been made: look before asking again."""


class WriteInProgressError(ProblemError):
    """Files of another write are being moved into the table."""


class WriteLostError(ProblemError):
    """A write has ended, or belongs to another process; it cannot continue here."""


class WriteCancelledError(WriteLostError):
    """Somebody has cancelled a write; none of its files are in the table."""


class BatchOrderError(WriteLostError):
    """The stream has published other batches than the write was to follow."""


class ClaimLostError(ProblemError):
    """The lease of work ran out, and it is no longer the caller's; its commits are safe."""


class RefreshFailedError(ProblemError):
    """A refresh ended with a problem; nothing was published."""


_BY_TYPE: dict[str, type[ProblemError]] = {
    "urn:windrow:problem:table-not-refreshed": TableNotRefreshedError,
    "urn:windrow:problem:table-protected": TableProtectedError,
    "urn:windrow:problem:folder-protected": TableProtectedError,
    "urn:windrow:problem:unconfirmed-replacement": UnconfirmedReplacementError,
    "urn:windrow:problem:outcome-unknown": OutcomeUnknownError,
    "urn:windrow:problem:write-in-progress": WriteInProgressError,
    "urn:windrow:problem:write-state": WriteLostError,
    "urn:windrow:problem:write-taken": WriteLostError,
    "urn:windrow:problem:write-cancelled": WriteCancelledError,
    "urn:windrow:problem:batch-order": BatchOrderError,
    "urn:windrow:problem:claim-lost": ClaimLostError,
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


__all__ = [
    "BatchOrderError",
    "BusyError",
    "CacheSqlError",
    "ClaimLostError",
    "CoordinatorUnreachableError",
    "IncompletePlanError",
    "InvalidArgumentError",
    "InvalidRequestError",
    "NotAllowedError",
    "NotAuthenticatedError",
    "NotFoundError",
    "OutcomeUnknownError",
    "ProblemError",
    "RefreshFailedError",
    "TableChangedError",
    "TableNotRefreshedError",
    "TableProtectedError",
    "UnconfirmedReplacementError",
    "UnsupportedAnswerError",
    "WindrowError",
    "WriteCancelledError",
    "WriteInProgressError",
    "WriteLostError",
]
