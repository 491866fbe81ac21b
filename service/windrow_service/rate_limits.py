"""How many requests, and wrong tokens, callers may send: counted here, or in Redis for all replicas."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, TypeVar, cast

from cachetools import TTLCache
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import StorageError

from windrow_service.logs import get_logger
from windrow_service.usecases.access.authenticate import digest_of
from windrow_service.usecases.access.errors import TooManyGuessesError, UnauthenticatedError

_PREFIX = "windrow:rates"
# Requests must not wait long for Redis, which is left alone for a while after a failure.
_TIMEOUT_S = 0.25
_REST_S = 1.0
# Of wrong tokens, counted once in a minute each; of right ones; and of places that must wait.
_MOST = 10_000
_WRONG_S, _RIGHT_S = 60.0, 3_600.0
_T = TypeVar("_T")
_log = get_logger(__name__)


class RateLimits:
    """The requests of the last minute, by caller.

    Args:
        per_minute: Most requests of one caller in a minute.
        redis_url: Redis in which all replicas count together; None to count in this process.
        what: What is counted.
    """

    def __init__(self, per_minute: int, redis_url: str | None, what: str = "LIMITER") -> None:
        self._limit = RateLimitItemPerMinute(per_minute, namespace=what)
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

    async def aclose(self) -> None:
        """Close the connections to Redis, which the library leaves open."""
        if self._shared is not None:
            bridge: Any = cast(RedisStorage, self._shared.storage).bridge
            await bridge.storage.aclose()

    async def _counted(
        self, counter: SlidingWindowCounterRateLimiter, principal: str
    ) -> int | None:
        if await counter.hit(self._limit, principal):
            return None
        frees_at = (await counter.get_window_stats(self._limit, principal)).reset_time
        return max(1, math.ceil(frees_at - time.time()))


class Guesses:
    """Wrong tokens of the last minute, by where they come from: too many, and that place must wait.

    The same wrong token counts once, since a job that goes on with an expired one guesses nothing.
    Tokens that were right in the last hour need not wait: others may share their address.

    Args:
        per_minute: Most wrong tokens from one place in a minute.
        redis_url: As for `RateLimits`.
    """

    def __init__(self, per_minute: int, redis_url: str | None) -> None:
        self._rates = RateLimits(per_minute, redis_url, "guesses")
        self.aclose = self._rates.aclose
        self._wrong: TTLCache[str, None] = TTLCache(_MOST, _WRONG_S)
        self._right: TTLCache[str, None] = TTLCache(_MOST, _RIGHT_S)
        self._waits: TTLCache[str, float] = TTLCache(_MOST, _WRONG_S)

    async def checked(
        self, token: str, host: str, client_id: str, identify: Callable[[str], Awaitable[_T]]
    ) -> _T:
        """Return what `identify` makes of a token.

        Args:
            token: The token.
            host: Address that it comes from; empty if unknown.
            client_id: Client id of OAuth that it comes with; empty if there is none.
            identify: Raises `UnauthenticatedError` if the token is wrong.

        Raises:
            TooManyGuessesError: Too many others were wrong.
        """
        digest = digest_of(token)
        places = [f"address {_network(host)}"]
        if client_id:
            places.append(f"client {digest_of(client_id)}")
        wait_s = max(self._waits.get(place, 0.0) for place in places) - time.monotonic()
        if wait_s > 0 and digest not in self._right:
            raise TooManyGuessesError(math.ceil(wait_s))
        try:
            answer = await identify(token)
        except UnauthenticatedError:
            self._right.pop(digest, None)
            if digest not in self._wrong:
                self._wrong[digest] = None
                for place in places:
                    if await self._rates.wait_s(place) is not None:
                        self._waits[place] = time.monotonic() + _WRONG_S
            raise
        self._right[digest] = None
        return answer


def _network(host: str) -> str:
    """Return what one sender has: an IPv4 address, or 64 bits of IPv6."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, 64), strict=False))
    return host


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
