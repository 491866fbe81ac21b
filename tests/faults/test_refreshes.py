"""Refreshes at two replicas on PostgreSQL: killed, cancelled, concurrent, and cut off."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.processes.forks import fork_module, run_forked
from tests.support.servers.coordinators import PLAIN, CoordinatorProcess, coordinator_process
from tests.support.servers.databases import PostgreSQL, postgresql
from tests.support.servers.slow_store import slow_store
from tests.support.tables import hive
from windrow import connect
from windrow_calls.errors import RefreshFailedError
from windrow_core.models import RefreshStatus
from windrow_service.store.database import server_url, upgrade_database

ASYNC = {"Prefer": "respond-async"}
REFRESH = "/tables/events/refresh"
DEADLINE_S = 120
# Reading the footers of the former takes a second or two, of the latter several seconds.
MANY, TOO_MANY = 12_000, 40_000


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return hive.write_events(tmp_path / "events")


def add_many(location: Path, count: int = MANY) -> None:
    """Add files quickly, as hard links to one file."""
    first = hive.write_file(location / "ds=2026-12-01" / "part.parquet", range(10))
    for number in range(count):
        os.link(first, first.with_name(f"part-{number:05d}.parquet"))


@contextmanager
def upgraded_postgresql() -> Iterator[PostgreSQL]:
    with postgresql() as server:
        upgrade_database(server_url(server.url))
        yield server


@contextmanager
def two_replicas(tmp_path: Path, url: str) -> Iterator[tuple[Replica, Replica]]:
    with (
        coordinator_process(tmp_path / "one", tmp_path, WINDROW_DATABASE_URL=url) as one,
        coordinator_process(tmp_path / "two", tmp_path, WINDROW_DATABASE_URL=url) as two,
        httpx.Client(verify=PLAIN, base_url=one.url, timeout=DEADLINE_S) as http,
        httpx.Client(verify=PLAIN, base_url=two.url, timeout=DEADLINE_S) as other,
    ):
        yield Replica(one, http), Replica(two, other)


class Replica:
    """One of two coordinators, and a client for it."""

    def __init__(self, process: CoordinatorProcess, http: httpx.Client) -> None:
        self.process = process
        self.http = http

    def register(self, location: Path) -> None:
        self.http.put("/tables/events", json={"location": str(location)}).raise_for_status()

    def refresh(self) -> dict[str, Any]:
        answer = self.http.post(REFRESH)
        assert answer.status_code == 200, answer.text
        status: dict[str, Any] = answer.json()
        return status

    def begin(self) -> dict[str, Any]:
        """Start a refresh and wait until it reads footers."""
        started = self.http.post(REFRESH, headers=ASYNC)
        assert started.status_code == 202, started.text
        self.wait_for(lambda status: bool(status["progress"]["footers_read"]))
        status: dict[str, Any] = started.json()
        return status

    def wait_for(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Poll the status of the refresh until it fulfils the condition."""
        status: dict[str, Any] = {}

        def asked() -> bool:
            nonlocal status
            answer = self.http.get(REFRESH)
            status = answer.json()
            return answer.is_success and holds(status)

        poll_until(asked)
        return status

    def planned_paths(self) -> list[str]:
        body = {"table": "events", "page_size": 10_000, "options": {"max_split_size": "1GB"}}
        plan = self.http.post("/plans", json=body).json()
        return sorted(split["path"] for group in plan["groups"] for split in group["splits"])

    def snapshot_ids(self) -> list[int]:
        page = self.http.get("/tables/events/snapshots").json()
        return [snapshot["snapshot_id"] for snapshot in page["snapshots"]]


def poll_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def followed(url: str) -> RefreshStatus:
    """Refresh the table with the Python client."""
    with connect(url) as client:
        return client.refresh("events")


def ended(status: dict[str, Any]) -> bool:
    return bool(status["status"] != "running")


def test_callers_waiting_for_the_refresh_of_a_killed_replica_get_a_correct_snapshot(
    tmp_path: Path, location: Path, upgraded_postgresql_url: str
) -> None:
    with (
        two_replicas(tmp_path, upgraded_postgresql_url) as (one, two),
        ThreadPoolExecutor() as threads,
    ):
        one.register(location)
        old = one.refresh()
        add_many(location)
        killed = one.begin()
        waiting = threads.submit(two.refresh)
        following = threads.submit(followed, two.process.url)
        time.sleep(0.5)
        one.process.kill()

        # The status of the killed refresh remains until another replica takes over.
        assert len(two.planned_paths()) == 6
        abandoned = two.wait_for(lambda s: ended(s) or s["refresh_id"] != killed["refresh_id"])
        if abandoned["refresh_id"] == killed["refresh_id"]:
            assert abandoned["problem"]["type"] == "urn:windrow:problem:refresh-abandoned"
            assert "POST /tables/events/refresh" in abandoned["problem"]["detail"]

        done = waiting.result()
        assert done["refresh_id"] != killed["refresh_id"]
        assert (done["status"], done["files_added"]) == ("done", MANY + 1)
        assert done["snapshot"]["snapshot_id"] == old["snapshot"]["snapshot_id"] + 1
        assert following.result().files_added == MANY + 1
        assert two.planned_paths() == hive.data_files(location)


def test_many_callers_at_two_replicas_share_one_refresh(
    tmp_path: Path, location: Path, upgraded_postgresql_url: str
) -> None:
    add_many(location)
    with (
        two_replicas(tmp_path, upgraded_postgresql_url) as replicas,
        ThreadPoolExecutor(16) as threads,
    ):
        replicas[0].register(location)
        calls = [threads.submit(replicas[number % 2].refresh) for number in range(16)]
        outcomes = [call.result() for call in calls]

        assert len({outcome["refresh_id"] for outcome in outcomes}) == 1
        assert all(outcome == outcomes[0] for outcome in outcomes)
        assert outcomes[0]["progress"]["footers_read"] == MANY + 7
        assert [replica.snapshot_ids() for replica in replicas] == [[1], [1]]
        assert replicas[0].http.get(REFRESH).json() == replicas[1].http.get(REFRESH).json()


def test_a_refresh_is_seen_and_cancelled_from_the_other_replica(
    tmp_path: Path, location: Path, upgraded_postgresql_url: str
) -> None:
    with (
        two_replicas(tmp_path, upgraded_postgresql_url) as (one, two),
        ThreadPoolExecutor() as threads,
    ):
        one.register(location)
        one.refresh()
        add_many(location, TOO_MANY)
        begun = one.begin()
        waiting = [threads.submit(replica.http.post, REFRESH) for replica in (one, two)]
        following = threads.submit(followed, two.process.url)
        two.wait_for(lambda status: bool(status["progress"]["footers_read"]))

        answer = two.http.delete(REFRESH)

        assert (answer.status_code, answer.json()["refresh_id"]) == (202, begun["refresh_id"])
        for call in waiting:
            problem_of(call.result(), 409, "refresh-cancelled")
        with pytest.raises(RefreshFailedError, match="cancelled"):
            following.result()
        seen = [replica.http.get(REFRESH).json() for replica in (one, two)]
        assert seen[0] == seen[1]
        assert (seen[0]["status"], seen[0]["refresh_id"]) == ("cancelled", begun["refresh_id"])
        assert seen[0]["progress"]["footers_read"] > 0
        problem_of(one.http.delete(REFRESH), 404, "refresh-not-running")
        assert one.snapshot_ids() == [1]
        shutil.rmtree(location / "ds=2026-12-01")
        assert two.refresh()["changed"] is False


def test_a_stopped_replica_hands_its_refresh_to_the_other_at_once(
    tmp_path: Path, location: Path, upgraded_postgresql_url: str
) -> None:
    with (
        two_replicas(tmp_path, upgraded_postgresql_url) as (one, two),
        ThreadPoolExecutor() as threads,
    ):
        one.register(location)
        add_many(location)
        stopped = one.begin()
        waiting = threads.submit(two.refresh)

        assert one.process.stop() in (0, -15)

        assert "Traceback" not in one.process.log.read_text()
        done = waiting.result()
        assert (done["status"], done["files_added"]) == ("done", MANY + 7)
        assert done["refresh_id"] != stopped["refresh_id"]
        assert two.snapshot_ids() == [1]


def test_a_refresh_survives_a_restart_of_the_database(tmp_path: Path, location: Path) -> None:
    with (
        upgraded_postgresql() as server,
        two_replicas(tmp_path, server.url) as (one, two),
        ThreadPoolExecutor() as threads,
    ):
        one.register(location)
        one.refresh()
        add_many(location)
        begun = one.begin()
        waiting = [threads.submit(replica.refresh) for replica in (one, two)]
        time.sleep(0.5)

        server.stop()
        for replica in (one, two):
            problem_of(replica.http.get(REFRESH), 503, "store-unavailable")
            assert replica.http.get("/health/live").is_success
        # Longer than it takes to read the files, so that publication has to wait.
        time.sleep(6)
        server.start()

        # Whether the runner or the waiting callers reconnect first, all get a correct outcome.
        done = [call.result() for call in waiting]
        assert {status["status"] for status in done} == {"done"}
        assert one.snapshot_ids() == [2, 1]
        assert one.wait_for(ended)["refresh_id"] in {
            begun["refresh_id"],
            *(status["refresh_id"] for status in done),
        }
        assert two.planned_paths() == hive.data_files(location)


def test_ctrl_c_leaves_a_refresh_running_and_another_command_cancels_it(tmp_path: Path) -> None:
    add_many(tmp_path / "store" / "tables" / "events")
    with (
        # Slow enough that reading all files takes minutes on any machine.
        slow_store(tmp_path / "store", latency_s=0.2) as store,
        coordinator_process(
            tmp_path / "state",
            tmp_path,
            WINDROW_ALLOWED_LOCATIONS="s3://tables",
            **store.environment,
        ) as process,
        httpx.Client(verify=PLAIN, base_url=process.url, timeout=DEADLINE_S) as http,
    ):
        replica = Replica(process, http)
        http.put("/tables/events", json={"location": "s3://tables/events"}).raise_for_status()
        out, err = tmp_path / "out", tmp_path / "err"
        asked = ("windrow_cli", "table", "refresh", "events")
        environment = os.environ | {"WINDROW_URL": process.url}
        following = fork_module(*asked, output=out, errors=err, environment=environment)
        poll_until(lambda: http.get(REFRESH).is_success)
        # Give the command time to get its answer and to start following.
        time.sleep(0.5)
        following.send_signal(signal.SIGINT)
        stopped = following.wait()
        running = http.get(REFRESH).json()
        cancelling = run_forked(tmp_path, *asked, "--cancel", WINDROW_URL=process.url)

        assert (stopped, out.read_text()) == (130, "")
        assert "`windrow table refresh events --cancel` stops it" in err.read_text()
        assert running["status"] == "running"
        assert cancelling.returncode == 0, cancelling.stderr
        assert "cancelled; nothing was published" in cancelling.stdout
        assert replica.wait_for(ended)["status"] == "cancelled"
        assert replica.snapshot_ids() == []
