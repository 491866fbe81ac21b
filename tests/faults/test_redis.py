"""Redis stops, loses data and returns; meanwhile plans are less local but still correct."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, CoordinatorProcess, coordinator_process
from tests.support.servers.redis import RedisProcess, redis_process
from tests.support.tables import hive

PASSWORD = "open-sesame"
HOST = "cache-1"
BEAT = {"host": HOST, "capacity_bytes": 10**12, "used_bytes": 0, "ttl_seconds": 3_600}
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Setup:
    """A coordinator with a Redis server, and a table of six files that a worker holds."""

    redis: RedisProcess
    coordinator: CoordinatorProcess
    http: httpx.Client
    location: Path

    def plan(self) -> dict[str, list[str]]:
        """Make a plan that must hold every file once; return the hosts of each file."""
        answer = self.http.post("/plans", json={"table": "events"})
        assert answer.status_code == 200, answer.text
        planned = [
            (split["path"], group["hosts"])
            for group in answer.json()["groups"]
            for split in group["splits"]
        ]
        assert sorted(path for path, _ in planned) == hive.data_files(self.location)
        return dict(planned)

    def is_local(self) -> bool:
        return set(map(tuple, self.plan().values())) == {(HOST,)}

    def ready(self) -> dict[str, Any]:
        answer = self.http.get("/health/ready")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def tell(self) -> bool:
        """Send a heartbeat and report every file as a worker does; return whether both succeeded."""
        beaten = self.http.put("/workers/w1", json=BEAT)
        if not beaten.is_success:
            problem_of(beaten, 503, "cache-unavailable")
            return False
        files = [
            {
                "path": path,
                "size_bytes": (self.location / path).stat().st_size,
                "mtime_ns": (self.location / path).stat().st_mtime_ns,
            }
            for path in hive.data_files(self.location)
        ]
        session = beaten.json()["session"]
        told = self.http.post(
            "/workers/w1/cached-files",
            json={"table": "events", "session": session, "added": files, "replace": True},
        )
        if not told.is_success:
            problem_of(told, 503, "cache-unavailable")
        return told.is_success


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    location = hive.write_events(tmp_path / "tables" / "events")
    (tmp_path / "redis").mkdir()
    with (
        redis_process(tmp_path / "redis", password=PASSWORD) as redis,
        coordinator_process(
            tmp_path / "state", tmp_path / "tables", WINDROW_REDIS_URL=redis.url
        ) as coordinator,
        httpx.Client(verify=PLAIN, base_url=coordinator.url, timeout=_TIMEOUT_S) as http,
    ):
        http.put("/tables/events", json={"location": str(location)}).raise_for_status()
        http.post("/tables/events/refresh").raise_for_status()
        http.put(
            "/tables/events/cache-rules/all", json={"filter": "ds IS NOT NULL"}
        ).raise_for_status()
        made = Setup(redis, coordinator, http, location)
        until(made.tell)
        until(made.is_local)
        yield made


def until(holds: Callable[[], bool]) -> None:
    """Retry until the condition holds: Redis may seem down for a moment on a busy machine."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_without_redis_plans_are_complete_but_not_local_and_readiness_reports_it(
    setup: Setup,
) -> None:
    setup.redis.stop()

    for _ in range(20):
        assert set(map(tuple, setup.plan().values())) == {()}
    assert setup.ready() == {
        "status": "degraded",
        "checks": {"database": "ok", "cache": "unavailable", "clock": "ok"},
    }
    cache = setup.http.get("/tables/events/cache").json()
    assert (cache["cacheable_files"], cache["cached_files"], cache["workers"]) == (6, 0, [])
    assert not cache["complete"]
    for refused in (
        setup.http.put("/workers/w1", json=BEAT),
        setup.http.get("/workers"),
        setup.http.delete("/workers/w1"),
        setup.http.post("/workers/w1/cached-files", json={"table": "events", "session": "0" * 16}),
    ):
        problem_of(refused, 503, "cache-unavailable")
        assert int(refused.headers["Retry-After"]) >= 1
    log = setup.coordinator.log.read_text()
    assert PASSWORD not in log
    assert "Traceback" not in log


def test_without_redis_refreshes_go_on_and_refusals_say_why(setup: Setup) -> None:
    hive.write_file(setup.location / "ds=2026-11-09" / "new.parquet", range(5))
    setup.redis.stop()

    refreshed = setup.http.post("/tables/events/refresh")
    fresh = setup.http.post("/plans", json={"table": "events", "max_staleness": 0})

    assert refreshed.json()["files_added"] == 1
    assert fresh.is_success
    assert len(setup.plan()) == 7
    problem = problem_of(setup.http.put("/workers/w1", json=BEAT), 503, "cache-unavailable")
    assert "(no connection)" in problem["detail"]
    assert "make sure that the Redis server runs" in problem["detail"]
    log = setup.coordinator.log.read_text()
    assert "no connection" in log
    assert PASSWORD not in log + problem["detail"]


@pytest.mark.parametrize(
    ("name", "value", "reason", "advice"),
    [
        ("maxmemory", "1", "its memory is full", "raise the maxmemory"),
        ("min-replicas-to-write", "1", "it lacks replicas", "replicas of the Redis server run"),
    ],
)
def test_a_redis_that_takes_no_writes_is_named(
    setup: Setup, name: str, value: str, reason: str, advice: str
) -> None:
    import redis

    with redis.Redis.from_url(setup.redis.url) as client:
        client.config_set(name, value)
        # A busy machine may answer too late at first.
        until(lambda: reason in setup.http.put("/workers/w1", json=BEAT).text)
        problem = problem_of(setup.http.put("/workers/w1", json=BEAT), 503, "cache-unavailable")
        assert len(setup.plan()) == 6
        client.config_set(name, "0")

    assert advice in problem["detail"]
    log = setup.coordinator.log.read_text()
    assert reason in log
    assert PASSWORD not in log
    until(setup.tell)


def test_after_redis_loses_its_data_plans_are_less_local_until_workers_report_again(
    setup: Setup,
) -> None:
    setup.redis.flush()

    assert set(map(tuple, setup.plan().values())) == {()}
    problem_of(setup.http.delete("/workers/w1"), 404, "worker-not-found")
    until(setup.tell)
    until(setup.is_local)


def test_redis_is_used_again_without_a_restart_once_it_returns(setup: Setup) -> None:
    for _ in range(2):
        setup.redis.stop()
        assert set(map(tuple, setup.plan().values())) == {()}
        setup.redis.start()
        until(setup.tell)
        until(setup.is_local)

    until(lambda: setup.ready()["status"] == "ok")
    assert setup.coordinator.log.read_text().count("cache map is down") <= 4


def test_a_hanging_redis_does_not_delay_plans(setup: Setup) -> None:
    with setup.redis.frozen():
        for _ in range(10):
            assert set(map(tuple, setup.plan().values())) == {()}
        assert setup.ready()["status"] == "degraded"

    until(setup.is_local)
