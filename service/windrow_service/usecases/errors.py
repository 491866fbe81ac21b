"""Errors that any use case may raise; each room has its own beside them.

* UseCaseError
  + NotFoundError
  + BusyError
  + PageTokenError
  + StoreUnavailableError
  + RevisionError
  + OutcomeUnknownError
  + IdempotencyKeyReusedError
  + RepeatedRequestError

They know nothing of HTTP: `windrow_service.api.problems` decides what each looks like on the wire.
"""

from __future__ import annotations

from windrow.files.stated import StatedError


class UseCaseError(StatedError):
    """Base of every error a use case raises on purpose."""


class NotFoundError(UseCaseError):
    """Something that a caller named is not there."""


class BusyError(UseCaseError):
    """Too much work is waiting already."""

    def __init__(self, pending: int, retry_after_s: int) -> None:
        super().__init__(pending, retry_after_s)
        self.pending = pending
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.pending} requests are waiting already: try again in {self.retry_after_s} s"


class PageTokenError(UseCaseError):
    """A page token was not made here, or for another list or plan."""

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return "page_token is not valid here: use next_page_token of the page before, unchanged"


class StoreUnavailableError(UseCaseError):
    """The metadata database does not answer, or refuses to be written to.

    Attributes:
        reason: What it says.
        retry_after_s: When to try again, in seconds.
        passing: Whether it may pass while one waits, as a server's restart does.
    """

    def __init__(self, reason: str, retry_after_s: int, passing: bool) -> None:
        super().__init__(reason, retry_after_s, passing)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.passing = passing

    def __str__(self) -> str:
        return (
            f"the coordinator's database cannot be used ({self.reason}); nothing was changed: "
            "make sure that it runs and that its disk is not full, then try again"
        )


class RevisionError(UseCaseError):
    """The database is not at the revision that this version of Windrow works with."""


class OutcomeUnknownError(UseCaseError):
    """The database went away while a change was being committed."""

    def __str__(self) -> str:
        return (
            "the database went away while the change was being made, so that it may or may not be "
            "there: look before you ask again, or send the same Idempotency-Key again"
        )


class IdempotencyKeyReusedError(UseCaseError):
    """A caller has used one key for two different changes."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"Idempotency-Key {self.key!r} was sent before with another request: use a new key for "
            "each change"
        )


class RepeatedRequestError(UseCaseError):
    """A change that a caller asks for was made before, under the same key.

    Attributes:
        answer: What the caller was answered then, as `Once.answer` said it.
    """

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer
