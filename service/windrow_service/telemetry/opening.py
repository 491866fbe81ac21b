"""Opens metrics and traces if they are configured; else their libraries are not imported."""

from __future__ import annotations

import os

from windrow_service.logs import get_logger
from windrow_service.telemetry.meters import UNMEASURED, Meters
from windrow_service.telemetry.spans import UNTRACED, Spans

# OpenTelemetry's variables for the address of a collector.
_COLLECTOR = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_log = get_logger(__name__)


def open_meters(port: int | None, max_workers: int) -> Meters:
    """Return meters that count (`PrometheusMeters`) if metrics have a port, else `UNMEASURED`."""
    if port is None:
        return UNMEASURED
    # Importing it takes a tenth of a second.
    from windrow_service.telemetry.prometheus import PrometheusMeters

    return PrometheusMeters(max_workers)


def open_spans() -> Spans:
    """Return spans that are sent to a collector if the environment names one, else `UNTRACED`."""
    if not any(os.environ.get(name) for name in _COLLECTOR):
        return UNTRACED
    try:
        from windrow_service.telemetry.tracing import OpenTelemetrySpans
    except ImportError:
        _log.warning("nothing is traced", remedy="pip install 'windrow-spark[traces]'")
        return UNTRACED
    return OpenTelemetrySpans()
