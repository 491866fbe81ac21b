"""Who changes something: known to the stores, which record it with the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from windrow.models import AuditRecord


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something, and by which call.

    Attributes:
        principal: The caller.
        operation: The call, by its id in openapi.yaml, or the command.
        request_id: Of the request; None if there is none.
    """

    principal: str
    operation: str
    request_id: str | None = None


_COORDINATOR = Actor("coordinator", "background")
_acting: ContextVar[Callable[[], Actor]] = ContextVar("acting", default=lambda: _COORDINATOR)


def actor() -> Actor:
    """Return who acts now: the caller, or the coordinator itself."""
    return _acting.get()()


@contextmanager
def acting(who: Callable[[], Actor]) -> Iterator[None]:
    """Let changes be those of an actor, also in tasks that begin in this block.

    Args:
        who: Called when something is changed.
    """
    token = _acting.set(who)
    try:
        yield
    finally:
        _acting.reset(token)


class AuditLog(Protocol):
    """Records of changes; each store adds its own, in the transaction of the change."""

    async def page(
        self,
        before: int,
        limit: int,
        *,
        table: str | None = None,
        principal: str | None = None,
        since: datetime | None = None,
    ) -> Sequence[AuditRecord]:
        """Return records with a lower number than `before`, the newest first.

        Args:
            before: A number.
            limit: Most records to return.
            table: Only of this table.
            principal: Only by this one.
            since: Only from this time on.
        """

    async def purge(self, created_before: datetime, max_records: int) -> int:
        """Forget records that are older, and all but the newest; return how many."""
