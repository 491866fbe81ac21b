"""`/workers`: heartbeats, and reports of what workers hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_core.models import CacheCounters
from windrow_service.settings import Settings

BEAT = {"host": "cache-1", "capacity_bytes": 10**12, "used_bytes": 10**9}
MakePlan = Callable[..., dict[str, Any]]


@pytest.fixture
def worker(http: httpx.Client, name: str) -> Iterator[str]:
    """The id of a live worker that no other test uses."""
    http.put(f"/workers/{name}", json=BEAT).raise_for_status()
    yield name
    http.delete(f"/workers/{name}")


def beat(http: httpx.Client, worker: str, **fields: Any) -> dict[str, Any]:
    answer = http.put(f"/workers/{worker}", json=BEAT | fields)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def report(http: httpx.Client, worker: str, table: str, **fields: Any) -> httpx.Response:
    session = fields.pop("session", None) or beat(http, worker)["session"]
    return http.post(
        f"/workers/{worker}/cached-files", json={"table": table, "session": session, **fields}
    )


def files_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The files of a plan, as a worker reports them."""
    return [
        {name: split[name] for name in ("path", "size_bytes", "mtime_ns")}
        for group in plan["groups"]
        for split in group["splits"]
    ]


def hosts_by_path(plan: dict[str, Any]) -> dict[str, list[str]]:
    return {split["path"]: group["hosts"] for group in plan["groups"] for split in group["splits"]}


def test_a_heartbeat_is_answered_with_the_worker_and_when_it_expires(
    http: httpx.Client, worker: str
) -> None:
    first, second = beat(http, worker), beat(http, worker, used_bytes=5, ttl_seconds=60)

    assert first["ttl_seconds"] == 30
    assert second == BEAT | {
        "worker_id": worker,
        "used_bytes": 5,
        "ttl_seconds": 60,
        "counters": dict.fromkeys(CacheCounters.model_fields, 0),
        "session": first["session"],
        "expires_at": second["expires_at"],
    }
    expires_at = datetime.fromisoformat(second["expires_at"])
    assert expires_at > datetime.now(timezone.utc) + timedelta(seconds=1)


@pytest.mark.parametrize(
    "body",
    [
        BEAT | {"host": "two words"},
        BEAT | {"host": ""},
        BEAT | {"capacity_bytes": -1},
        BEAT | {"ttl_seconds": 0},
        BEAT | {"ttl_seconds": 3_601},
        BEAT | {"rack": "r1"},
        {},
    ],
    ids=str,
)
def test_an_invalid_heartbeat_is_refused(http: httpx.Client, body: dict[str, Any]) -> None:
    problem_of(http.put("/workers/w1", json=body), 422, "invalid-request")


@pytest.mark.parametrize("worker_id", ["a:b", "*", "a%20b", ".a", "x" * 129, "%F0%9F%90%99"])
def test_worker_ids_that_could_be_patterns_or_keys_are_refused(
    http: httpx.Client, worker_id: str
) -> None:
    problem_of(http.put(f"/workers/{worker_id}", json=BEAT), 422, "invalid-request")
    assert http.put(f"/workers/{worker_id}%0a", json=BEAT).status_code == 422


def test_workers_are_listed_in_pages_by_id(http: httpx.Client, name: str) -> None:
    ids = [f"{name}-{number}" for number in range(5)]
    for worker_id in reversed(ids):
        beat(http, worker_id)

    found: list[str] = []
    token = None
    while token is not None or not found:
        page = http.get(
            "/workers", params={"page_size": 2} | ({"page_token": token} if token else {})
        )
        assert len(page.json()["workers"]) <= 2
        found += [worker["worker_id"] for worker in page.json()["workers"]]
        token = page.json()["next_page_token"]

    assert found == sorted(found)
    assert set(ids) <= set(found)
    for worker_id in ids:
        assert http.delete(f"/workers/{worker_id}").status_code == 204
    problem_of(http.get("/workers", params={"page_token": "made-up"}), 404, "page-not-found")


def test_a_forgotten_worker_is_not_found(http: httpx.Client, worker: str) -> None:
    assert http.delete(f"/workers/{worker}").status_code == 204

    problem_of(http.delete(f"/workers/{worker}"), 404, "worker-not-found")


def test_a_report_of_an_old_session_is_refused(
    http: httpx.Client, events: str, worker: str
) -> None:
    passed = beat(http, worker)["session"]
    http.delete(f"/workers/{worker}").raise_for_status()

    for _ in range(2):
        problem = problem_of(report(http, worker, events, session=passed), 404, "worker-not-found")
        assert f"PUT /workers/{worker}" in problem["detail"]
        assert beat(http, worker)["session"] != passed


def test_a_report_on_a_missing_table_is_refused(http: httpx.Client, worker: str) -> None:
    problem_of(report(http, worker, "no.such"), 404, "table-not-found")


@pytest.mark.parametrize(
    "fields",
    [
        {"added": [{"path": "", "size_bytes": 1, "mtime_ns": 1}]},
        {"added": [{"path": "a", "size_bytes": -1, "mtime_ns": 1}]},
        {"added": [{"path": "a", "size_bytes": 1, "mtime_ns": 2**63}]},
        {"added": [{"path": "a", "size_bytes": 1}]},
        {"removed": [{"path": "a", "size_bytes": 1, "mtime_ns": 1, "host": "h"}]},
        {"removed": [{"path": "a", "size_bytes": 1, "mtime_ns": 1}] * 10_001},
        {"session": "0" * 15 + "*"},
        {"table": "a*"},
    ],
    ids=lambda fields: str(fields)[:60],
)
def test_an_invalid_report_is_refused(
    http: httpx.Client, worker: str, fields: dict[str, Any]
) -> None:
    body = {"table": "events", "session": "0" * 16} | fields

    problem_of(http.post(f"/workers/{worker}/cached-files", json=body), 422, "invalid-request")


def test_a_path_with_half_a_surrogate_pair_is_refused(http: httpx.Client, worker: str) -> None:
    body = (
        '{"table":"events","session":"0000000000000000",'
        '"added":[{"path":"\\ud800","size_bytes":1,"mtime_ns":1}]}'
    )

    answer = http.post(
        f"/workers/{worker}/cached-files",
        content=body,
        headers={"Content-Type": "application/json"},
    )

    problem_of(answer, 422, "invalid-request")


def test_without_redis_a_coordinator_starts_plans_and_reports_what_is_missing(
    tmp_path: Path,
) -> None:
    hive.write_events(tmp_path / "events")
    nobody = "redis://:secret@127.0.0.1:1/0"
    settings = Settings.model_validate(
        {
            "state_dir": tmp_path / "state",
            "allowed_locations": (str(tmp_path),),
            "redis_url": nobody,
        }
    )
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
        http.put("/tables/events", json={"location": str(tmp_path / "events")}).raise_for_status()
        http.post("/tables/events/refresh").raise_for_status()

        plan = http.post("/plans", json={"table": "events"})
        beaten, ready = http.put("/workers/w1", json=BEAT), http.get("/health/ready")

    assert len(files_of(plan.json())) == 6
    assert "secret" not in problem_of(beaten, 503, "cache-unavailable")["detail"]
    assert int(beaten.headers["Retry-After"]) >= 1
    assert ready.status_code == 200
    assert ready.json() == {
        "status": "degraded",
        "checks": {"database": "ok", "cache": "unavailable", "clock": "ok"},
    }
