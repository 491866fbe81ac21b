"""Errors that any use case may raise; each room also has errors of its own.

They know nothing of HTTP: `windrow_service.api.problems` decides what each looks like on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Call, Fault, StatedError


class UseCaseError(StatedError):
    """Base of every error a use case raises on purpose."""


class NotFoundError(UseCaseError):
    """Something that a caller named does not exist."""

    fault = Fault.NOT_FOUND


class ConflictError(UseCaseError):
    """A request does not fit the state of what it is about."""

    fault = Fault.CONFLICT


class InvalidError(UseCaseError):
    """A request can never work as it was sent."""

    fault = Fault.INVALID


class ForbiddenError(UseCaseError):
    """A caller may not do this."""

    fault = Fault.FORBIDDEN


class UnavailableError(UseCaseError):
    """Something is missing for now; `retry_after_s` says when to try again."""

    fault = Fault.UNAVAILABLE


@dataclass(eq=False)
class BusyError(UnavailableError):
    """Coordinator has too much to do."""

    pending: int
    retry_after_s: int
    message = "{pending} requests are waiting already: {remedy}"
    remedy = "try again in {retry_after_s} s"


@dataclass(eq=False)
class TooManyRequestsError(UseCaseError):
    """Caller sends too many requests."""

    fault = Fault.TOO_OFTEN
    retry_after_s: int
    message = "you have reached the limit of requests for one caller: {remedy}"
    remedy = "try again in {retry_after_s} s"


class PageTokenError(NotFoundError):
    """Page not found.

    A page token was not made by Windrow, or was made for another list or plan.
    """

    slug = "page-not-found"
    message = "page_token is not valid here: {remedy}"
    remedy = "use next_page_token of the previous page, unchanged"


@dataclass(eq=False)
class StoreUnavailableError(UnavailableError):
    """Coordinator's database cannot be used.

    Attributes:
        reason: What the database says.
        retry_after_s: Seconds after which to try again.
        passing: Whether waiting may help, as during a server's restart.
        advice: What to do about it.
    """

    reason: str
    retry_after_s: int
    passing: bool
    advice: str = "make sure that it runs and that its disk is not full"
    message = "the coordinator's database cannot be used ({reason}); nothing was changed: {remedy}"
    remedy = "{advice}, then try again"


@dataclass(eq=False)
class ClockSkewError(UnavailableError):
    """Clocks of coordinator and database disagree.

    Attributes:
        difference: How far the machine's clock is from the database's, such as `2 hours ahead of`.
        advice: What to do about it.
        retry_after_s: Seconds after which to try again.
    """

    difference: str
    advice: str
    retry_after_s: int
    message = (
        "the clock of the coordinator's machine is {difference} the time of its database, so it "
        "gives out no work: {remedy}"
    )
    remedy = "{advice}"


class StartError(UseCaseError):
    """A coordinator cannot start, or work with its database; the text says what to do about it."""


class OutcomeUnknownError(UseCaseError):
    """Change may or may not have been made."""

    fault = Fault.UNKNOWN
    message = (
        "the database went away while the change was being committed, which may or may not have "
        "succeeded: {remedy}"
    )
    remedy = "{call}"
    call = Call("repeat")


@dataclass(eq=False)
class IdempotencyKeyReusedError(InvalidError):
    """Idempotency-Key was used for another request."""

    key: str
    message = "Idempotency-Key {key!r} was sent before with another request: {remedy}"
    remedy = "use a new key for each change"


@dataclass(eq=False)
class RepeatedRequestError(UseCaseError):
    """A change was made before under the same key.

    Attributes:
        answer: The answer to the first request, as `Once.answer` made it.
    """

    answer: str
