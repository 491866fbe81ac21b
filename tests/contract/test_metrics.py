"""`/metrics`: what it counts, that its series are bounded, and who can see it."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes.forks import run_forked
from tests.support.servers.coordinators import PLAIN, free_port, running
from tests.support.servers.redis import redis_process
from windrow_core.planning import PlanPhase
from windrow_service.runs.threads import ThreadRunner
from windrow_service.settings import MetricsSettings, Settings
from windrow_service.telemetry.prometheus import PrometheusMeters
from windrow_service.usecases.errors import BusyError

WRITE = "1" * 32
DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


class Scraped:
    """Samples by name and labels."""

    def __init__(self, text: str) -> None:
        self.values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        return self.values[name, frozenset(labels.items())]

    def labels(self, name: str, label: str) -> set[str]:
        """All values of a label of a metric."""
        return {dict(labels)[label] for known, labels in self.values if known == name}


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    return free_port(), free_port()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, ports: tuple[int, int]) -> Settings:
    folder = tmp_path_factory.mktemp("measured")
    return Settings(
        state_dir=folder / "state",
        allowed_locations=(str(folder),),
        metrics=MetricsSettings(port=ports[0], max_tables=2, max_workers=2),
    )


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    with running(settings) as url:
        yield url


@pytest.fixture(scope="module")
def scrape(url: str, ports: tuple[int, int]) -> Callable[[], Scraped]:
    def get() -> Scraped:
        answer = httpx.get(f"http://127.0.0.1:{ports[0]}/metrics", verify=PLAIN)
        assert answer.status_code == 200
        return Scraped(answer.text)

    return get


@pytest.fixture
def location(settings: Settings, name: str) -> Path:
    return Path(settings.allowed_locations[0]) / name


def test_a_plan_adds_its_own_figures(
    http: httpx.Client, events: str, scrape: Callable[[], Scraped]
) -> None:
    before = scrape()

    asked = {"table": events, "filter": "ds = '2026-11-02' and id < 25"}
    summary = http.post("/plans", json=asked).json()["summary"]
    after = scrape()

    def added(name: str, **labels: str) -> float:
        return after(name, **labels) - before(name, **labels)

    assert summary["files_pruned_by_partition"] + summary["files_pruned_by_manifest"] == 4
    assert summary["files_pruned_by_statistics"] == 0 or summary["files_planned"] == 1
    assert added("windrow_plans_total") == 1
    assert added("windrow_groups_total") == summary["group_count"]
    assert added("windrow_planned_files_total") == summary["files_planned"]
    assert added("windrow_planned_bytes_total") == summary["size_bytes"]
    for step in ("manifest", "partition", "statistics", "bloom", "limit"):
        assert added("windrow_pruned_files_total", step=step) == summary[f"files_pruned_by_{step}"]
        assert added("windrow_pruned_bytes_total", step=step) == summary[f"bytes_pruned_by_{step}"]
    phases = after.labels("windrow_planning_seconds_count", "phase")
    assert phases == {phase.label for phase in PlanPhase}
    told = sum(after("windrow_planning_seconds_sum", phase=phase) for phase in phases)
    assert told > 0
    assert added("windrow_manifest_reads_total", outcome="miss") == 1

    http.post("/plans", json=asked | {"reuse": False}).raise_for_status()

    assert scrape()("windrow_manifest_reads_total", outcome="hit") == 1 + after(
        "windrow_manifest_reads_total", outcome="hit"
    )
    assert scrape()("windrow_manifest_cache_bytes") > 0


def test_requests_are_counted_by_route_whatever_callers_send(
    http: httpx.Client, scrape: Callable[[], Scraped]
) -> None:
    for number in range(3):
        http.get(f"/tables/missing_{number}")
        http.get(f"/nowhere/{number}")
        http.request(f"METHOD{number}", "/tables")

    seen = scrape()

    of = {"method": "GET", "status": "4xx"}
    assert seen("windrow_request_seconds_count", route="/tables/{name}", **of) == 3
    assert seen("windrow_request_seconds_count", route="none", **of) == 3
    assert not [key for key in map(str, seen.values) if "missing_" in key or "METHOD" in key]


def test_refreshes_and_writes_are_counted_once_however_often_they_are_reported(
    http: httpx.Client, events: str, scrape: Callable[[], Scraped]
) -> None:
    before = scrape()

    http.post(f"/tables/{events}/refresh?full=true").raise_for_status()
    beside = {"mode": "append", "host": "driver-1", "process": 7}
    for state in ("staging", "staging", "committing", "committing", "published", "published"):
        sent = beside | {"state": state, "kind": "compaction"}
        http.put(f"/tables/{events}/writes/{WRITE}", json=sent).raise_for_status()
    http.post(f"/tables/{events}/compaction-plans", json={}).raise_for_status()
    after = scrape()

    def added(name: str, **labels: str) -> float:
        return after(name, **labels) - before(name, **labels)

    assert added("windrow_refresh_seconds_count", outcome="done") == 1
    assert added("windrow_refresh_listed_files_total") == 6
    assert added("windrow_writes_total", kind="compaction", state="staging") == 1
    assert added("windrow_writes_total", kind="compaction", state="published") == 1
    assert added("windrow_writes_total", kind="write", state="published") == 0
    assert added("windrow_compaction_plans_total") == 1
    assert after("windrow_refreshes_running") == 0


def test_a_queue_reports_running_waiting_and_refused_work() -> None:
    meters = PrometheusMeters(max_workers=0)
    runner = ThreadRunner(max_running=1, max_waiting=1, name="plans", meters=meters)
    go_on = threading.Event()

    def seen(name: str) -> float:
        text = generate_latest(meters.registry).decode()
        return Scraped(text)(f"windrow_queue_{name}", queue="plans")

    async def fill_the_queue() -> None:
        try:
            asked = [asyncio.create_task(runner.run(go_on.wait)) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(BusyError):
                await runner.run(go_on.wait)
            assert (seen("running"), seen("waiting"), seen("refused_total")) == (1, 1, 1)
        finally:
            go_on.set()
        await asyncio.gather(*asked)

    asyncio.run(fill_the_queue())

    assert (seen("running"), seen("waiting"), seen("wait_seconds_count")) == (0, 0, 2)


def test_each_queue_of_a_coordinator_is_reported_from_the_start(
    scrape: Callable[[], Scraped],
) -> None:
    queues = {"plans", "refreshes", "publishing", "packs", "engines", "erasures", "maintenance"}

    assert scrape().labels("windrow_queue_running", "queue") == queues
    assert scrape().labels("windrow_queue_refused_total", "queue") == queues


def test_calls_to_the_database_are_measured_by_operation(
    http: httpx.Client, events: str, scrape: Callable[[], Scraped]
) -> None:
    before = scrape()
    http.get(f"/tables/{events}").raise_for_status()
    after = scrape()

    of = {"store": "database", "operation": "tables.get"}
    name = "windrow_store_seconds_count"
    assert after(name, **of) == before(name, **of) + 1
    assert after("windrow_store_failures_total", **of) == 0


def test_only_the_busiest_workers_are_named(
    http: httpx.Client, scrape: Callable[[], Scraped]
) -> None:
    for worker, hits in (("w-1", 5), ("w-2", 700), ("w-3", 60)):
        beat = {
            "host": f"host-{worker}",
            "capacity_bytes": 1000,
            "used_bytes": 10,
            "counters": {"hits": hits, "misses": 1},
        }
        http.put(f"/workers/{worker}", json=beat).raise_for_status()

    seen = scrape()

    assert seen("windrow_cache_workers") == 3
    assert seen.labels("windrow_cache_hits_total", "worker") == {"w-2", "w-3"}
    assert seen("windrow_cache_hits_total", worker="w-2") == 700
    assert seen("windrow_cache_misses_total", worker="w-3") == 1
    assert seen("windrow_cache_used_bytes", worker="w-2") == 10


def test_the_documents_list_every_metric_and_no_other(
    http: httpx.Client, events: str, scrape: Callable[[], Scraped]
) -> None:
    http.post("/plans", json={"table": events}).raise_for_status()
    suffixes = re.compile(r"_(bucket|count|sum)$")
    served = {suffixes.sub("", name) for name, _ in scrape().values}

    documented = set(re.findall(r"`(windrow_\w+)`", DOCUMENT.read_text()))

    assert documented == {name for name in served if name.startswith("windrow_")}


def test_metrics_are_not_served_on_the_port_of_calls(http: httpx.Client) -> None:
    assert http.get("/metrics").status_code == 404


def test_the_port_of_metrics_serves_nothing_else(url: str, ports: tuple[int, int]) -> None:
    at = f"http://127.0.0.1:{ports[0]}"
    assert httpx.get(f"{at}/config", verify=PLAIN).status_code == 404
    assert httpx.post(f"{at}/metrics", verify=PLAIN).status_code == 405


@pytest.mark.slow
def test_a_port_in_use_is_reported_in_one_line_that_names_the_setting(
    url: str, ports: tuple[int, int], tmp_path: Path
) -> None:
    taken = {"WINDROW_METRICS__PORT": str(ports[0]), "WINDROW_STATE_DIR": str(tmp_path / "state")}

    done = run_forked(tmp_path, "windrow_service", **taken)

    (line,) = done.stderr.splitlines()
    assert f"nothing can listen on port {ports[0]}" in line
    assert "choose another with WINDROW_METRICS__PORT" in line


def test_nothing_is_measured_unless_a_port_is_set() -> None:
    assert Settings().metrics.port is None


def test_replicas_see_the_same_workers_and_count_failures_of_a_lost_cache_map(
    tmp_path: Path, ports: tuple[int, int]
) -> None:
    beat = {"host": "h", "capacity_bytes": 1, "used_bytes": 1, "counters": {"hits": 3}}
    at = f"http://127.0.0.1:{ports[1]}/metrics"
    with redis_process(tmp_path) as server:
        shared = {"redis_url": server.url, "state_dir": tmp_path / "state"}
        metered = Settings.model_validate(shared | {"metrics": {"port": ports[1]}})
        with running(Settings.model_validate(shared)) as one, running(metered) as other:
            httpx.put(f"{one}/workers/w", json=beat, verify=PLAIN).raise_for_status()
            seen = Scraped(httpx.get(at, verify=PLAIN).text)
            assert seen("windrow_cache_hits_total", worker="w") == 3

            server.stop()
            httpx.get(f"{other}/workers", verify=PLAIN)
            seen = Scraped(httpx.get(at, verify=PLAIN).text)

    of = {"store": "cache_map", "operation": "cache.live"}
    assert seen("windrow_store_failures_total", **of) >= 1
    assert seen("windrow_cache_hits_total", worker="w") == 3
