"""`max_staleness` of a plan: the table is refreshed first if its last refresh is too old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service.settings import Settings

# Longer than any test takes.
FRESH_S = 3600
OLD_S = 1


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[httpx.Client]]:
    """Two replicas on one database, and a table of six files that was never refreshed."""
    database_url = None
    if request.param == "postgresql":
        database_url = SecretStr(request.getfixturevalue("upgraded_postgresql_url"))
    settings = Settings(
        state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),), database_url=database_url
    )
    location = hive.write_events(tmp_path / "events")
    with ExitStack() as stack:
        urls = [stack.enter_context(running(settings)) for _ in range(2)]
        clients = [
            stack.enter_context(
                httpx.Client(verify=PLAIN, base_url=url, timeout=60, trust_env=False)
            )
            for url in urls
        ]
        clients[0].put("/tables/events", json={"location": str(location)}).raise_for_status()
        yield clients


def plan(http: httpx.Client, max_staleness: int | None, **headers: str) -> httpx.Response:
    body: dict[str, Any] = {"table": "events", "max_staleness": max_staleness}
    return http.post("/plans", json=body, headers=headers)


def file_count(answer: httpx.Response) -> int:
    assert answer.status_code == 200, answer.text
    return sum(len(group["splits"]) for group in answer.json()["groups"])


def last_refresh(http: httpx.Client) -> str:
    refresh_id: str = http.get("/tables/events/refresh").json()["refresh_id"]
    return refresh_id


def test_a_table_that_was_never_refreshed_is_refreshed_first(replicas: list[httpx.Client]) -> None:
    problem_of(plan(replicas[0], None), 409, "table-not-refreshed")

    assert file_count(plan(replicas[0], FRESH_S)) == 6


def test_a_recently_checked_snapshot_is_used_unchanged(
    replicas: list[httpx.Client], tmp_path: Path
) -> None:
    replicas[0].post("/tables/events/refresh").raise_for_status()
    refresh_id = last_refresh(replicas[0])
    hive.write_file(tmp_path / "events" / "ds=2026-11-04" / "new.parquet", [1])

    assert file_count(plan(replicas[1], FRESH_S)) == 6
    assert last_refresh(replicas[1]) == refresh_id


@pytest.mark.slow
def test_an_older_snapshot_is_refreshed_first_even_if_no_file_changed(
    replicas: list[httpx.Client], tmp_path: Path
) -> None:
    replicas[0].post("/tables/events/refresh").raise_for_status()
    time.sleep(OLD_S)
    unchanged = plan(replicas[1], OLD_S)
    refresh_id = last_refresh(replicas[0])
    hive.write_file(tmp_path / "events" / "ds=2026-11-04" / "new.parquet", [1])

    # The check by one replica counts for the other too.
    assert (file_count(unchanged), unchanged.json()["snapshot_id"]) == (6, 1)
    assert file_count(plan(replicas[0], FRESH_S)) == 6
    assert last_refresh(replicas[0]) == refresh_id
    time.sleep(OLD_S)
    assert file_count(plan(replicas[0], OLD_S)) == 7


@pytest.mark.slow
def test_ten_plans_at_once_on_an_old_snapshot_make_one_refresh(
    replicas: list[httpx.Client], tmp_path: Path
) -> None:
    replicas[0].post("/tables/events/refresh").raise_for_status()
    hive.write_events(tmp_path / "events", days=["2026-11-05"], files_per_day=200)
    staleness = 5
    time.sleep(staleness)

    with ThreadPoolExecutor(10) as threads:
        calls = [threads.submit(plan, replicas[number % 2], staleness) for number in range(10)]
        plans = [call.result() for call in calls]

    assert {file_count(each) for each in plans} == {206}
    # A second refresh would have published another snapshot.
    assert {each.json()["snapshot_id"] for each in plans} == {2}
    page = replicas[1].get("/tables/events/snapshots").json()["snapshots"]
    assert [snapshot["snapshot_id"] for snapshot in page] == [2, 1]


def test_a_failed_refresh_is_reported_as_the_problem_of_the_plan(
    replicas: list[httpx.Client], tmp_path: Path
) -> None:
    replicas[0].post("/tables/events/refresh").raise_for_status()
    (tmp_path / "events" / "ds=2026-11-01" / "bad.parquet").write_text("no")

    refused = plan(replicas[1], 0)

    assert "bad.parquet" in problem_of(refused, 409, "unreadable-file")["detail"]
    assert file_count(plan(replicas[1], None)) == 6


def test_a_plan_in_the_background_is_made_on_a_fresh_snapshot_too(
    replicas: list[httpx.Client], tmp_path: Path
) -> None:
    replicas[0].post("/tables/events/refresh").raise_for_status()
    hive.write_file(tmp_path / "events" / "ds=2026-11-04" / "new.parquet", [1])

    answer = plan(replicas[1], 0, Prefer="respond-async, wait=30")

    assert file_count(answer) == 7
