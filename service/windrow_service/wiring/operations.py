"""Build the services of operators: health, metrics, and the log of changes."""

from __future__ import annotations

from windrow_service.api.services import OperationServices
from windrow_service.config import config_of
from windrow_service.runs.metric_lookups import MetricLookups
from windrow_service.runs.readiness import Readiness
from windrow_service.store.audit import SqlAuditLog
from windrow_service.store.figures import SqlTableFigures
from windrow_service.store.receipts import SqlWorkStore
from windrow_service.wiring.adapters import Adapters

_PURGE_EVERY_S = 60.0


async def open_operations(adapters: Adapters) -> OperationServices:
    """Return the services of operators; serve metrics, and forget old changes, meanwhile."""
    settings, watch = adapters.settings, adapters.watch
    audit = adapters.stored(SqlAuditLog(adapters.database), "audit")

    async def purge_audit() -> int:
        return await audit.purge(
            adapters.clock() - settings.audit.max_age, settings.audit.max_records
        )

    adapters.repeat("forget old records of changes", purge_audit, _PURGE_EVERY_S)
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
    )


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
