"""What every use case may need: the time, a thread, and changes that are made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A change that may be asked for again, after an answer was lost, and is made once.

    Attributes:
        principal: Who asks; keys of others are other keys.
        key: The caller's name for the change.
        fingerprint: Digest of all that was asked for.
        answer: Says what is answered, from what the change returns.
    """

    principal: str
    key: str
    fingerprint: str
    answer: Callable[[Any], str]


class OnceStore(Protocol):
    """Answers to changes that callers may ask for again; the stores write them with the change."""

    async def refuse_repeated(self, once: Once) -> None:
        """Make sure that a change was not asked for before.

        Raises:
            RepeatedRequestError: It has been made; the error holds the answer.
            IdempotencyKeyReusedError: The key was used for another change.
        """

    async def purge(self, now: datetime) -> int:
        """Forget the keys that have expired by `now`; return how many."""


class Runner(Protocol):
    """Where blocking work runs, so that the event loop stays free."""

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work elsewhere and return its result, or raise its error.

        Raises:
            BusyError: Too much is waiting already.
        """


class Clock(Protocol):
    """The time."""

    def __call__(self) -> datetime:
        """Return now, with a time zone."""


# Called between the steps of long work; raises PlanCancelledError once nobody wants it.
Checkpoint = Callable[[], None]
