"""The coordinator's limits, with settings that make them easy to hit."""

from __future__ import annotations

import http.client as http_client
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from fastapi import Request

import windrow
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running, serving
from tests.support.tables import hive
from windrow_service.bootstrap import build_app
from windrow_service.settings import LimitSettings, Settings

ALONE = {"max_split_size": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hive.write_events(tmp_path / "events", files_per_day=4)
    return tmp_path


def settings_of(folder: Path, **limits: object) -> Settings:
    return Settings(
        state_dir=folder / "state",
        allowed_locations=(str(folder),),
        limits=LimitSettings.model_validate(limits),
    )


@contextmanager
def refreshed(url: str, folder: Path) -> Iterator[httpx.Client]:
    with httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
        http.put("/tables/events", json={"location": str(folder / "events")}).raise_for_status()
        http.post("/tables/events/refresh").raise_for_status()
        yield http


@pytest.fixture
def tight(folder: Path) -> Iterator[httpx.Client]:
    limits = {
        "max_body_bytes": 2_000,
        "max_publish_bytes": 3_000,
        "max_filter_nodes": 5,
        "max_filter_depth": 3,
        "max_plan_files": 8,
        "default_page_groups": 2,
        "max_page_groups": 3,
        "max_page_splits": 2,
    }
    with running(settings_of(folder, **limits)) as url, refreshed(url, folder) as http:
        yield http


FEW = "ds <> '2026-11-01'"


def test_the_limits_are_published(tight: httpx.Client, folder: Path) -> None:
    config = tight.get("/config").json()

    assert config["limits"] == {
        "max_body_bytes": 2_000,
        "max_publish_bytes": 3_000,
        "max_publish_decoded_bytes": 512 * 2**20,
        "max_footer_bytes": 64 * 2**20,
        "max_fields": 10_000,
        "max_filter_nodes": 5,
        "max_filter_depth": 3,
        "max_plan_files": 8,
        "default_page_groups": 2,
        "max_page_groups": 3,
        "max_page_splits": 2,
        "max_plan_bytes": 8 * 2**30,
        "plan_ttl_seconds": 3600,
        "max_write_keys": 100_000,
        "max_connections": 500,
        "max_head_bytes": 65_536,
        "max_headers": 100,
        "head_timeout_seconds": 10,
        "body_timeout_seconds": 20,
        "requests_per_minute": 0,
        "wrong_tokens_per_minute": 30,
    }
    assert config["strategies"] == [
        "balanced",
        "openlookeng",
        "spark",
        "iceberg",
        "tez",
    ]
    assert config["allowed_locations"] == [str(folder)]
    assert config["defaults"]["open_file_cost"] > 0


def test_a_plan_of_too_many_files_is_refused_and_a_narrower_one_is_made(
    tight: httpx.Client,
) -> None:
    refused = tight.post("/plans", json={"table": "events"})
    made = tight.post("/plans", json={"table": "events", "filter": FEW})

    detail = problem_of(refused, 422, "plan-too-large")["detail"]
    assert "12 files" in detail
    assert "at most 8 are allowed" in detail
    assert "MAX_PLAN_FILES" in detail
    assert made.json()["summary"]["files_planned"] == 8


def test_a_page_has_the_default_size_and_never_exceeds_the_maximum(tight: httpx.Client) -> None:
    body = {"table": "events", "filter": FEW, "options": ALONE}

    default = tight.post("/plans", json=body).json()
    asked = tight.post("/plans", json=body | {"page_size": 9}).json()
    path = f"/plans/{default['plan_id']}"

    # Two splits fill a page, so a third group does not fit.
    assert len(default["groups"]) == len(asked["groups"]) == 2
    assert len(tight.get(path).json()["groups"]) == 2
    assert len(tight.get(f"{path}/groups", params={"page_size": 100}).json()["groups"]) == 2


def test_a_group_that_exceeds_the_split_limit_is_a_page_by_itself(
    tight: httpx.Client,
) -> None:
    plan = tight.post("/plans", json={"table": "events", "filter": FEW}).json()

    (group,) = plan["groups"]
    assert len(group["splits"]) == 8
    assert plan["next_page_token"] is None


def test_pages_are_also_bounded_by_groups(folder: Path) -> None:
    settings = settings_of(folder, default_page_groups=2, max_page_groups=5)
    with running(settings) as url, refreshed(url, folder) as http:
        body = {"table": "events", "options": ALONE, "page_size": 100}
        plan = http.post("/plans", json=body).json()
        page = http.get(
            f"/plans/{plan['plan_id']}/groups",
            params={"page_token": plan["next_page_token"], "page_size": 100},
        ).json()

    assert (len(plan["groups"]), len(page["groups"])) == (5, 5)


@pytest.mark.parametrize(
    "sql", ["id=1 OR id=2 OR id=3 OR id=4 OR id=5 OR id=6", "NOT (NOT (id=1 OR id=2))"]
)
def test_a_filter_beyond_the_limits_is_refused(tight: httpx.Client, sql: str) -> None:
    answer = tight.post("/plans", json={"table": "events", "filter": sql})

    problem_of(answer, 422, "invalid-filter")


def test_a_too_large_body_is_refused_with_or_without_a_content_length(
    tight: httpx.Client,
) -> None:
    body = b'{"table": "events", "filter": "' + b"x" * 5_000 + b'"}'
    headers = {"Content-Type": "application/json"}

    announced = tight.post("/plans", content=body, headers=headers)
    chunked = tight.post("/plans", content=iter([body[:1_500], body[1_500:]]), headers=headers)

    assert "Content-Length" in announced.request.headers
    assert "Content-Length" not in chunked.request.headers
    for answer in (announced, chunked):
        assert "2,000 bytes" in problem_of(answer, 413, "body-too-large")["detail"]
    assert tight.get("/health/live").is_success


def test_a_body_that_stops_arriving_keeps_no_room_from_others(folder: Path) -> None:
    settings = settings_of(folder, max_body_bytes=2**20, max_publish_bytes=2**20)
    settings = settings.model_copy(update={"planner_threads": 1})
    longest = 2**20 - 1
    with running(settings) as url, refreshed(url, folder) as http, ExitStack() as stack:
        for path, media_type in (
            ("/plans", "application/json"),
            ("/tables/events/snapshots", "application/vnd.apache.arrow.stream"),
        ):
            stalled = http_client.HTTPConnection(http.base_url.netloc.decode(), timeout=60)
            stack.callback(stalled.close)
            stalled.putrequest("POST", path)
            stalled.putheader("Content-Type", media_type)
            stalled.putheader("Content-Length", str(longest))
            stalled.endheaders(b" " * (longest - 1))
            headers = {"Content-Type": media_type}
            # Beginnings of bodies do not count, so short ones are never refused.
            assert http.post(path, content=b"x" * 60_000, headers=headers).status_code == 422
            statuses = {503}
            while 422 not in statuses:
                # What has just arrived is not yet known to be slow.
                statuses.add(http.post(path, content=b"x" * longest, headers=headers).status_code)
            refused = stalled.getresponse()

            assert statuses == {422, 503}
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
            assert b"urn:windrow:problem:bodies-full" in refused.read()


def test_long_filters_are_not_repeated_without_end(folder: Path) -> None:
    added = [{"path": f"{n}.csv", "size_bytes": 1, "mtime_ns": 1} for n in range(400)]
    table = {
        "location": str(folder / "texts"),
        "format": "csv",
        "columns": [{"name": "s", "type": "string"}],
    }
    with running(settings_of(folder)) as url, httpx.Client(verify=PLAIN, base_url=url) as http:
        http.put("/tables/texts", json=table).raise_for_status()
        http.post("/tables/texts/snapshots", json={"added": added}).raise_for_status()

        def planned(length: int) -> httpx.Response:
            filter_ = f"s = '{'x' * length}'"
            body = {"table": "texts", "filter": filter_, "options": ALONE}
            return http.post("/plans", json=body, timeout=60)

        plan = planned(200_000).json()
        refused = planned(1_000_000)
        page = http.get(
            f"/plans/{plan['plan_id']}/groups", params={"page_token": plan["next_page_token"]}
        )

    assert plan["summary"]["group_count"] == 400
    assert len(plan["groups"]) == len(page.json()["groups"]) == 83
    assert "400 groups" in problem_of(refused, 422, "filters-too-long")["detail"]


def test_pages_of_groups_with_long_paths_are_limited_in_bytes(folder: Path) -> None:
    count = 6_000
    files = pa.table(
        {
            "path": [f"{n:05}{'x' * 4_000}" for n in range(count)],
            "size_bytes": pa.array([1] * count, pa.int64()),
            "mtime_ns": pa.array([1] * count, pa.int64()),
            "row_count": pa.array([1] * count, pa.int64()),
        }
    )
    with (
        running(settings_of(folder)) as url,
        windrow.connect(url) as client,
        httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http,
    ):
        client.register_table("paths", str(folder / "paths"), columns={"s": "string"})
        client.publish("paths", files)
        body = {"table": "paths", "options": ALONE, "page_size": 10_000}
        page = http.post("/plans", json=body).json()
        sizes = [len(page["groups"])]
        path = f"/plans/{page['plan_id']}/groups"
        while page["next_page_token"] is not None:
            params = {"page_token": page["next_page_token"], "page_size": 10_000}
            page = http.get(path, params=params).json()
            sizes.append(len(page["groups"]))

    assert sizes == [4_189, 1_811]


def test_a_published_stream_has_its_own_limit(tight: httpx.Client) -> None:
    path = "/tables/events/snapshots"
    stream = {"Content-Type": "application/vnd.apache.arrow.stream"}

    problem_of(tight.post(path, content=b"x" * 2_900, headers=stream), 422, "invalid-inventory")
    too_large = tight.post(path, content=b"x" * 3_001, headers=stream)
    as_json = tight.post(path, json={"removed": ["x" * 2_000]})

    assert "MAX_PUBLISH_BYTES" in problem_of(too_large, 413, "body-too-large")["detail"]
    assert "MAX_BODY_BYTES" in problem_of(as_json, 413, "body-too-large")["detail"]


@pytest.mark.slow
def test_a_plan_is_gone_once_it_has_expired(folder: Path) -> None:
    settings = settings_of(folder, plan_ttl=timedelta(seconds=1))
    with running(settings) as url, refreshed(url, folder) as http:
        plan = http.post(
            "/plans", json={"table": "events", "options": ALONE, "page_size": 1}
        ).json()
        path = f"/plans/{plan['plan_id']}"
        deadline = time.monotonic() + 30
        while (answer := http.get(path)).is_success and time.monotonic() < deadline:
            time.sleep(0.05)

        problem_of(answer, 404, "plan-not-found")
        token = {"page_token": plan["next_page_token"]}
        problem_of(http.get(f"{path}/groups", params=token), 404, "plan-not-found")


def test_an_overloaded_coordinator_says_when_to_retry(folder: Path) -> None:
    settings = settings_of(folder).model_copy(update={"planner_threads": 1, "max_waiting": 0})
    begun, go_on = threading.Event(), threading.Event()
    app = build_app(settings)

    @app.get("/hold", include_in_schema=False)
    async def hold(request: Request) -> None:
        def work() -> None:
            begun.set()
            go_on.wait(30)

        await request.state.services.snapshots.runner.run(work)

    with serving(app) as url, refreshed(url, folder) as http, ThreadPoolExecutor() as threads:
        held = threads.submit(httpx.get, f"{url}/hold", timeout=60)
        begun.wait(30)
        refused = http.post("/plans", json={"table": "events"})
        go_on.set()
        held.result()
        later = http.post("/plans", json={"table": "events"})

    problem_of(refused, 503, "busy")
    assert int(refused.headers["Retry-After"]) >= 1
    assert later.is_success


def test_an_unexpected_error_is_hidden_from_the_caller(folder: Path) -> None:
    app = build_app(settings_of(folder))

    @app.get("/broken", include_in_schema=False)
    async def broken() -> None:
        raise RuntimeError("the password is swordfish")

    with serving(app) as url:
        answer = httpx.get(f"{url}/broken", verify=PLAIN)

    body = problem_of(answer, 500, "internal-error")
    assert "swordfish" not in answer.text
    assert "RuntimeError" not in answer.text
    assert set(body) == {"type", "title", "status", "detail", "instance", "request_id"}


def test_an_unknown_route_or_method_is_a_problem_too(tight: httpx.Client) -> None:
    problem_of(tight.get("/nowhere"), 404, "not-found")
    refused = tight.patch("/tables/events")

    problem_of(refused, 405, "method-not-allowed")
    assert refused.headers["Allow"] == "DELETE, GET, PUT"
