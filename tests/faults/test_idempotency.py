"""A key sent many times at once, to one or two replicas, causes one change and equal answers."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, coordinator_process

AT_ONCE = 20
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(params=["one on sqlite", "two on sqlite", "one on postgresql", "two on postgresql"])
def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[httpx.Client]]:
    """Clients of one or two coordinator processes on one database."""
    count, _, kind = request.param.partition(" on ")
    environment = {}
    if kind == "postgresql":
        environment["WINDROW_DATABASE_URL"] = request.getfixturevalue("upgraded_postgresql_url")
    with ExitStack() as stack:
        started = [
            stack.enter_context(coordinator_process(tmp_path / "state", tmp_path, **environment))
            for _ in range(1 if count == "one" else 2)
        ]
        yield [
            stack.enter_context(httpx.Client(verify=PLAIN, base_url=replica.url, timeout=60))
            for replica in started
        ]


def all_at_once(
    replicas: list[httpx.Client], method: str, path: str, **request: Any
) -> list[httpx.Response]:
    """Send a request from many threads at once, alternating between the replicas."""
    start = threading.Barrier(AT_ONCE)

    def send(number: int) -> httpx.Response:
        start.wait()
        return replicas[number % len(replicas)].request(method, path, **request)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(send, range(AT_ONCE)))


def assert_made_once(answers: list[httpx.Response], status: int) -> None:
    assert [answer.status_code for answer in answers] == [status] * AT_ONCE, answers[0].text
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers.get("ETag") for answer in answers}) == 1
    first = [answer for answer in answers if "Idempotency-Replayed" not in answer.headers]
    assert len(first) == 1


def inventory() -> bytes:
    rows = pa.table(
        {
            "path": ["ds=2026-11-01/a"],
            "size_bytes": pa.array([5], pa.int64()),
            "mtime_ns": pa.array([1], pa.int64()),
            "row_count": pa.array([1], pa.int64()),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue()


def test_a_change_requested_twenty_times_at_once_is_made_once(
    replicas: list[httpx.Client], tmp_path: Path
) -> None:
    table = {
        "location": str(tmp_path / "t"),
        "columns": [{"name": "id", "type": "bigint"}],
        "partition_columns": [{"name": "ds", "type": "date"}],
    }

    registered = all_at_once(
        replicas, "PUT", "/tables/t", json=table, headers={"Idempotency-Key": "register"}
    )
    assert_made_once(registered, 201)

    # The first request changes the table's version, so the others no longer meet the condition.
    etag = registered[0].headers["ETag"]
    headers = {"Content-Type": ARROW, "Idempotency-Key": "publish", "If-Match": etag}
    published = all_at_once(
        replicas, "POST", "/tables/t/snapshots", content=inventory(), headers=headers
    )
    assert_made_once(published, 201)
    snapshots = replicas[0].get("/tables/t/snapshots").json()["snapshots"]
    assert [snapshot["snapshot_id"] for snapshot in snapshots] == [1]

    planned = all_at_once(
        replicas, "POST", "/plans", json={"table": "t"}, headers={"Idempotency-Key": "plan"}
    )
    assert [answer.status_code for answer in planned] == [200] * AT_ONCE, planned[0].text
    assert len({answer.json()["plan_id"] for answer in planned}) == 1

    deleted = all_at_once(replicas, "DELETE", "/tables/t", headers={"Idempotency-Key": "delete"})
    assert_made_once(deleted, 204)
    problem_of(replicas[-1].get("/tables/t"), 404, "table-not-found")


def test_only_one_of_twenty_different_requests_under_one_key_is_carried_out(
    replicas: list[httpx.Client], tmp_path: Path
) -> None:
    start = threading.Barrier(AT_ONCE)

    def register(number: int) -> httpx.Response:
        start.wait()
        return replicas[number % len(replicas)].put(
            f"/tables/t{number}",
            json={"location": str(tmp_path / "t")},
            headers={"Idempotency-Key": "same"},
        )

    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(register, range(AT_ONCE)))

    made = [answer for answer in answers if answer.is_success]
    assert len(made) == 1
    for answer in answers:
        if answer is not made[0]:
            problem_of(answer, 422, "idempotency-key-reused")
    listed = [table["name"] for table in replicas[0].get("/tables").json()["tables"]]
    assert listed == [made[0].json()["name"]]
