"""Killed and concurrent coordinators neither lose nor mix anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, coordinator_process
from tests.support.tables import hive

ALONE = {"max_split_size": 1}


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return hive.write_events(tmp_path / "events")


def register(http: httpx.Client, location: Path) -> None:
    http.put("/tables/events", json={"location": str(location)}).raise_for_status()


def write_many(location: Path) -> None:
    """Add enough files that refreshing them takes a while."""
    hive.write_events(
        location, days=[f"2026-12-{day:02d}" for day in range(1, 29)], files_per_day=25
    )


def refresh(http: httpx.Client) -> dict[str, Any]:
    answer = http.post("/tables/events/refresh")
    assert answer.is_success, answer.text
    status: dict[str, Any] = answer.json()
    return status


def planned_paths(http: httpx.Client) -> list[str]:
    plan = http.post("/plans", json={"table": "events", "page_size": 10_000}).json()
    return sorted(split["path"] for group in plan["groups"] for split in group["splits"])


@dataclass(frozen=True, slots=True)
class Crash:
    """The state before a coordinator was killed in mid-refresh, and a client of its successor."""

    location: Path
    paths: list[str]
    snapshot: dict[str, Any]
    plan: dict[str, Any]
    after: httpx.Client


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crash]:
    folder = tmp_path_factory.mktemp("crash")
    location = hive.write_events(folder / "events")
    paths = hive.data_files(location)
    with (
        coordinator_process(folder / "state", folder) as first,
        httpx.Client(verify=PLAIN, base_url=first.url, timeout=60) as http,
    ):
        register(http, location)
        snapshot = refresh(http)["snapshot"]
        body = {"table": "events", "options": ALONE, "page_size": 2}
        plan = http.post("/plans", json=body).json()
        write_many(location)
        http.post("/tables/events/refresh", headers={"Prefer": "respond-async"})
        while (status := http.get("/tables/events/refresh").json())["status"] == "running":
            if status["progress"]["phase"] == "reading footers":
                break
            time.sleep(0.01)
        first.kill()

    with (
        coordinator_process(folder / "state", folder) as second,
        httpx.Client(verify=PLAIN, base_url=second.url, timeout=60) as http,
    ):
        yield Crash(location, paths, snapshot, plan, http)


def test_a_kill_in_the_middle_of_a_refresh_leaves_the_previous_snapshot(crash: Crash) -> None:
    current = crash.after.get("/tables/events").json()["current_snapshot"]

    # If the refresh was quicker than the kill, it has published all files, not some.
    whole = hive.data_files(crash.location)
    expected = crash.paths if current == crash.snapshot else whole
    assert planned_paths(crash.after) == expected
    refresh(crash.after)
    assert planned_paths(crash.after) == whole


def test_plans_survive_a_kill_and_page_on_with_the_old_tokens(crash: Crash) -> None:
    groups, token = crash.plan["groups"], crash.plan["next_page_token"]
    while token is not None:
        params = {"page_token": token, "page_size": 2}
        page = crash.after.get(f"/plans/{crash.plan['plan_id']}/groups", params=params).json()
        groups = groups + page["groups"]
        token = page["next_page_token"]

    paths = [split["path"] for group in groups for split in group["splits"]]
    assert sorted(paths) == crash.paths


def test_stopping_a_coordinator_stops_a_long_refresh(tmp_path: Path, location: Path) -> None:
    write_many(location)
    with coordinator_process(tmp_path / "state", tmp_path) as coordinator:
        with httpx.Client(verify=PLAIN, base_url=coordinator.url, timeout=60) as http:
            register(http, location)
            http.post("/tables/events/refresh", headers={"Prefer": "respond-async"})

        # -15, as uvicorn raises the signal again after an orderly shutdown.
        assert coordinator.stop() in (0, -15)
        assert "Traceback" not in coordinator.log.read_text()


def test_two_coordinators_that_refresh_a_table_at_once_neither_lose_nor_mix_files(
    tmp_path: Path, location: Path
) -> None:
    with (
        coordinator_process(tmp_path / "state", tmp_path) as one,
        coordinator_process(tmp_path / "state", tmp_path) as two,
        ThreadPoolExecutor(4) as threads,
        httpx.Client(verify=PLAIN, base_url=one.url, timeout=60) as http,
        httpx.Client(verify=PLAIN, base_url=two.url, timeout=60) as other,
    ):
        register(http, location)
        for round_ in range(3):
            hive.write_file(location / f"ds=2027-01-{round_ + 1:02d}" / "new.parquet", [round_])
            answers = list(
                threads.map(lambda each: each.post("/tables/events/refresh"), [http, other] * 2)
            )

            assert [answer.status_code for answer in answers] == [200] * 4, answers[0].text
            assert planned_paths(http) == hive.data_files(location)
        snapshots = http.get("/tables/events/snapshots").json()["snapshots"]

    assert [snapshot["file_count"] for snapshot in snapshots] == [9, 8, 7]
    assert [snapshot["snapshot_id"] for snapshot in snapshots] == [3, 2, 1]


def test_only_one_of_two_coordinators_that_change_a_table_at_once_succeeds(
    tmp_path: Path, location: Path
) -> None:
    def change(http: httpx.Client, column: str, etag: str) -> int:
        return http.put(
            "/tables/events",
            json={"location": str(location), "sort_columns": [{"name": column}]},
            headers={"If-Match": etag},
        ).status_code

    with (
        coordinator_process(tmp_path / "state", tmp_path) as one,
        coordinator_process(tmp_path / "state", tmp_path) as two,
        ThreadPoolExecutor(2) as threads,
        httpx.Client(verify=PLAIN, base_url=one.url, timeout=60) as http,
        httpx.Client(verify=PLAIN, base_url=two.url, timeout=60) as other,
    ):
        register(http, location)
        for round_ in range(10):
            etag = http.get("/tables/events").headers["ETag"]
            futures = [
                threads.submit(change, each, f"c{round_}_{number}", etag)
                for number, each in enumerate((http, other))
            ]
            assert sorted(future.result() for future in futures) == [200, 412]


def test_a_table_that_is_deleted_during_its_refresh_stays_deleted(
    tmp_path: Path, location: Path
) -> None:
    write_many(location)
    with (
        coordinator_process(tmp_path / "state", tmp_path) as coordinator,
        httpx.Client(verify=PLAIN, base_url=coordinator.url, timeout=60) as http,
        ThreadPoolExecutor(1) as threads,
    ):
        register(http, location)
        http.post("/tables/events/refresh", headers={"Prefer": "respond-async"})
        waiting = threads.submit(httpx.post, f"{coordinator.url}/tables/events/refresh", timeout=60)
        time.sleep(0.05)
        assert http.delete("/tables/events").status_code == 204

        problem_of(waiting.result(), 404, "table-not-found")
        problem_of(http.get("/tables/events"), 404, "table-not-found")


def test_files_that_come_and_go_during_refreshes_never_produce_a_mixed_snapshot(
    tmp_path: Path, location: Path
) -> None:
    steady = set(hive.data_files(location))
    restless = location / "ds=2026-11-02" / "restless.parquet"
    with (
        coordinator_process(tmp_path / "state", tmp_path) as coordinator,
        httpx.Client(verify=PLAIN, base_url=coordinator.url, timeout=60) as http,
        ThreadPoolExecutor(1) as threads,
    ):
        register(http, location)
        refresh(http)

        def move() -> None:
            for round_ in range(60):
                hive.write_file(restless, range(round_ + 1))
                hive.write_file(restless.with_name("other.parquet"), [round_])
                restless.unlink()

        moving = threads.submit(move)
        while not moving.done():
            answer = http.post("/tables/events/refresh")
            if not answer.is_success:
                # Files that are half-written, or gone since the listing, are named.
                assert answer.status_code == 409, answer.text
                assert "ds=2026-11-02/" in answer.json()["detail"]
            paths = set(planned_paths(http))
            assert steady <= paths
            assert paths - steady <= {
                "ds=2026-11-02/restless.parquet",
                "ds=2026-11-02/other.parquet",
            }
        moving.result()
        refresh(http)

        assert planned_paths(http) == hive.data_files(location)


def test_a_full_disk_is_a_clear_error_and_nothing_is_half_published(
    tmp_path: Path, location: Path
) -> None:
    state = tmp_path / "state"
    with (
        coordinator_process(state, tmp_path) as roomy,
        httpx.Client(verify=PLAIN, base_url=roomy.url, timeout=60) as http,
    ):
        register(http, location)
        before = refresh(http)["snapshot"]
        old = planned_paths(http)
        assert roomy.stop() in (0, -15)
    hive.write_events(
        location, days=[f"2026-12-{day:02d}" for day in range(1, 29)], files_per_day=60
    )

    # For this process, a limit of 40,000 bytes per file acts like a full disk.
    limit = ("prlimit", "--fsize=40000")
    with (
        coordinator_process(state, tmp_path, prefix=limit) as full,
        httpx.Client(verify=PLAIN, base_url=full.url, timeout=60) as http,
    ):
        refused = http.post("/tables/events/refresh")

        problem_of(refused, 503, "store-unavailable")
        assert http.get("/health/live").is_success
        assert http.get("/tables/events").json()["current_snapshot"] == before
        assert full.stop() in (0, -15)

    with (
        coordinator_process(state, tmp_path) as roomy,
        httpx.Client(verify=PLAIN, base_url=roomy.url, timeout=60) as http,
    ):
        assert http.get("/tables/events").json()["current_snapshot"] == before
        assert planned_paths(http) == old
        assert refresh(http)["snapshot"]["snapshot_id"] == before["snapshot_id"] + 1
        assert planned_paths(http) == hive.data_files(location)
