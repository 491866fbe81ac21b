"""The bytes of all bodies that a coordinator holds at a time are limited.

Each body has a limit of its own, but many callers together could fill the memory. A body counts
from when its bytes arrive until its request is answered. If bytes arrive for which there is no room,
the body that arrives most slowly is refused: whoever sends a byte now and then keeps nobody else
out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive

from windrow_service.api.errors import BodiesFullError

# The beginning of a body does not count: it waits in the buffers of its connection anyway.
FREE_BYTES = 2**16
# In this time, what a body has gained counts half for its speed.
_HALF_LIFE_S = 0.25


class BodyBudget:
    """Room for the bodies of all requests together.

    Args:
        max_bytes: Most bytes of all bodies, except the first `FREE_BYTES` of each.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._arriving: set[ArrivingBody] = set()

    @contextmanager
    def body(self) -> Iterator[ArrivingBody]:
        """Give the body of one request; its room is free again at the end."""
        body = ArrivingBody(self)
        try:
            yield body
        finally:
            self._arriving.discard(body)
            self._release(body)

    def take(self, body: ArrivingBody, count_bytes: int) -> None:
        """Make room for more bytes of a body; this may refuse it, or another."""
        body.counted_bytes += count_bytes
        self._held_bytes += count_bytes
        self._arriving.add(body)
        while self._held_bytes > self._max_bytes and self._arriving:
            now = time.monotonic()
            slowest = min(self._arriving, key=lambda one: one.speed(now))
            self._arriving.discard(slowest)
            self._release(slowest)
            slowest.refuse(BodiesFullError(self._max_bytes))

    def keep(self, body: ArrivingBody) -> None:
        """Note that a body has arrived: it keeps its room until its request is answered."""
        self._arriving.discard(body)

    def _release(self, body: ArrivingBody) -> None:
        self._held_bytes -= body.counted_bytes
        body.counted_bytes = 0


class ArrivingBody:
    """The body of one request; `counted_bytes` are those that count in the budget."""

    def __init__(self, budget: BodyBudget) -> None:
        self.counted_bytes = 0
        self._budget = budget
        self._seen_bytes = 0
        self._recent_bytes = 0.0
        self._noted_at = time.monotonic()
        self._refusal: BodiesFullError | None = None
        self._receiving: asyncio.Future[Message] | None = None

    async def part(self, receive: Receive) -> Message:
        """Return the next part."""
        message = await self._received(receive)
        count_bytes = len(message.get("body", b""))
        now = time.monotonic()
        self._recent_bytes = self.speed(now) + count_bytes
        self._noted_at = now
        before = max(self._seen_bytes - FREE_BYTES, 0)
        self._seen_bytes += count_bytes
        more = max(self._seen_bytes - FREE_BYTES, 0) - before
        if more:
            self._budget.take(self, more)
        if self._refusal is not None:
            raise self._refusal
        if not message.get("more_body", False):
            self._budget.keep(self)
        return message

    def speed(self, now: float) -> float:
        """Return the bytes that arrived recently; older ones count less."""
        return float(self._recent_bytes * 0.5 ** ((now - self._noted_at) / _HALF_LIFE_S))

    def refuse(self, refusal: BodiesFullError) -> None:
        """Refuse the body, even while its next part is awaited."""
        self._refusal = refusal
        if self._receiving is not None:
            self._receiving.cancel()

    async def _received(self, receive: Receive) -> Message:
        if not self.counted_bytes:
            # It takes no room, so it cannot be refused meanwhile.
            return await receive()
        self._receiving = asyncio.ensure_future(receive())
        try:
            return await self._receiving
        except asyncio.CancelledError:
            if self._refusal is not None:
                raise self._refusal from None
            raise
        finally:
            self._receiving = None
