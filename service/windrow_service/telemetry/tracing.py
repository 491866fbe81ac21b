"""Traces for OpenTelemetry, sent to the collector that the standard variables `OTEL_…` name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

from windrow_core.version import __version__
from windrow_service.telemetry.meters import Store
from windrow_service.telemetry.spans import Answered, Phase, Spans

_FAILED = 500


class OpenTelemetrySpans(Spans):
    """Spans of one coordinator; it has its own provider, and leaves that of the process alone."""

    def __init__(self) -> None:
        in_attributes = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        has_name = in_attributes or "OTEL_SERVICE_NAME" in os.environ
        self._provider = TracerProvider(
            resource=Resource.create({} if has_name else {SERVICE_NAME: "windrow"}),
            shutdown_on_exit=False,
        )
        # Sends in a thread; spans that it cannot send in time are dropped.
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("windrow", __version__)

    @contextmanager
    def request(
        self, method: str, headers: Iterable[tuple[bytes, bytes]], request_id: str
    ) -> Iterator[Answered]:
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        with self._tracer.start_as_current_span(
            method, context=propagate.extract(carrier), kind=SpanKind.SERVER
        ) as span:

            def answered(route: str, status: int) -> None:
                span.update_name(f"{method} {route}".rstrip())
                span.set_attributes(
                    {
                        "http.request.method": method,
                        "http.route": route,
                        "http.response.status_code": status,
                        "windrow.request_id": request_id,
                    }
                )
                if status >= _FAILED:
                    span.set_status(Status(StatusCode.ERROR))

            yield answered

    @contextmanager
    def call(self, store: Store, operation: str) -> Iterator[None]:
        if not _is_in_trace():
            yield
            return
        with self._tracer.start_as_current_span(
            f"{store} {operation}", kind=SpanKind.CLIENT, record_exception=False
        ):
            yield

    def phases(self, work: str, phases: Sequence[Phase]) -> None:
        if not _is_in_trace():
            return
        clocks_apart_s = time.time() - time.perf_counter()
        for phase in phases:
            began_s, ended_s = phase.began_s + clocks_apart_s, phase.ended_s + clocks_apart_s
            span = self._tracer.start_span(f"{work} {phase.name}", start_time=int(began_s * 1e9))
            span.end(int(ended_s * 1e9))

    def close(self) -> None:
        self._provider.shutdown()


def _is_in_trace() -> bool:
    # Background work, such as purges and renewals of leases, belongs to no trace.
    return trace.get_current_span().get_span_context().is_valid
