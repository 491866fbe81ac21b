"""Metrics for Prometheus: docs/reference/metrics.md explains each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client import Gauge as PrometheusGauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from windrow_core.models import PlanSummary, RefreshStatus, WorkerInfo
from windrow_core.version import __version__
from windrow_service.telemetry.meters import (
    Called,
    Gauge,
    MaintenanceFigures,
    Meters,
    Store,
    TableFigures,
)

# Times of creation would double the series, and no query here needs them.
disable_created_metrics()

_REQUEST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_PHASE_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_WAIT_S = (0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60)
_REFRESH_S = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600)
_CALL_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 5, 30)
_PRUNING_STEPS = ("manifest", "partition", "statistics", "bloom", "limit")
_PLACEMENTS = {
    "held": "cached_files",
    "primary": "primary_placements",
    "secondary": "secondary_placements",
    "fallback": "fallback_placements",
}
# Callers choose the methods and paths of requests without a route: these must not become series.
_METHODS = frozenset(("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"))
_NONE = "none"


class PrometheusMeters(Meters):
    """Counts events in its own registry."""

    def __init__(self, max_workers: int) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        Info("windrow_build", "Version of the coordinator.", registry=registry).info(
            {"version": __version__}
        )
        histogram = partial(Histogram, registry=registry)
        counter = partial(Counter, registry=registry)
        gauge = partial(PrometheusGauge, registry=registry)
        self._requests = histogram(
            "windrow_request_seconds",
            "Time until a request was answered, by route and class of status.",
            ("method", "route", "status"),
            buckets=_REQUEST_S,
        )
        self._phases = histogram(
            "windrow_planning_seconds",
            "Time of each phase of making a plan.",
            ("phase",),
            buckets=_PHASE_S,
        )
        self._plans = counter("windrow_plans", "Plans made.")
        self._planned = {
            "files": counter("windrow_planned_files", "Files that plans read."),
            "bytes": counter("windrow_planned_bytes", "Bytes that plans read."),
        }
        self._pruned = {
            "files": counter("windrow_pruned_files", "Files ruled out, by step.", ("step",)),
            "bytes": counter("windrow_pruned_bytes", "Bytes ruled out, by step.", ("step",)),
        }
        self._groups = counter("windrow_groups", "Split groups of plans.")
        self._placements = counter(
            "windrow_placements", "Cacheable files of plans, by where they are read.", ("choice",)
        )
        self._waits = histogram(
            "windrow_queue_wait_seconds",
            "Time that work waited for a thread.",
            ("queue",),
            buckets=_WAIT_S,
        )
        self._refused = counter(
            "windrow_queue_refused", "Work refused because too much was waiting.", ("queue",)
        )
        self._manifests = counter(
            "windrow_manifest_reads",
            "Manifests that plans and other work needed, by whether they were in memory.",
            ("outcome",),
        )
        self._refreshes = histogram(
            "windrow_refresh_seconds",
            "Time of refreshes that ended here, by outcome.",
            ("outcome",),
            buckets=_REFRESH_S,
        )
        self._files_listed = counter("windrow_refresh_listed_files", "Files that refreshes found.")
        self._footers_read = counter("windrow_refresh_read_footers", "Footers that refreshes read.")
        self._writes = counter(
            "windrow_writes",
            "Writes that reached a state; one that is published is a commit.",
            ("kind", "state"),
        )
        self._work = counter(
            "windrow_maintenance_work",
            "Work items of maintenance that ended, by state.",
            ("state",),
        )
        self._compactions_planned = counter(
            "windrow_compaction_plans", "Pages of compaction plans."
        )
        self._calls = histogram(
            "windrow_store_seconds",
            "Time of calls to the database and the cache map.",
            ("store", "operation"),
            buckets=_CALL_S,
        )
        self._failed_calls = counter(
            "windrow_store_failures",
            "Calls that the database or the cache map did not answer.",
            ("store", "operation"),
        )
        self._gauges: Mapping[Gauge, PrometheusGauge] = {
            "queue_running": gauge(
                "windrow_queue_running", "Work that runs in threads now.", ("queue",)
            ),
            "queue_waiting": gauge("windrow_queue_waiting", "Work that waits now.", ("queue",)),
            "manifest_cache_bytes": gauge(
                "windrow_manifest_cache_bytes", "Bytes of decoded manifests in memory."
            ),
            "refreshes_running": gauge("windrow_refreshes_running", "Refreshes that run here now."),
            "clock_skew_seconds": gauge(
                "windrow_clock_skew_seconds",
                "How far this machine's clock is ahead of the database's.",
            ),
        }
        # These series exist from the start: a rate needs the zero before the first event.
        for step in _PRUNING_STEPS:
            self._pruned["files"].labels(step)
            self._pruned["bytes"].labels(step)
        for choice in _PLACEMENTS:
            self._placements.labels(choice)
        for outcome in ("hit", "miss"):
            self._manifests.labels(outcome)
        for outcome in ("done", "failed", "cancelled"):
            self._refreshes.labels(outcome)
        for kind in ("write", "compaction", "removal"):
            for state in ("staging", "published", "undone"):
                self._writes.labels(kind, state)
        for state in ("done", "gave_up", "failed"):
            self._work.labels(state)
        self._shared = _Shared(max_workers)
        registry.register(self._shared)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(
            method if method in _METHODS else _NONE, route or _NONE, f"{status // 100}xx"
        ).observe(seconds)

    def plan(self, summary: PlanSummary, phases: Mapping[str, float]) -> None:
        self._plans.inc()
        self._groups.inc(summary.group_count)
        self._planned["files"].inc(summary.files_planned)
        self._planned["bytes"].inc(summary.size_bytes)
        for what, counter in self._pruned.items():
            for step in _PRUNING_STEPS:
                if count := getattr(summary, f"{what}_pruned_by_{step}"):
                    counter.labels(step).inc(count)
        if summary.cacheable_files:
            for choice, field in _PLACEMENTS.items():
                self._placements.labels(choice).inc(getattr(summary, field))
        for phase, seconds in phases.items():
            self._phases.labels(phase).observe(seconds)

    def waited(self, queue: str, seconds: float) -> None:
        self._waits.labels(queue).observe(seconds)

    def refused(self, queue: str) -> None:
        self._refused.labels(queue).inc()

    def manifests(self, *, hits: int, misses: int) -> None:
        self._manifests.labels("hit").inc(hits)
        self._manifests.labels("miss").inc(misses)

    def refresh(self, status: RefreshStatus) -> None:
        self._refreshes.labels(status.status).observe(status.seconds)
        self._files_listed.inc(status.progress.files_found)
        self._footers_read.inc(status.progress.footers_read)

    def write(self, kind: str, state: str) -> None:
        self._writes.labels(kind, state).inc()

    def work(self, state: str) -> None:
        self._work.labels(state).inc()

    def maintenance(self, figures: MaintenanceFigures) -> None:
        self._shared.maintenance = figures

    def compaction_planned(self) -> None:
        self._compactions_planned.inc()

    def caller(self, store: Store, operation: str) -> Called:
        calls = self._calls.labels(store, operation)
        failures = self._failed_calls.labels(store, operation)

        def called(seconds: float, failed: bool) -> None:
            calls.observe(seconds)
            if failed:
                failures.inc()

        return called

    def gauge(self, name: Gauge, read: Callable[[], float], queue: str | None = None) -> None:
        gauge = self._gauges[name]
        (gauge if queue is None else gauge.labels(queue)).set_function(read)
        if queue is not None:
            self._waits.labels(queue)
            self._refused.labels(queue)

    def tables(self, count: int, worst: Sequence[TableFigures]) -> None:
        self._shared.tables = count, tuple(worst)

    def workers(self, live: Sequence[WorkerInfo]) -> None:
        self._shared.workers = tuple(live)


class _Shared(Collector):
    """Figures that all replicas share: of the worst tables, maintenance, and workers' caches."""

    def __init__(self, max_workers: int) -> None:
        self._max_workers = max_workers
        self.tables: tuple[int, tuple[TableFigures, ...]] = (0, ())
        self.workers: tuple[WorkerInfo, ...] = ()
        self.maintenance = MaintenanceFigures(0, 0, 0, 0.0)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures that were looked up last."""
        count, worst = self.tables
        yield GaugeMetricFamily("windrow_tables", "Registered tables.", value=count)
        yield _by_table("windrow_table_files", "Files of the table.", worst, "files")
        yield _by_table("windrow_table_size_bytes", "Bytes of the table.", worst, "size_bytes")
        yield _by_table(
            "windrow_table_excess_files",
            "Files beyond those that the table would have if each had 128 MiB.",
            worst,
            "excess",
        )
        for name, help_text in (
            ("waiting", "Work items of maintenance that wait for a worker."),
            ("running", "Work items of maintenance that a worker has."),
            ("excess_files", "Files that maintenance would save in partitions with policies."),
            ("left_seconds", "Core seconds of the budget of maintenance that are left."),
        ):
            value = getattr(self.maintenance, name)
            yield GaugeMetricFamily(f"windrow_maintenance_{name}", help_text, value=value)
        live = self.workers
        yield GaugeMetricFamily("windrow_cache_workers", "Live workers.", value=len(live))
        workers = sorted(live, key=lambda one: (-one.counters.hits - one.counters.misses, one.host))
        workers = workers[: self._max_workers]
        for name, verb in (("capacity_bytes", "may hold"), ("used_bytes", "holds")):
            family = GaugeMetricFamily(
                f"windrow_cache_{name}", f"Bytes that the worker {verb}.", labels=("worker",)
            )
            for worker in workers:
                family.add_metric((worker.worker_id,), getattr(worker, name))
            yield family
        for name, help_text in (
            ("hits", "Files that the worker read from its cache."),
            ("misses", "Files that the worker fetched into its cache."),
            ("failures", "Files that the worker read from their source because its cache failed."),
            ("elsewhere", "Files read by the worker's tasks that belong to other workers."),
            ("evictions", "Files that the worker removed to make room."),
        ):
            counter = CounterMetricFamily(f"windrow_cache_{name}", help_text, labels=("worker",))
            for worker in workers:
                counter.add_metric((worker.worker_id,), getattr(worker.counters, name))
            yield counter


def _by_table(
    name: str, help_text: str, tables: Sequence[TableFigures], field: str
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help_text, labels=("table",))
    for table in tables:
        family.add_metric((table.name,), getattr(table, field))
    return family
