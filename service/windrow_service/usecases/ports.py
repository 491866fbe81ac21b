"""What any use case may need: the time, a thread, and changes that are made only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

# The version of what does not exist.
NO_VERSION = "no version"


def is_expected(version: str, if_match: str | None) -> bool:
    """Return whether something has the version that a caller expects.

    Args:
        version: Its version; `NO_VERSION` if it does not exist.
        if_match: The version that is expected; `*` for any, `NO_VERSION` for none, None if it does
            not matter.
    """
    return if_match in (None, version) or (if_match == "*" and version != NO_VERSION)


class Page(list[T]):
    """Entries of a list, limited in number and in bytes; `more` tells whether others follow."""

    def __init__(self, entries: Iterable[T] = (), *, more: bool = False) -> None:
        super().__init__(entries)
        self.more = more

    @classmethod
    def of(cls, entries: Sequence[T], limit: int) -> Page[T]:
        """Return the first `limit` of some entries."""
        return cls(entries[:limit], more=len(entries) > limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A change that is made once, even if it is requested again because an answer was lost.

    Attributes:
        principal: The caller; the same key from another caller is a different key.
        key: The caller's name for the change.
        fingerprint: Digest of the whole request.
        answer: Makes the answer from what the change returns.
    """

    principal: str
    key: str
    fingerprint: str
    answer: Callable[[Any], str]


class OnceStore(Protocol):
    """Answers to changes that callers may request again; the stores write them with the change."""

    async def refuse_repeated(self, once: Once) -> None:
        """Make sure that a change was not made before.

        Raises:
            RepeatedRequestError: The change was made already; the error holds the answer.
            IdempotencyKeyReusedError: The key was used for another change.
        """

    async def purge(self, now: datetime) -> int:
        """Forget the keys that have expired by `now`; return how many."""


class Runner(Protocol):
    """Runs blocking work, so that the event loop stays free."""

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work elsewhere and return its result, or raise its error.

        Raises:
            BusyError: Too much is waiting already.
        """


# Returns now, with a time zone.
Clock = Callable[[], datetime]


class TrustedClock(Protocol):
    """Returns now, with a time zone, by the database's clock, which all replicas share."""

    def __call__(self) -> datetime:
        """Return now."""

    def latest(self) -> datetime:
        """Return now, or what this machine's clock shows if that is later."""

    async def look(self) -> None:
        """Ask the database what the time is.

        Raises:
            StoreUnavailableError: It does not answer.
        """

    @property
    def is_skewed(self) -> bool:
        """Whether this machine's clock differs from the database's by more than it should."""

    def require_agreement(self) -> None:
        """Make sure that this machine's clock does not differ from the database's by too much.

        Raises:
            ClockSkewError: It does.
        """

    def require_readiness(self) -> None:
        """Do as `require_agreement` does, but only if calls some seconds ago found the same.

        A machine that was asleep finds out at its next look.

        Raises:
            ClockSkewError: The clocks differ by too much.
        """


# Called between the steps of long work; raises PlanCancelledError if nobody wants it any more.
Checkpoint = Callable[[], None]
