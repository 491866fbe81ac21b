"""Looks up tables, maintenance and workers for metrics, when somebody reads these."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from windrow_service.logs import get_logger
from windrow_service.telemetry.meters import LooksAtMaintenance, LooksAtTables, Meters
from windrow_service.usecases.caches.ports import Heartbeats
from windrow_service.usecases.errors import UseCaseError
from windrow_service.usecases.ports import Clock

# Not more often, because the database reads a row for each table.
_TABLES_EVERY_S = 60.0
_log = get_logger(__name__)


class MetricLookups:
    """Looks up tables, maintenance and workers, and passes them to the meters."""

    def __init__(
        self,
        meters: Meters,
        tables: LooksAtTables,
        maintenance: LooksAtMaintenance,
        workers: Heartbeats,
        max_tables: int,
        clock: Clock,
    ) -> None:
        self._meters = meters
        self._tables = tables
        self._maintenance = maintenance
        self._workers = workers
        self._max_tables = max_tables
        self._clock = clock
        self._tables_again_s = 0.0

    async def __call__(self) -> None:
        """Look; if a store does not answer, its figures stay as they were."""
        with _logged("workers"):
            self._meters.workers(await self._workers.live(self._clock()))
        with _logged("maintenance"):
            self._meters.maintenance(await self._maintenance.figures())
        now = time.monotonic()
        if now >= self._tables_again_s:
            self._tables_again_s = now + _TABLES_EVERY_S
            with _logged("tables"):
                self._meters.tables(*await self._tables.worst(self._max_tables))


@contextmanager
def _logged(what: str) -> Iterator[None]:
    try:
        yield
    except UseCaseError as error:
        _log.warning(
            f"metrics of {what} were not looked up", error=type(error).__name__, reason=str(error)
        )
