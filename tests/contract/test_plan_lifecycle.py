"""Plans made in the background, polled, shared, reused, and stopped."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, coordinator_process
from tests.support.tables import hive
from tests.support.tables.inventories import inventory
from windrow_calls.plans import read_group_stream
from windrow_service.runs import plan_runs
from windrow_service.store.plans import SqlPlanStore
from windrow_service.usecases.plans.ports import PlanRecord

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
ASYNC = {"Prefer": "respond-async"}
# One group per file, whatever the sizes.
ALONE = {"max_split_size": 1}


def submit(http: httpx.Client, table: str, prefer: str = "respond-async", **fields: Any) -> Any:
    return http.post("/plans", json={"table": table, **fields}, headers={"Prefer": prefer})


def ended(http: httpx.Client, plan_id: str) -> dict[str, Any]:
    """Poll a plan until it has ended."""
    deadline = time.monotonic() + 60
    while True:
        answer = http.get(f"/plans/{plan_id}")
        assert answer.status_code == 200, answer.text
        plan: dict[str, Any] = answer.json()
        if plan["status"] != "submitted":
            return plan
        assert answer.headers["Retry-After"] == "1"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def timeless(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that equal plans have in common."""
    own = ("plan_id", "created_at", "expires_at", "next_page_token", "summary")
    took = ("planning_seconds", "phase_seconds")
    summary = {k: v for k, v in plan["summary"].items() if k not in took}
    return {k: v for k, v in plan.items() if k not in own} | {"summary": summary}


def test_a_background_plan_equals_an_immediate_one(
    http: httpx.Client, events: str, make_plan: Callable[..., dict[str, Any]]
) -> None:
    at_once = make_plan(events, filter="ds >= '2026-11-02'", page_size=1)
    answer = submit(http, events, filter="ds >= '2026-11-02'", page_size=1)

    assert answer.status_code == 202
    submitted = answer.json()
    assert answer.headers["Location"] == f"/plans/{submitted['plan_id']}"
    assert submitted["status"] in ("submitted", "completed")
    plan = ended(http, submitted["plan_id"])
    assert plan["status"] == "completed"
    assert timeless(plan) == timeless(at_once)
    assert plan["expires_at"] == submitted["expires_at"]


def test_a_caller_may_wait_a_while_for_a_plan_in_the_background(
    http: httpx.Client, events: str
) -> None:
    answer = submit(http, events, prefer="respond-async, wait=30")

    assert answer.status_code == 200
    assert answer.json()["status"] == "completed"
    assert answer.json()["groups"]


def test_a_plan_that_takes_long_is_recorded_before_it_is_made(
    http: httpx.Client, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others can continue it then; its caller waits for the same plan."""
    monkeypatch.setattr(plan_runs, "_LONG_S", 0)
    headers = {"Prefer": "respond-async, wait=20", "Idempotency-Key": "a-long-plan"}
    recorded: list[str] = []
    put = SqlPlanStore.put

    async def note(store: SqlPlanStore, plan: PlanRecord, *args: Any, **more: Any) -> None:
        recorded.append(plan.state)
        await put(store, plan, *args, **more)

    monkeypatch.setattr(SqlPlanStore, "put", note)
    answers = [http.post("/plans", json={"table": events}, headers=headers) for _ in range(2)]

    assert recorded == ["submitted"]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["groups"]
    assert answers[0].json()["plan_id"] == answers[1].json()["plan_id"]
    problem_of(submit(http, events, headers["Prefer"], filter="nothing = 1"), 422, "invalid-filter")
    failed = submit(http, events, headers["Prefer"], columns=["nothing"]).json()
    assert ended(http, failed["plan_id"])["status"] == "failed"


def test_other_preferences_are_ignored(http: httpx.Client, events: str) -> None:
    assert submit(http, events, prefer="return=minimal, wait=5").status_code == 200


@pytest.mark.parametrize("prefer", ["respond-async", "respond-async, wait=20"])
def test_a_request_that_cannot_be_planned_is_refused_before_it_is_submitted(
    http: httpx.Client, events: str, prefer: str
) -> None:
    problem_of(submit(http, "nowhere", prefer), 404, "table-not-found")
    problem_of(submit(http, events, prefer, filter="nothing = 1"), 422, "invalid-filter")
    problem_of(submit(http, events, prefer, snapshot_id=99), 404, "snapshot-not-found")
    numbers = {"snapshot_id": 1, "partitions": [[70, 80]]}
    problem_of(submit(http, events, prefer, **numbers), 422, "invalid-partitions")


@pytest.mark.parametrize("prefer", ["respond-async", "respond-async, wait=20"])
def test_a_plan_that_fails_in_the_background_says_why(
    http: httpx.Client, events: str, prefer: str
) -> None:
    plan_id = submit(http, events, prefer, columns=["nothing"]).json()["plan_id"]
    plan = ended(http, plan_id)

    assert plan["status"] == "failed"
    assert plan["problem"]["type"].endswith(":invalid-columns")
    problem = problem_of(http.get(f"/plans/{plan_id}/groups"), 409, "plan-not-completed")
    assert "no column 'nothing'" in problem["detail"]
    problem_of(http.get(f"/plans/{plan_id}/explain"), 409, "plan-not-completed")


def test_a_plan_is_reused_only_on_request_and_only_for_the_same_request(
    http: httpx.Client, events: str, location: Path, make_plan: Callable[..., dict[str, Any]]
) -> None:
    first = make_plan(events, filter="ds = '2026-11-01'")
    anew = make_plan(events, filter="ds = '2026-11-01'")
    again = make_plan(events, filter="ds = '2026-11-01'", reuse=True)
    other = make_plan(events, filter="ds = '2026-11-02'", reuse=True)

    assert again["summary"]["planning_seconds"] in (
        first["summary"]["planning_seconds"],
        anew["summary"]["planning_seconds"],
    )
    assert len({plan["plan_id"] for plan in (first, anew, again, other)}) == 4
    assert timeless(again) == timeless(anew) == timeless(first) | {"groups": first["groups"]}
    assert other["groups"] != first["groups"]

    # Deleting plans does not remove groups that another plan shares.
    for plan in (first, anew):
        http.delete(f"/plans/{plan['plan_id']}").raise_for_status()
    groups = http.get(f"/plans/{again['plan_id']}/groups").json()["groups"]
    assert groups == first["groups"]

    hive.write_file(location / "ds=2026-11-01" / "new.parquet", [1])
    http.post(f"/tables/{events}/refresh").raise_for_status()
    later = make_plan(events, filter="ds = '2026-11-01'", reuse=True)
    assert later["snapshot_id"] == again["snapshot_id"] + 1
    assert later["summary"]["files_planned"] == again["summary"]["files_planned"] + 1


@pytest.mark.parametrize("page_size", [1, 4, 10_000])
def test_pages_and_stream_hold_the_same_groups(
    http: httpx.Client, events: str, make_plan: Callable[..., dict[str, Any]], page_size: int
) -> None:
    plan = make_plan(events, options=ALONE, page_size=page_size)
    path = f"/plans/{plan['plan_id']}/groups"
    groups, token = plan["groups"], plan["next_page_token"]
    while token is not None:
        page = http.get(path, params={"page_token": token, "page_size": page_size}).json()
        groups, token = groups + page["groups"], page["next_page_token"]
    table = read_group_stream(plan["plan_id"], http.get(path, headers=ARROW).content)

    assert [group["group_id"] for group in groups] == table["group_id"].to_pylist()
    paths = [[split["path"] for split in group["splits"]] for group in groups]
    assert paths == [[split["path"] for split in splits] for splits in table["splits"].to_pylist()]


@pytest.mark.parametrize("prefer", ["", "respond-async, wait=20"])
def test_one_request_gives_a_plan_with_all_its_groups(
    http: httpx.Client, events: str, prefer: str
) -> None:
    headers = ARROW | {"Prefer": prefer, "Idempotency-Key": f"whole-{prefer}".replace(" ", "-")}
    body = {"table": events, "filter": "id <> 7", "options": ALONE, "page_size": 0}
    answer = http.post("/plans", json=body, headers=headers)
    again = http.post("/plans", json=body, headers=headers)

    assert answer.headers["Content-Type"] == ARROW["Accept"]
    with pa.ipc.open_stream(answer.content) as stream:
        plan = json.loads(stream.schema.metadata[b"windrow:plan"])
    path = f"/plans/{plan['plan_id']}"
    without_groups = {"groups": [], "next_page_token": None}
    assert plan == http.get(path).json() | without_groups
    groups = read_group_stream("plan", answer.content)
    assert groups.equals(
        read_group_stream("plan", http.get(f"{path}/groups", headers=ARROW).content)
    )
    assert len(groups) == plan["summary"]["group_count"] > 1
    assert (again.content, again.headers["Idempotency-Replayed"]) == (answer.content, "true")


def test_a_plan_that_is_not_completed_yet_is_answered_without_groups(
    http: httpx.Client, events: str
) -> None:
    answer = http.post("/plans", json={"table": events}, headers=ARROW | ASYNC)

    assert (answer.status_code, answer.json()["table"]) == (202, events)


def test_the_client_gets_the_same_plan_from_a_coordinator_that_answers_in_json(
    url: str, events: str
) -> None:
    asked: list[str] = []

    def note(request: httpx.Request) -> None:
        asked.append(request.url.path)

    def answer_as_older_ones(request: httpx.Request) -> None:
        if request.method == "POST":
            request.headers["Accept"] = "application/json"

    with windrow.connect(url) as client:
        client._transport._http.event_hooks = {"request": [note]}
        at_once = client.plan(events, filter="id <> 7", **ALONE)
        client._transport._http.event_hooks = {"request": [note, answer_as_older_ones]}
        in_two = client.plan(events, filter="id <> 7", **ALONE)

    assert asked == ["/plans", "/plans", f"/plans/{in_two.info.plan_id}/groups"]
    assert at_once.groups.equals(in_two.groups, check_metadata=True)
    told = [timeless(plan.info.model_dump()) for plan in (at_once, in_two)]
    assert told[0] == told[1]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """URL and state folder of a coordinator with one planning thread and a large table `t`."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "t").mkdir()
    state = folder / "state"
    limits = {"WINDROW_LIMITS__MAX_PLAN_BYTES": str(64 * 2**20)}
    with (
        coordinator_process(state, folder, WINDROW_PLANNER_THREADS="1", **limits) as coordinator,
        httpx.Client(verify=PLAIN, base_url=coordinator.url, timeout=60) as http,
    ):
        column = {"name": "id", "type": "bigint"}
        definition = {"location": str(folder / "t"), "columns": [column]}
        http.put("/tables/t", json=definition).raise_for_status()
        files = inventory([1_000_000] * 300_000).select(
            ["path", "size_bytes", "mtime_ns", "row_count"]
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, files.schema) as stream:
            stream.write_table(files)
        http.post(
            "/tables/t/snapshots",
            content=sink.getvalue().to_pybytes(),
            headers={"Content-Type": "application/vnd.apache.arrow.stream"},
        ).raise_for_status()
        yield coordinator.url, state


@pytest.fixture
def busy(large: tuple[str, Path]) -> Iterator[httpx.Client]:
    with httpx.Client(verify=PLAIN, base_url=large[0], timeout=60) as client:
        yield client


def bodies(state: Path) -> int:
    with closing(sqlite3.connect(state / "windrow.db")) as database:
        (count,) = database.execute("SELECT count(*) FROM plan_bodies").fetchone()
        return int(count)


@pytest.mark.slow
def test_equal_plans_requested_at_the_same_time_are_made_once(
    large: tuple[str, Path], busy: httpx.Client
) -> None:
    before = bodies(large[1])
    with ThreadPoolExecutor(6) as threads:
        answers = list(
            threads.map(lambda _: busy.post("/plans", json={"table": "t", "limit": 7}), range(6))
        )
    plans = [answer.json() for answer in answers]

    assert len({plan["plan_id"] for plan in plans}) == 6
    assert bodies(large[1]) - before < 6
    assert len({plan["summary"]["planning_seconds"] for plan in plans}) < 6
    for plan in plans:
        busy.delete(f"/plans/{plan['plan_id']}").raise_for_status()
    assert bodies(large[1]) == before


@pytest.mark.slow
def test_deleting_a_plan_that_is_being_made_stops_it_and_leaves_nothing(
    large: tuple[str, Path], busy: httpx.Client
) -> None:
    before = bodies(large[1])
    # With one thread, the last of these cannot have started when it is deleted.
    plans = [
        submit(busy, "t", options={"max_split_size": 1_000_000, "parallelism": n + 1}).json()
        for n in range(4)
    ]
    for plan in plans:
        assert busy.delete(f"/plans/{plan['plan_id']}").status_code == 204
    for plan in plans:
        problem_of(busy.get(f"/plans/{plan['plan_id']}"), 404, "plan-not-found")
    # This plan was requested last: once it is made, the thread has finished the others.
    assert busy.post("/plans", json={"table": "t", "limit": 1}).status_code == 200
    assert bodies(large[1]) - before == 1


@pytest.mark.slow
def test_requesting_groups_of_an_unfinished_plan_is_a_clear_problem(
    busy: httpx.Client,
) -> None:
    plan_id = submit(busy, "t", options={"parallelism": 77}).json()["plan_id"]
    answer = busy.get(f"/plans/{plan_id}/groups")
    if answer.status_code != 200:
        problem_of(answer, 409, "plan-not-completed")
        assert answer.headers["Retry-After"] == "1"
    assert ended(busy, plan_id)["status"] == "completed"
    assert busy.get(f"/plans/{plan_id}/groups").status_code == 200


@pytest.mark.slow
def test_plans_beyond_the_budget_are_refused_until_some_are_deleted(
    busy: httpx.Client,
) -> None:
    made: list[str] = []
    for n in range(40):
        options = {"max_split_size": 1_000_000, "parallelism": 100 + n}
        answer = busy.post("/plans", json={"table": "t", "options": options, "page_size": 0})
        if answer.status_code != 200:
            break
        made.append(answer.json()["plan_id"])
    problem_of(answer, 503, "plans-full")
    assert int(answer.headers["Retry-After"]) > 0
    assert made

    for plan_id in made:
        busy.delete(f"/plans/{plan_id}").raise_for_status()
    deadline = time.monotonic() + 60
    while busy.post("/plans", json={"table": "t", "page_size": 0}).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("prefer", ["", "respond-async, wait=20"])
def test_a_plan_requested_again_with_its_key_is_the_same_plan(
    http: httpx.Client, events: str, prefer: str
) -> None:
    headers = {"Idempotency-Key": f"plan {prefer}".replace(" ", "-"), "Prefer": prefer}
    body = {"table": events, "page_size": 2, "options": ALONE}
    first = http.post("/plans", json=body, headers=headers)
    again = http.post("/plans", json=body, headers=headers)
    problem = http.post("/plans", json=body | {"page_size": 3}, headers=headers)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    problem_of(problem, 422, "idempotency-key-reused")


def test_a_plan_deleted_again_with_its_key_is_deleted_once(
    http: httpx.Client, events: str, make_plan: Callable[..., dict[str, Any]]
) -> None:
    path, key = f"/plans/{make_plan(events)['plan_id']}", {"Idempotency-Key": "delete-a-plan"}

    assert http.delete(path, headers=key).status_code == 204
    assert http.delete(path, headers=key).status_code == 204
    problem_of(http.delete(path), 404, "plan-not-found")
