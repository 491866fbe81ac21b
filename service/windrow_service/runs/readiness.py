"""Whether a coordinator can do its work, told within the time that a probe waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from windrow_core.models import Health
from windrow_service.runs.background import stop
from windrow_service.usecases.caches.errors import CacheUnavailableError
from windrow_service.usecases.caches.ports import CacheMap
from windrow_service.usecases.errors import StoreUnavailableError
from windrow_service.usecases.ports import TrustedClock

# Probes of the chart wait for 5 s.
_DEADLINE_S = 3.0
_RETRY_AFTER_S = 2


class Readiness:
    """One check at a time, for whose end all probes wait, but not for long.

    Args:
        ping: Checks that the database answers.
        has_room: Tells whether an embedded database's disk has room.
        clock: The database's clock.
        cache: The cache map.
    """

    def __init__(
        self,
        ping: Callable[[], Awaitable[None]],
        has_room: Callable[[], Awaitable[bool]],
        clock: TrustedClock,
        cache: CacheMap,
    ) -> None:
        self._ping = ping
        self._has_room = has_room
        self._clock = clock
        self._cache = cache
        self._checking: asyncio.Task[Health] | None = None

    async def __call__(self) -> Health:
        """Return what works; raise the error of what must work and does not."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())
            # Perhaps nobody waits for it any more when it fails.
            self._checking.add_done_callback(lambda one: one.cancelled() or one.exception())
        # It goes on afterwards: cancelled, it would wait until its connection is given up.
        if not (await asyncio.wait([self._checking], timeout=_DEADLINE_S))[0]:
            reason = f"no answer within {_DEADLINE_S:g} s"
            raise StoreUnavailableError(reason, _RETRY_AFTER_S, passing=True)
        return self._checking.result()

    async def aclose(self) -> None:
        """Stop checking."""
        if self._checking is not None:
            await stop(self._checking)

    async def _check(self) -> Health:
        has_cache, has_room = await asyncio.gather(self._caches(), self._stores())
        is_skewed = self._clock.is_skewed
        return Health(
            status="ok" if has_room and has_cache and not is_skewed else "degraded",
            checks={
                "database": "ok" if has_room else "full",
                "cache": "ok" if has_cache else "unavailable",
                "clock": "skewed" if is_skewed else "ok",
            },
        )

    async def _stores(self) -> bool:
        await self._ping()
        await self._clock.look()
        self._clock.require_readiness()
        return await self._has_room()

    async def _caches(self) -> bool:
        try:
            await self._cache.ping()
        except CacheUnavailableError:
            return False
        return True
