"""Replicas on one database: if one ends, another continues its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pyarrow as pa
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.faults.proxies import Proxy, Verdict, proxy
from tests.support.servers.coordinators import PLAIN, CoordinatorProcess, coordinator_process
from tests.support.servers.databases import new_database
from tests.support.tables.inventories import inventory
from windrow_calls.errors import CoordinatorUnreachableError, IncompletePlanError
from windrow_calls.plans import read_group_stream
from windrow_service import bootstrap
from windrow_service.settings import Settings

FILES = 300_000
ARROW = "application/vnd.apache.arrow.stream"
ASYNC = {"Prefer": "respond-async"}
_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A database with a table `t` of many files and a table `few` of few."""

    folder: Path
    database_url: str

    def replica(self) -> Any:
        """Start a coordinator that makes one plan at a time."""
        return coordinator_process(
            self.folder / "state",
            self.folder,
            WINDROW_DATABASE_URL=self.database_url,
            WINDROW_PLANNER_THREADS="1",
        )

    def count(self, query: str) -> int:
        """Return the single number that a query selects."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def bodies(self) -> int:
        return self.count("SELECT count(*) FROM plan_bodies")


@pytest.fixture(scope="module")
def cluster(postgresql_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with new_database(postgresql_server) as url:
        bootstrap.upgrade(Settings.model_validate({"database_url": url}))
        cluster = Cluster(folder, url)
        with (
            cluster.replica() as first,
            httpx.Client(verify=PLAIN, base_url=first.url, timeout=60) as http,
        ):
            publish(http, folder, "t", FILES)
            publish(http, folder, "few", 50)
        yield cluster


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[tuple[CoordinatorProcess, CoordinatorProcess]]:
    """Two replicas on a database without plans."""
    with psycopg.connect(cluster.database_url) as connection:
        connection.execute("DELETE FROM plans")
        connection.execute("DELETE FROM plan_bodies")
    with cluster.replica() as one, cluster.replica() as other:
        yield one, other


@pytest.fixture
def one(pair: tuple[CoordinatorProcess, CoordinatorProcess]) -> Iterator[httpx.Client]:
    with httpx.Client(verify=PLAIN, base_url=pair[0].url, timeout=_TIMEOUT_S) as http:
        yield http


@pytest.fixture
def other(pair: tuple[CoordinatorProcess, CoordinatorProcess]) -> Iterator[httpx.Client]:
    with httpx.Client(verify=PLAIN, base_url=pair[1].url, timeout=_TIMEOUT_S) as http:
        yield http


def publish(http: httpx.Client, folder: Path, name: str, count: int) -> None:
    (folder / name).mkdir()
    definition = {
        "location": str(folder / name),
        # CSV files can be cut at any line, and many splits make a plan slow.
        "format": "csv",
        "columns": [{"name": "id", "type": "bigint"}],
    }
    http.put(f"/tables/{name}", json=definition).raise_for_status()
    files = inventory([1_000_000] * count).select(["path", "size_bytes", "mtime_ns", "row_count"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, files.schema) as stream:
        stream.write_table(files)
    http.post(
        f"/tables/{name}/snapshots",
        content=sink.getvalue().to_pybytes(),
        headers={"Content-Type": ARROW},
    ).raise_for_status()


def request(number: int, max_split_size: int = 1_000_000) -> dict[str, Any]:
    """Return a request for a large plan, different for each number."""
    options = {"max_split_size": max_split_size, "parallelism": number + 1}
    return {"table": "t", "page_size": 0, "options": options}


def submit(http: httpx.Client, number: int, max_split_size: int = 1_000_000) -> str:
    answer = http.post("/plans", json=request(number, max_split_size), headers=ASYNC)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["plan_id"])


def status_of(http: httpx.Client, plan_id: str) -> str:
    answer = http.get(f"/plans/{plan_id}", params={"page_size": 0})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["status"])


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def groups_of(http: httpx.Client, plan_id: str) -> pa.Table:
    answer = http.get(f"/plans/{plan_id}/groups", headers={"Accept": ARROW})
    assert answer.status_code == 200, answer.text
    return read_group_stream(plan_id, answer.content)


def test_plans_of_a_killed_replica_are_made_by_another(
    cluster: Cluster,
    pair: tuple[CoordinatorProcess, CoordinatorProcess],
    one: httpx.Client,
    other: httpx.Client,
) -> None:
    plans = [submit(one, number) for number in range(3)]
    pair[0].kill()
    left = [plan for plan in plans if status_of(other, plan) == "submitted"]
    # There was no time to make the last plan.
    assert plans[-1] in left

    until(lambda: all(status_of(other, plan) != "submitted" for plan in plans))
    assert [status_of(other, plan) for plan in plans] == ["completed"] * 3
    for number, plan in enumerate(plans):
        at_once = other.post("/plans", json=request(number)).json()["plan_id"]
        assert groups_of(other, plan).equals(groups_of(other, at_once))
        other.delete(f"/plans/{at_once}").raise_for_status()
    assert cluster.count("SELECT count(*) FROM plans") == 3
    assert cluster.bodies() == 3
    log = pair[1].log.read_text()
    assert [plan for plan in left if plan not in log] == []
    assert "Traceback" not in log

    for plan in plans:
        other.delete(f"/plans/{plan}").raise_for_status()
    assert cluster.bodies() == 0


def test_deleting_a_plan_at_one_replica_stops_it_at_another(
    cluster: Cluster,
    pair: tuple[CoordinatorProcess, CoordinatorProcess],
    one: httpx.Client,
    other: httpx.Client,
) -> None:
    with ThreadPoolExecutor(6) as threads:
        plans = list(threads.map(lambda number: submit(one, number, 100_000), range(6)))
    being_made = []
    for plan in plans:
        if status_of(other, plan) == "submitted":
            being_made.append(plan)
        assert other.delete(f"/plans/{plan}").status_code == 204
        problem_of(one.get(f"/plans/{plan}"), 404, "plan-not-found")
    assert len(being_made) >= 2

    def stopped() -> list[str]:
        lines = pair[0].log.read_text().splitlines()
        stops = [line for line in lines if "a plan was deleted, or made elsewhere" in line]
        return [plan for plan in being_made if any(plan in line for line in stops)]

    # One may have been completed just before it was deleted.
    until(lambda: len(stopped()) >= len(being_made) - 1)
    # This plan was requested last: once it is made, the thread has finished the others.
    assert one.post("/plans", json={"table": "few"}).status_code == 200
    assert cluster.bodies() == 1
    assert cluster.count("SELECT count(*) FROM plans") == 1
    assert "Traceback" not in pair[0].log.read_text()


def test_paging_continues_at_another_replica_with_the_same_tokens(
    pair: tuple[CoordinatorProcess, CoordinatorProcess], one: httpx.Client, other: httpx.Client
) -> None:
    plan = one.post("/plans", json={"table": "t", "page_size": 400}).json()
    groups, token = plan["groups"], plan["next_page_token"]
    path = f"/plans/{plan['plan_id']}/groups"
    asked = one
    while token is not None:
        answer = asked.get(path, params={"page_token": token, "page_size": 400})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        groups, token = groups + page["groups"], page["next_page_token"]
        if asked is one:
            pair[0].kill()
            asked = other

    whole = groups_of(other, plan["plan_id"])
    assert len(groups) > 1_000
    assert [group["group_id"] for group in groups] == whole["group_id"].to_pylist()
    paths = [split["path"] for group in groups for split in group["splits"]]
    assert len(paths) == len(set(paths)) == FILES


def test_a_stream_of_a_killed_replica_is_not_mistaken_for_a_complete_plan(
    pair: tuple[CoordinatorProcess, CoordinatorProcess], one: httpx.Client, other: httpx.Client
) -> None:
    plan_id = one.post("/plans", json=request(0)).json()["plan_id"]
    body = b""
    path = f"/plans/{plan_id}/groups"
    with (
        suppress(httpx.TransportError),
        one.stream("GET", path, headers={"Accept": ARROW}) as answer,
    ):
        for data in answer.iter_bytes():
            body += data
            pair[0].kill()

    with pytest.raises(IncompletePlanError):
        read_group_stream(plan_id, body)
    assert sum(map(len, groups_of(other, plan_id)["splits"].to_pylist())) == FILES


def test_a_client_gets_the_whole_stream_from_another_replica_after_a_cut(
    pair: tuple[CoordinatorProcess, CoordinatorProcess],
) -> None:
    with (
        proxy(address_of(pair[0])) as between,
        windrow.connect(url_of(between), check=False) as client,
    ):

        def cut_the_first_stream(data: bytes) -> Verdict:
            if b"POST /plans" in data and between.target == address_of(pair[0]):
                between.answer_bytes, between.target = 100_000, address_of(pair[1])
            return "pass"

        between.judge = cut_the_first_stream
        plan = client.plan("t")

        assert between.target == address_of(pair[1])
    assert plan.summary.files_planned == FILES
    assert sum(map(len, plan.groups["splits"].to_pylist())) == FILES


def test_a_stream_cut_anywhere_is_never_mistaken_for_a_complete_plan(
    pair: tuple[CoordinatorProcess, CoordinatorProcess], one: httpx.Client
) -> None:
    asked = {"table": "few", "options": {"max_split_size": 1_000_000}}
    plan_id = one.post("/plans", json=asked).json()["plan_id"]
    path = f"/plans/{plan_id}/groups"
    body = one.get(path, headers={"Accept": ARROW}).content
    with (
        proxy(address_of(pair[0])) as between,
        windrow.connect(url_of(between), check=False) as client,
    ):
        whole = client.plan("few", max_split_size=1_000_000)
        answered = between.answered

    # A careless proxy may pass on a cut body as a complete answer.
    for end in range(len(body)):
        try:
            table = read_group_stream(plan_id, body[:end])
        except IncompletePlanError:
            continue
        # Only bytes after the end marker were cut off.
        assert table.equals(read_group_stream(plan_id, body))

    offsets = [*range(0, answered - 40, answered // 40), *range(answered - 40, answered)]
    with proxy(address_of(pair[0])) as between:
        for offset in offsets:

            def cut(data: bytes, offset: int = offset) -> Verdict:
                if b"POST /plans" in data:
                    between.answer_bytes = offset
                return "pass"

            between.judge = cut
            with windrow.connect(url_of(between), attempts=1, check=False) as client:
                try:
                    plan = client.plan("few", max_split_size=1_000_000)
                except (IncompletePlanError, CoordinatorUnreachableError):
                    continue
            # Answers differ by a few bytes, since they contain times.
            assert offset > answered - 40
            assert plan.groups.equals(whole.groups)


def test_a_stopping_replica_finishes_running_requests_and_leaves_the_rest_to_others(
    cluster: Cluster,
    pair: tuple[CoordinatorProcess, CoordinatorProcess],
    one: httpx.Client,
    other: httpx.Client,
) -> None:
    def plan(number: int) -> httpx.Response:
        return httpx.post(
            f"{pair[0].url}/plans", verify=PLAIN, json=request(number), timeout=_TIMEOUT_S
        )

    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(plan, number) for number in range(4)]
        until(lambda: any(answer.done() for answer in running))
        background = [submit(one, 10 + number) for number in range(3)]
        assert pair[0].stop() in (0, -15)
        answers = [answer.result() for answer in running]

    assert [answer.status_code for answer in answers] == [200] * 4
    until(lambda: all(status_of(other, plan_id) != "submitted" for plan_id in background))
    assert [status_of(other, plan_id) for plan_id in background] == ["completed"] * 3
    assert cluster.bodies() == cluster.count("SELECT count(*) FROM plans") == 7
    for replica in pair:
        assert "Traceback" not in replica.log.read_text()


def address_of(replica: CoordinatorProcess) -> tuple[str, int]:
    url = httpx.URL(replica.url)
    assert url.port is not None
    return url.host, url.port


def url_of(between: Proxy) -> str:
    return f"http://127.0.0.1:{between.port}"
