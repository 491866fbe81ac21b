"""The actor of a change, which the stores record together with the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from windrow_core.models import AuditRecord
    from windrow_service.usecases.ports import Page


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something, and by which call.

    Attributes:
        principal: The caller.
        operation: The call, by its id in openapi.yaml, or the command.
        request_id: Id of the request; None if there was no request.
    """

    principal: str
    operation: str
    request_id: str | None = None


_COORDINATOR = Actor("coordinator", "background")
_acting: ContextVar[Callable[[], Actor]] = ContextVar("acting", default=lambda: _COORDINATOR)


def actor() -> Actor:
    """Return the actor of the current work: the caller, or the coordinator itself."""
    return _acting.get()()


@contextmanager
def acting(who: Callable[[], Actor]) -> Iterator[None]:
    """Attribute changes in this block, and in tasks that it starts, to an actor."""
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
    ) -> Page[AuditRecord]:
        """Return at most `limit` records with numbers under `before`, the newest first.

        Args:
            before: Number of a record.
            limit: Most records to return.
            table: Only changes to this table.
            principal: Only changes by this principal.
            since: Only changes from this time on.
        """

    async def purge(self, created_before: datetime, max_records: int) -> int:
        """Forget older records, and all but the newest `max_records`; return how many."""
