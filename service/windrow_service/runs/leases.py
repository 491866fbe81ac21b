"""Work under leases, which are renewed while it runs, and tasks that are found by name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

from windrow_service.logs import get_logger
from windrow_service.runs.background import stop
from windrow_service.usecases.errors import OutcomeUnknownError, StoreUnavailableError

T = TypeVar("T")

RENEW_S = 1.0
_log = get_logger(__name__)


async def renewed(
    what: str, work: Coroutine[Any, Any, T], renew: Callable[[], Awaitable[None]]
) -> T:
    """Do work, and renew its lease every `RENEW_S` until it ends.

    While the database is away, the work continues: only its result needs the database. If another
    process takes the lease over meanwhile, the next renewal notices it.

    Args:
        what: Name of the work, for the log.
        work: The work.
        renew: Renews the lease once. Any other error, such as that of a lost lease, ends the work.
    """
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([task], timeout=RENEW_S))[0]:
            try:
                await renew()
            except (StoreUnavailableError, OutcomeUnknownError) as error:
                _log.warning(
                    f"the lease of {what} could not be renewed",
                    error=type(error).__name__,
                    reason=str(error),
                )
        return await task
    finally:
        await stop(task)


class NamedTasks(Generic[T]):
    """Tasks of this process by name, each until it ends or another task takes its name."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._tasks))

    def start(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin work under a name."""
        task = self._tasks[name] = asyncio.create_task(work)

        def forget(task: asyncio.Task[T]) -> None:
            if self._tasks.get(name) is task:
                del self._tasks[name]
            if not task.cancelled():
                # Nobody may be waiting for the task any more, to retrieve its error.
                task.exception()

        task.add_done_callback(forget)
        return task

    def get(self, name: str) -> asyncio.Task[T] | None:
        """Return the task with a name, if one is running."""
        return self._tasks.get(name)

    async def aclose(self) -> None:
        """Stop all tasks."""
        await stop(*self._tasks.values())
