"""Traces from the driver through the coordinator to the database, sent to a collector."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider

import windrow
from tests.support.servers.coordinators import PLAIN, coordinator_process
from tests.support.tables import hive
from windrow_core.planning import PlanPhase
from windrow_service.telemetry.meters import UNMEASURED
from windrow_service.telemetry.opening import open_meters, open_spans
from windrow_service.telemetry.spans import UNTRACED
from windrow_service.telemetry.watch import Watch


class Collector:
    """Receives the traces that are sent to `url`."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        collector = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(ExportTraceServiceRequest.FromString(sent))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, sent: ExportTraceServiceRequest) -> None:
        for resource in sent.resource_spans:
            self.services |= {
                one.value.string_value
                for one in resource.resource.attributes
                if one.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans += scope.spans


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever)
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()


def text_of(span: Span, name: str) -> str:
    return next(one.value.string_value for one in span.attributes if one.key == name)


@pytest.mark.slow
def test_a_plan_is_one_trace_from_the_driver_to_the_database(
    collector: Collector, tmp_path: Path
) -> None:
    location = hive.write_events(tmp_path / "tables" / "events")
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("driver")
    with (
        coordinator_process(
            tmp_path / "state",
            tmp_path / "tables",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_TRACES_SAMPLER="parentbased_always_on",
        ) as coordinator,
        windrow.connect(coordinator.url) as client,
    ):
        client.register_table("events", str(location))
        client.refresh("events")
        with tracer.start_as_current_span("read") as driver:
            client.plan("events")
        httpx.get(f"{coordinator.url}/tables/none", verify=PLAIN)
        coordinator.stop()

    context = driver.get_span_context()
    assert context is not None
    ours = [
        span for span in collector.spans if span.trace_id == context.trace_id.to_bytes(16, "big")
    ]
    (plan,) = (span for span in ours if span.kind == Span.SPAN_KIND_SERVER)
    calls = [span for span in ours if span.kind == Span.SPAN_KIND_CLIENT]
    assert collector.services == {"windrow"}
    assert plan.name == "POST /plans"
    assert plan.parent_span_id == context.span_id.to_bytes(8, "big")
    assert text_of(plan, "http.route") == "/plans"
    assert {"database snapshots.get", "database plans.put"} <= {span.name for span in calls}
    phases = [span for span in ours if span.kind == Span.SPAN_KIND_INTERNAL]
    assert [span.name for span in phases] == [f"plan {phase.label}" for phase in PlanPhase]
    assert {span.parent_span_id for span in calls + phases} == {plan.span_id}
    # Phases follow one another, within the request.
    times = [plan.start_time_unix_nano]
    for phase in phases:
        times += [phase.start_time_unix_nano, phase.end_time_unix_nano]
    assert times == sorted(times)
    assert times[-1] <= plan.end_time_unix_nano
    # Work in the background begins no trace.
    roots = [span for span in collector.spans if not span.parent_span_id]
    assert all(span.kind == Span.SPAN_KIND_SERVER for span in roots)
    assert "GET /tables/{name}" in {span.name for span in roots}


def test_without_a_collector_and_metrics_stores_are_not_wrapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)

    class Store:
        async def get(self) -> None: ...

    meters, spans, store = open_meters(None, 0), open_spans(), Store()

    assert (meters, spans) == (UNMEASURED, UNTRACED)
    assert Watch(meters, spans).over(store, "database", "things", ()) is store
    assert vars(store) == {}
