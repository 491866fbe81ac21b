"""PostgreSQL stops, restarts, or is cut off in mid-commit: nothing is lost or doubled."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pyarrow as pa
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.faults.proxies import Proxy, Verdict, proxy
from tests.support.laws import a_few
from tests.support.processes.forks import run_forked
from tests.support.servers.coordinators import (
    PLAIN,
    CoordinatorProcess,
    coordinator_process,
    free_port,
)
from tests.support.servers.databases import PostgreSQL, address_of, postgresql, through
from windrow_service import bootstrap
from windrow_service.settings import Settings

_TIMEOUT_S = 60.0
# The only outcomes that callers may see, whether or not the database is available.
ANSWERS = {"200", "201", "202", "store-unavailable", "outcome-unknown"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_ready(http: httpx.Client) -> bool:
    return http.get("/health/ready").is_success


def files(number: int) -> pa.Table:
    """Return an inventory of one file, identified by its size."""
    return pa.table(
        {
            "path": ["part-0.parquet"],
            "size_bytes": pa.array([number + 1], pa.int64()),
            "mtime_ns": pa.array([number], pa.int64()),
            "row_count": pa.array([1], pa.int64()),
        }
    )


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def definition(folder: Path) -> dict[str, Any]:
    return {"location": str(folder), "columns": [{"name": "id", "type": "bigint"}]}


# --- an outage under load ----------------------------------------------------


@dataclass(slots=True)
class Load:
    """The answers that callers got, and the changes that were confirmed to them."""

    stop: threading.Event = field(default_factory=threading.Event)
    answers: list[httpx.Response] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)
    published: Counter[str] = field(default_factory=Counter)
    planned: list[str] = field(default_factory=list)

    def client(self, url: str) -> windrow.Client:
        """Return a client that retries until it has an answer, and records all answers."""
        client = windrow.connect(url, attempts=60)
        client._transport._http.event_hooks = {"response": [self._note]}
        return client

    def _note(self, answer: httpx.Response) -> None:
        answer.read()
        self.answers.append(answer)


def register(load: Load, url: str, folder: Path, caller: int) -> None:
    with load.client(url) as client:
        number = 0
        while not load.stop.is_set():
            name = f"new_{caller}_{number}"
            client.register_table(name, str(folder), columns={"id": "bigint"})
            load.registered.append(name)
            number += 1


def publish(load: Load, url: str, table: str) -> None:
    with load.client(url) as client:
        number = 0
        while not load.stop.is_set():
            number += 1
            client.publish(table, files(number))
            load.published[table] = number


def plan(load: Load, url: str) -> None:
    with load.client(url) as client:
        while not load.stop.is_set():
            made = client.plan("steady")
            assert made.groups["size_bytes"].to_pylist() == [1]
            load.planned.append(made.info.plan_id)


def page(load: Load, url: str) -> None:
    with httpx.Client(verify=PLAIN, base_url=url, timeout=_TIMEOUT_S) as http:
        while not load.stop.is_set():
            for path in ("/tables", "/tables/steady/snapshots"):
                load.answers.append(http.get(path, params={"page_size": 2}))


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    with postgresql() as server:
        bootstrap.upgrade(Settings.model_validate({"database_url": server.url}))
        yield server


def test_an_outage_under_load_neither_loses_nor_doubles_changes_and_needs_no_restart(
    server: PostgreSQL, tmp_path: Path
) -> None:
    load = Load()
    with (
        coordinator_process(tmp_path / "state", tmp_path, WINDROW_DATABASE_URL=server.url) as one,
        coordinator_process(tmp_path / "state", tmp_path, WINDROW_DATABASE_URL=server.url) as two,
        httpx.Client(verify=PLAIN, base_url=one.url, timeout=_TIMEOUT_S) as http,
        httpx.Client(verify=PLAIN, base_url=two.url, timeout=_TIMEOUT_S) as other,
        ThreadPoolExecutor(8) as threads,
    ):
        replicas = (http, other)
        for name in ("steady", "busy_0", "busy_1"):
            http.put(f"/tables/{name}", json=definition(tmp_path)).raise_for_status()
        http.post("/tables/steady/snapshots", content=stream_of(files(0)), headers=ARROW)
        callers = [
            threads.submit(work, load, url, *more)
            for number, url in enumerate((one.url, two.url))
            for work, *more in (
                (register, tmp_path, number),
                (publish, f"busy_{number}"),
                (plan,),
                (page,),
            )
        ]
        try:
            for _ in range(2):
                begun = len(load.planned)
                until(lambda begun=begun: len(load.planned) > begun + 5)  # type: ignore[misc]
                server.stop()
                for replica in replicas:
                    until(lambda replica=replica: not is_ready(replica))  # type: ignore[misc]
                    problem = replica.get("/health/ready")
                    problem_of(problem, 503, "store-unavailable")
                    assert replica.get("/health/live").status_code == 200
                during = len(load.answers)
                until(lambda during=during: len(load.answers) > during + 20)  # type: ignore[misc]
                server.start()
                for replica in replicas:
                    until(lambda replica=replica: is_ready(replica))  # type: ignore[misc]
            begun = len(load.planned)
            until(lambda: len(load.planned) > begun + 5)
        finally:
            load.stop.set()
        for caller in callers:
            caller.result()

        kinds = Counter(kind_of(answer) for answer in load.answers)
        assert set(kinds) <= ANSWERS, kinds
        assert kinds["store-unavailable"] > 20
        listed = [table["name"] for table in pages(other, "/tables", "tables")]
        assert set(load.registered) <= set(listed)
        for table, count in load.published.items():
            snapshots = pages(http, f"/tables/{table}/snapshots", "snapshots")
            # Each publication made exactly one snapshot.
            assert [snapshot["snapshot_id"] for snapshot in snapshots] == [*range(count, 0, -1)]
            assert [snapshot["size_bytes"] for snapshot in snapshots] == [*range(count + 1, 1, -1)]
        for plan_id in load.planned:
            assert http.get(f"/plans/{plan_id}").status_code == 200
        with psycopg.connect(server.url) as connection:
            count_plans = connection.execute("SELECT count(*) FROM plans").fetchone()
        assert count_plans == (len(load.planned),)
        for process in (one, two):
            assert "Traceback" not in process.log.read_text()


def kind_of(answer: httpx.Response) -> str:
    if answer.is_success:
        return str(answer.status_code)
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    slug = str(answer.json()["type"]).rpartition(":")[2]
    if slug == "store-unavailable":
        assert int(answer.headers["Retry-After"]) > 0
    return slug


def pages(http: httpx.Client, path: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    params = {"page_size": 500}
    while True:
        page = http.get(path, params=params).raise_for_status().json()
        found += page[name]
        if page["next_page_token"] is None:
            return found
        params["page_token"] = page["next_page_token"]


# --- a connection that is cut during a commit --------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """A coordinator that reaches its database through a proxy."""

    http: httpx.Client
    proxy: Proxy
    url: str
    folder: Path
    coordinator: CoordinatorProcess

    def cut_the_commit_of(self, written: bytes, verdict: Verdict) -> threading.Event:
        """Cut the first connection that commits after sending `written`; return an event for it."""
        done = threading.Event()
        last = threading.local()

        def judge(data: bytes) -> Verdict:
            # The proxy has one thread per connection, so each connection has its own state.
            last.seen = getattr(last, "seen", False) or written in data
            if last.seen and b"COMMIT" in data and not done.is_set():
                done.set()
                return verdict
            return "pass"

        self.proxy.judge = judge
        return done


@pytest.fixture
def cut(upgraded_postgresql_url: str, tmp_path: Path) -> Iterator[Cut]:
    with proxy(address_of(upgraded_postgresql_url)) as between:
        proxied = through(between.port, upgraded_postgresql_url)
        with (
            coordinator_process(
                tmp_path / "state", tmp_path, WINDROW_DATABASE_URL=proxied
            ) as coordinator,
            httpx.Client(verify=PLAIN, base_url=coordinator.url, timeout=_TIMEOUT_S) as http,
        ):
            http.put("/tables/t", json=definition(tmp_path)).raise_for_status()
            http.post("/tables/t/snapshots", content=stream_of(files(0)), headers=ARROW)
            yield Cut(http, between, upgraded_postgresql_url, tmp_path, coordinator)


@pytest.mark.parametrize("verdict", ["cut before", "cut after"])
@pytest.mark.parametrize("change", a_few(["register", "publish", "plan", "submit", "delete"], 2))
def test_after_a_connection_cut_during_a_commit_the_key_reveals_the_outcome(
    cut: Cut, change: str, verdict: Verdict
) -> None:
    method, path, content, headers, written = {
        "register": ("PUT", "/tables/u", None, {}, b"INSERT INTO tables"),
        "publish": (
            "POST",
            "/tables/t/snapshots",
            stream_of(files(1)),
            ARROW,
            b"INSERT INTO snapshots",
        ),
        "plan": ("POST", "/plans", None, {}, b"INSERT INTO plans"),
        "submit": ("POST", "/plans", None, {"Prefer": "respond-async"}, b"INSERT INTO plans"),
        "delete": ("DELETE", "/tables/t", None, {}, b"DELETE FROM tables"),
    }[change]
    body = {"register": definition(cut.folder), "plan": {"table": "t"}, "submit": {"table": "t"}}
    if change in body:
        content, headers = (
            httpx.Request("POST", "http://x", json=body[change]).content,
            headers | {"Content-Type": "application/json"},
        )

    def send(key: str) -> httpx.Response:
        return cut.http.request(
            method, path, content=content, headers=headers | {"Idempotency-Key": key}
        )

    done = cut.cut_the_commit_of(written, verdict)
    first = send("the-key")
    again = send("the-key")
    replayed = "Idempotency-Replayed" in again.headers

    problem_of(first, 504, "outcome-unknown")
    assert done.is_set()
    assert again.is_success, again.text
    assert replayed == (verdict == "cut after")
    # The change was made once, by one of the two requests.
    tables = {"register": 2, "delete": 0}.get(change, 1)
    snapshots = {"publish": 2, "delete": 0}.get(change, 1)
    plans = 1 if change in ("plan", "submit") else 0
    with psycopg.connect(cut.url) as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM tables), (SELECT count(*) FROM snapshots), "
            "(SELECT count(*) FROM plans), (SELECT count(*) FROM idempotency_keys)"
        ).fetchone()
    assert counts == (tables, snapshots, plans, 1)
    assert "Traceback" not in cut.coordinator.log.read_text()


@pytest.mark.parametrize("verdict", ["cut before", "cut after"])
def test_a_background_plan_survives_a_connection_cut_while_being_recorded(
    cut: Cut, verdict: Verdict
) -> None:
    done = cut.cut_the_commit_of(b"UPDATE plans SET snapshot_id", verdict)
    answer = cut.http.post("/plans", json={"table": "t"}, headers={"Prefer": "respond-async"})
    path = f"/plans/{answer.json()['plan_id']}"

    until(lambda: cut.http.get(path).json()["status"] != "submitted")
    assert done.is_set()
    assert cut.http.get(path).json()["status"] == "completed"
    assert len(cut.http.get(path).json()["groups"]) == 1
    assert "Traceback" not in cut.coordinator.log.read_text()


# --- starts that fail --------------------------------------------------------


@pytest.mark.parametrize("command", ["windrow_service", "windrow_cli serve --port 0"])
def test_a_coordinator_that_starts_without_its_database_says_so_in_one_line(
    tmp_path: Path, command: str
) -> None:
    url = f"postgresql://me:open-sesame@127.0.0.1:{free_port()}/windrow"

    done = run_forked(
        tmp_path, *command.split(), WINDROW_DATABASE_URL=url, WINDROW_STATE_DIR="/dev/null/x"
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "database cannot be used (no connection)" in done.stderr
    assert "open-sesame" not in done.stderr


@pytest.mark.parametrize("command", ["windrow_service", "windrow_cli serve --port 0"])
def test_a_coordinator_that_starts_on_an_empty_database_names_the_command_to_set_it_up(
    tmp_path: Path, command: str, postgresql_url: str
) -> None:
    done = run_forked(tmp_path, *command.split(), WINDROW_DATABASE_URL=postgresql_url)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "windrow db upgrade" in done.stderr


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("WINDROW_PORT", "many", "WINDROW_PORT: "),
        ("WINDROW_LIMITS__MAX_BODY_BYTES", "1", "WINDROW_LIMITS__MAX_BODY_BYTES: "),
        ("WINDROW_LIMITS", "{", '"limits"'),
        ("WINDROW_STATE_DIR", "/dev/null/x", "/dev/null/x"),
    ],
)
def test_a_coordinator_with_a_wrong_setting_names_it_in_one_line(
    tmp_path: Path, setting: str, value: str, named: str
) -> None:
    done = run_forked(tmp_path, "windrow_service", **{setting: value})

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert named in done.stderr
