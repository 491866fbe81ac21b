"""How many requests each caller may send: counted here, or in Redis for all replicas together."""

from __future__ import annotations

import math
import time

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import StorageError

from windrow_service.logs import get_logger

_PREFIX = "windrow:rates"
# Requests must not wait long for Redis, which is left alone for a while after a failure.
_TIMEOUT_S = 0.25
_REST_S = 1.0
_log = get_logger(__name__)


class RateLimits:
    """The requests of the last minute, by caller.

    Args:
        per_minute: Most requests of one caller in a minute.
        redis_url: Redis in which all replicas count together; None to count in this process.
    """

    def __init__(self, per_minute: int, redis_url: str | None) -> None:
        self._limit = RateLimitItemPerMinute(per_minute)
        self._here = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = None if redis_url is None else _in_redis(redis_url)
        self._shared_again_s = 0.0

    async def wait_s(self, principal: str) -> int | None:
        """Count a request; return None, or the number of seconds that the caller should wait.

        While Redis is away, each replica counts by itself.
        """
        if self._shared is not None and time.monotonic() >= self._shared_again_s:
            try:
                return await self._counted(self._shared, principal)
            except StorageError as error:
                self._shared_again_s = time.monotonic() + _REST_S
                # Without the error's text, in which a server may quote what it was sent.
                cause = type(error.storage_error).__name__
                _log.warning("each replica counts requests by itself", error=cause)
        return await self._counted(self._here, principal)

    async def _counted(
        self, counter: SlidingWindowCounterRateLimiter, principal: str
    ) -> int | None:
        if await counter.hit(self._limit, principal):
            return None
        frees_at = (await counter.get_window_stats(self._limit, principal)).reset_time
        return max(1, math.ceil(frees_at - time.time()))


def _in_redis(url: str) -> SlidingWindowCounterRateLimiter:
    storage = RedisStorage(
        f"async+{url.replace('unix://', 'redis+unix://', 1)}",
        wrap_exceptions=True,
        implementation="redispy",
        key_prefix=_PREFIX,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
    )
    return SlidingWindowCounterRateLimiter(storage)
