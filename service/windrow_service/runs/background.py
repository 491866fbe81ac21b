"""Background work, and how to stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from windrow_service.logs import get_logger
from windrow_service.usecases.errors import UseCaseError

_log = get_logger(__name__)


async def forever(what: str, work: Callable[[], Awaitable[object]], every_s: float) -> None:
    """Repeat work, with a pause after each run; errors are logged, and do not stop it.

    Args:
        what: Name of the work, for the log.
        work: Does the work once.
        every_s: Seconds from the end of one run to the start of the next.
    """
    while True:
        try:
            await work()
        except UseCaseError as error:
            _log.warning(
                f"failed, and tried again later: {what}",
                error=type(error).__name__,
                reason=str(error),
            )
        except Exception:  # an unexpected error must not stop the work until a restart
            _log.exception(f"failed, and tried again later: {what}")
        await asyncio.sleep(every_s)


def keep_doing(
    stack: AsyncExitStack, what: str, work: Callable[[], Awaitable[object]], every_s: float
) -> None:
    """Begin to repeat work, as `forever` does, until the stack is closed."""
    stack.push_async_callback(stop, asyncio.create_task(forever(what, work, every_s)))


async def stop(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks, and wait until they have released what they used."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
