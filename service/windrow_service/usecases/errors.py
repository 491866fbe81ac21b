"""Errors that any use case may raise; each room also has errors of its own.

* UseCaseError
  + NotFoundError
  + BusyError
  + TooManyRequestsError
  + PageTokenError
  + StoreUnavailableError
  + RevisionError
  + PortTakenError
  + OutcomeUnknownError
  + IdempotencyKeyReusedError
  + RepeatedRequestError

They know nothing of HTTP: `windrow_service.api.problems` decides what each looks like on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import StatedError


class UseCaseError(StatedError):
    """Base of every error a use case raises on purpose."""


class NotFoundError(UseCaseError):
    """Something that a caller named does not exist."""


@dataclass(eq=False)
class BusyError(UseCaseError):
    """Too much work is waiting already."""

    pending: int
    retry_after_s: int
    message = "{pending} requests are waiting already: {remedy}"
    remedy = "try again in {retry_after_s} s"


@dataclass(eq=False)
class PortTakenError(UseCaseError):
    """Nothing can listen on a port that the settings name."""

    port: int
    reason: str
    setting: str
    message = "nothing can listen on port {port} ({reason}): {remedy}"
    remedy = "choose another with {setting}"


@dataclass(eq=False)
class TooManyRequestsError(UseCaseError):
    """A caller has sent as many requests as it may for now."""

    retry_after_s: int
    message = "you have sent as many requests as one caller may: {remedy}"
    remedy = "try again in {retry_after_s} s"


class PageTokenError(UseCaseError):
    """A page token was not made by Windrow, or was made for another list or plan."""

    message = "page_token is not valid here: {remedy}"
    remedy = "use next_page_token of the previous page, unchanged"


@dataclass(eq=False)
class StoreUnavailableError(UseCaseError):
    """The metadata database does not answer, or refuses writes.

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


class RevisionError(UseCaseError):
    """The database is not at the revision that this version of Windrow works with."""


class OutcomeUnknownError(UseCaseError):
    """The database went away while a change was being committed."""

    message = (
        "the database went away while the change was being committed, which may or may not have "
        "succeeded: {remedy}"
    )
    remedy = "check before you repeat the change, or repeat it with the same Idempotency-Key"


@dataclass(eq=False)
class IdempotencyKeyReusedError(UseCaseError):
    """A caller has used one key for two different changes."""

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
