"""Build the services of operators: health, metrics, and the log of changes."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from uuid import uuid4

from windrow_core.version import __version__
from windrow_service.api.services import OperationServices
from windrow_service.config import config_of
from windrow_service.runs.metric_lookups import MetricLookups
from windrow_service.runs.readiness import Readiness
from windrow_service.store.audit import SqlAuditLog
from windrow_service.store.figures import SqlTableFigures
from windrow_service.store.receipts import SqlWorkStore
from windrow_service.store.replicas import SqlReplicaStore
from windrow_service.usecases.errors import UseCaseError
from windrow_service.usecases.replicas import NOTE_EVERY_S, Replica
from windrow_service.wiring.adapters import Adapters

_PURGE_EVERY_S = 60.0
_LEAVE_S = 1.0


async def open_operations(adapters: Adapters) -> OperationServices:
    """Return the services of operators; serve metrics, and forget old changes, meanwhile."""
    settings, watch = adapters.settings, adapters.watch
    audit = adapters.stored(SqlAuditLog(adapters.database), "audit")

    async def purge_audit() -> int:
        return await audit.purge(
            adapters.clock() - settings.audit.max_age, settings.audit.max_records
        )

    adapters.repeat("forget old records of changes", purge_audit, _PURGE_EVERY_S)
    replicas = adapters.stored(SqlReplicaStore(adapters.database), "replicas")
    _announce(adapters, replicas)
    if settings.metrics.port is not None:
        await _serve_metrics(adapters, settings.metrics.port)
    database = adapters.database
    readiness = Readiness(database.ping, database.has_room, adapters.clock, adapters.cache)
    adapters.stack.push_async_callback(readiness.aclose)
    return OperationServices(
        clock=adapters.clock,
        readiness=readiness,
        config=config_of(settings),
        meters=watch.meters,
        spans=watch.spans,
        audit=audit,
        replicas=replicas,
    )


def _announce(adapters: Adapters, replicas: SqlReplicaStore) -> None:
    """Say in the database, again and again until the end, that this replica is there."""
    replica_id, started_at = uuid4().hex, adapters.clock()
    host, process = socket.gethostname()[:256], os.getpid()

    async def note() -> None:
        await replicas.note(
            Replica(
                replica_id=replica_id,
                host=host,
                process=process,
                version=__version__,
                started_at=started_at,
                seen_at=adapters.clock(),
            )
        )

    async def leave() -> None:
        # If the database is away, the silence of this replica says the same.
        with suppress(UseCaseError, asyncio.TimeoutError):
            await asyncio.wait_for(replicas.leave(replica_id), _LEAVE_S)

    adapters.stack.push_async_callback(leave)
    adapters.repeat("say that this replica is there", note, NOTE_EVERY_S)


async def _serve_metrics(adapters: Adapters, port: int) -> None:
    # Imported late, because many coordinators measure nothing.
    from windrow_service.api.metrics import serving_metrics
    from windrow_service.telemetry.prometheus import PrometheusMeters

    settings, meters = adapters.settings, adapters.watch.meters
    assert isinstance(meters, PrometheusMeters)
    figures = adapters.stored(SqlTableFigures(adapters.database), "figures")
    work = adapters.stored(SqlWorkStore(adapters.database), "receipts")
    look = MetricLookups(
        meters, figures, work, adapters.cache, settings.metrics.max_tables, adapters.clock
    )
    await adapters.stack.enter_async_context(
        serving_metrics(meters.registry, look, settings.host, port)
    )
