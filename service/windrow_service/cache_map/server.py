"""A Redis server that may be down: asked within a deadline, and left alone while it is down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from windrow_service.cache_map.failures import UNREACHED, Trouble, trouble_of
from windrow_service.logs import get_logger
from windrow_service.usecases.caches.errors import CacheUnavailableError

T = TypeVar("T")

_MAX_CONNECTIONS = 32
# How long the server is left alone after a failure: a plan must not wait for it each time.
_REST_S = 1.0
_log = get_logger(__name__)


class RedisServer:
    """One Redis server.

    Args:
        url: `redis://`, `rediss://` or `unix://`, perhaps with a password.
        timeout_s: Longest wait for a connection, and for a single answer.
        deadline_s: Longest time that several requests belonging together may take.
    """

    def __init__(self, url: str, *, timeout_s: float = 0.25, deadline_s: float = 2.0) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_MAX_CONNECTIONS,
            timeout=deadline_s,
            socket_connect_timeout=timeout_s,
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
        )
        self._redis: Redis = Redis.from_pool(pool)
        self._deadline_s = deadline_s
        self._rests_until = 0.0
        self._is_down = False
        self._trouble = UNREACHED

    async def ask(self, work: Callable[[Redis], Awaitable[T]]) -> T:
        """Send requests that belong together, and return their result."""
        if time.monotonic() < self._rests_until:
            raise _unavailable(self._trouble)
        try:
            answer = await asyncio.wait_for(work(self._redis), self._deadline_s)
        except (RedisError, OSError, asyncio.TimeoutError) as error:
            self._rests_until = time.monotonic() + _REST_S
            before, self._trouble = self._trouble, trouble_of(error)
            if not self._is_down or self._trouble != before:
                # Without the error's text, in which a server may quote what it was sent.
                _log.warning(
                    "cache map is down: plans are less local",
                    error=type(error).__name__,
                    reason=self._trouble.reason,
                )
            self._is_down = True
            raise _unavailable(self._trouble) from error
        if self._is_down:
            _log.info("cache map is up again")
        self._is_down = False
        return answer

    async def aclose(self) -> None:
        """Close every connection."""
        await self._redis.aclose()


def _unavailable(trouble: Trouble) -> CacheUnavailableError:
    return CacheUnavailableError(trouble.reason, max(1, round(_REST_S)), trouble.advice)
