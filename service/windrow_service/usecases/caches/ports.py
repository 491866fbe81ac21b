"""What the use cases need of the cache map: workers that live, and the files that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow.models import Heartbeat, WorkerInfo
from windrow_service.planner.caching.file_keys import Holding
from windrow_service.planner.splits import Hashes

# A worker's keys take 8 bytes each, here and in Redis.
MAX_CACHED_FILES = 2_000_000
# A plan asks what each holds: 15 ms for 1,000 of them.
MAX_WORKERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """What a worker says of its cache.

    Attributes:
        worker_id: The worker.
        session: The one of its last heartbeat.
        table_id: The table whose files it speaks of.
        added: Keys of files that it holds; in any order.
        removed: Keys of files that it no longer holds, unless they are added; in any order.
        replace: Whether it holds no files of the table but those added.
    """

    worker_id: str
    session: str
    table_id: int
    added: Hashes
    removed: Hashes
    replace: bool


class Heartbeats(Protocol):
    """Workers, until they have not been heard of for their time to live."""

    async def beat(self, worker_id: str, heartbeat: Heartbeat, now: datetime) -> WorkerInfo:
        """Note that a worker lives; one that was not known begins a session.

        Raises:
            TooManyWorkersError: The worker is new, and `MAX_WORKERS` live.
            CacheUnavailableError: The cache map does not answer.
        """

    async def live(self, now: datetime) -> Sequence[WorkerInfo]:
        """Return the workers that live, by id.

        Raises:
            CacheUnavailableError: The cache map does not answer.
        """

    async def forget(self, worker_id: str, now: datetime) -> None:
        """Forget a worker and what it holds.

        Raises:
            WorkerNotFoundError: No such worker lives.
            CacheUnavailableError: The cache map does not answer.
        """


class CacheMap(Protocol):
    """Which files the workers that live hold, as keys that `planner.file_keys` makes."""

    async def report(self, report: CacheReport, now: datetime) -> int:
        """Change what a worker holds, wholly or not at all; return how many files of the table.

        Raises:
            WorkerNotFoundError: No such worker lives, or it is in another session.
            CacheFullError: The worker would hold more than `MAX_CACHED_FILES` files.
            CacheUnavailableError: The cache map does not answer.
        """

    async def holdings(self, table_id: int, now: datetime) -> Sequence[Holding]:
        """Return what each worker that lives holds of a table, be it nothing, by worker id.

        Raises:
            CacheUnavailableError: The cache map does not answer.
        """

    async def ping(self) -> None:
        """Return if the cache map answers.

        Raises:
            CacheUnavailableError: It does not.
        """
