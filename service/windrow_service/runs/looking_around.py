"""What metrics say of tables and workers, looked up when somebody asks for them."""

from __future__ import annotations

import time
from contextlib import suppress

from windrow_service.telemetry.meters import LooksAtTables, Meters
from windrow_service.usecases.caches.ports import Heartbeats
from windrow_service.usecases.errors import UseCaseError
from windrow_service.usecases.ports import Clock

# The database reads a row for each table.
_TABLES_EVERY_S = 60.0


class LookAround:
    """Looks at tables and workers, and tells the meters.

    Args:
        meters: Are told.
        tables: Finds the tables with the most excess files.
        workers: Knows the live ones.
        max_tables: Most tables that are named.
        clock: The time.
    """

    def __init__(
        self,
        meters: Meters,
        tables: LooksAtTables,
        workers: Heartbeats,
        max_tables: int,
        clock: Clock,
    ) -> None:
        self._meters = meters
        self._tables = tables
        self._workers = workers
        self._max_tables = max_tables
        self._clock = clock
        self._tables_again_s = 0.0

    async def __call__(self) -> None:
        """Look; what does not answer stays as it was seen last."""
        with suppress(UseCaseError):
            self._meters.workers(await self._workers.live(self._clock()))
        now = time.monotonic()
        if now >= self._tables_again_s:
            self._tables_again_s = now + _TABLES_EVERY_S
            with suppress(UseCaseError):
                self._meters.tables(*await self._tables.worst(self._max_tables))
