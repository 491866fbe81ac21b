"""`/tables/{name}/writes`: states of writes, and the requests that wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.tables import hive

ONE, TWO = "1" * 32, "2" * 32
DELTA = {"mode": "delta"}


def put(http: httpx.Client, table: str, write_id: str, state: str, **fields: Any) -> httpx.Response:
    body = {"mode": "append", "state": state, "host": "driver-1", "process": 7} | fields
    return http.put(f"/tables/{table}/writes/{write_id}", json=body)


@pytest.fixture
def committing(http: httpx.Client, events: str) -> str:
    """The name of a table with a committing write."""
    assert put(http, events, ONE, "staging").status_code == 201
    assert put(http, events, ONE, "committing").status_code == 200
    return events


def test_others_learn_which_write_is_committing_and_what_to_do(
    http: httpx.Client, committing: str, location: Path
) -> None:
    put(http, committing, TWO, "staging")
    table = f"/tables/{committing}"
    refused: list[Callable[[], httpx.Response]] = [
        lambda: http.post(f"{table}/snapshots", json=DELTA),
        lambda: http.post(f"{table}/snapshots", params={"write_id": TWO}, json=DELTA),
        lambda: http.put(table, json={"location": str(location), "sort_columns": [{"name": "id"}]}),
        lambda: http.delete(table),
        lambda: put(http, committing, TWO, "committing"),
    ]
    for ask in refused:
        problem = problem_of(ask(), 409, "write-in-progress")
        assert f"write {ONE} from host 'driver-1'" in problem["detail"]
        assert f"windrow write recover {committing}" in problem["detail"]


def test_a_refresh_waits_until_a_commit_ends(http: httpx.Client, committing: str) -> None:
    url = f"/tables/{committing}/refresh"
    waits = http.post(url, headers={"Prefer": "respond-async, wait=1"})
    assert (waits.status_code, waits.json()["status"]) == (202, "running")

    put(http, committing, ONE, "undone")

    assert http.post(url).json()["started_at"] == waits.json()["started_at"]
    assert http.get(url).json()["status"] == "done"


def test_a_plan_with_max_staleness_waits_until_a_commit_ends(
    http: httpx.Client, committing: str, location: Path
) -> None:
    new = location / "ds=2026-11-09" / "new.parquet"
    request = {"table": committing, "max_staleness": 0}
    waits = http.post("/plans", json=request, headers={"Prefer": "respond-async, wait=1"})
    assert waits.status_code == 202

    hive.write_file(new, [1])
    put(http, committing, ONE, "undone")

    plan = http.post("/plans", json=request).json()
    paths = [split["path"] for group in plan["groups"] for split in group["splits"]]
    assert str(new.relative_to(location)) in paths


def test_a_refresh_stops_waiting_when_the_committing_driver_dies(
    http: httpx.Client, events: str
) -> None:
    put(http, events, ONE, "staging")
    put(http, events, ONE, "committing", lease_seconds=1)

    problem = problem_of(http.post(f"/tables/{events}/refresh"), 409, "write-in-progress")

    assert f"windrow write recover {events}" in problem["detail"]


def test_a_refresh_that_waits_for_a_commit_can_be_cancelled(
    http: httpx.Client, committing: str
) -> None:
    url = f"/tables/{committing}/refresh"
    http.post(url, headers={"Prefer": "respond-async"}).raise_for_status()
    http.delete(url).raise_for_status()

    while (status := http.get(url).json()["status"]) == "running":
        time.sleep(0.02)

    assert status == "cancelled"


def test_a_write_publishes_under_its_id(http: httpx.Client, committing: str) -> None:
    body = DELTA | {"removed": ["ds=2026-11-01/part-00000.parquet", "ds=2026-11-01/unknown"]}
    answer = http.post(f"/tables/{committing}/snapshots", params={"write_id": ONE}, json=body)

    assert answer.status_code == 201, answer.text
    assert answer.json()["files_removed"] == 1
    done = put(http, committing, ONE, "published").json()
    assert (done["snapshot_id"], done["alive"]) == (answer.json()["snapshot_id"], False)
    again = http.post(f"/tables/{committing}/snapshots", params={"write_id": ONE}, json=DELTA)
    problem_of(again, 409, "write-state")
    unknown = http.post(f"/tables/{committing}/snapshots", params={"write_id": TWO}, json=DELTA)
    problem_of(unknown, 404, "write-not-found")
    http.post(f"/tables/{committing}/refresh").raise_for_status()


def test_a_whole_inventory_that_was_listed_before_a_commit_ended_is_refused(
    http: httpx.Client, committing: str
) -> None:
    listed_at = datetime.now(timezone.utc).isoformat()
    put(http, committing, ONE, "published")

    answer = http.post(
        f"/tables/{committing}/snapshots", params={"listed_at": listed_at}, json={"mode": "full"}
    )

    problem = problem_of(answer, 409, "inventory-outdated")
    assert "list the files again" in problem["detail"]


@pytest.mark.slow
def test_a_refresh_that_began_before_a_commit_does_not_lose_its_files(
    http: httpx.Client, events: str, location: Path
) -> None:
    status = http.post(f"/tables/{events}/refresh", headers={"Prefer": "respond-async"})
    put(http, events, ONE, "staging")
    put(http, events, ONE, "committing")
    new = hive.write_file(location / "ds=2026-11-09" / "new.parquet", [1, 2])
    added = {
        "path": "ds=2026-11-09/new.parquet",
        "size_bytes": new.stat().st_size,
        "mtime_ns": new.stat().st_mtime_ns,
        "row_count": 2,
    }
    published = http.post(
        f"/tables/{events}/snapshots",
        params={"write_id": ONE},
        json=DELTA | {"added": [added]},
    )
    put(http, events, ONE, "published")

    assert status.status_code == 202
    assert published.status_code == 201
    # Whether the refresh publishes late or is refused, the new file stays in the table.
    while http.get(f"/tables/{events}/refresh").json()["status"] == "running":
        pass
    snapshot = http.get(f"/tables/{events}").json()["current_snapshot"]
    assert (snapshot["file_count"], snapshot["row_count"]) == (7, 62)


def test_writes_are_listed_newest_first_a_page_at_a_time(http: httpx.Client, events: str) -> None:
    ids = [f"{number}" * 32 for number in range(5)]
    for write_id in ids:
        put(http, events, write_id, "staging")
    put(http, events, ids[2], "undone")

    def listed(**params: Any) -> list[str]:
        found: list[str] = []
        while True:
            page = http.get(f"/tables/{events}/writes", params=params).json()
            found += [write["write_id"] for write in page["writes"]]
            if page["next_page_token"] is None:
                return found
            params["page_token"] = page["next_page_token"]

    assert listed(page_size=2) == ids[::-1]
    assert listed(page_size=3, open="true") == [ids[4], ids[3], ids[1], ids[0]]
    one = http.get(f"/tables/{events}/writes/{ids[2]}").json()
    assert (one["state"], one["host"], one["process"]) == ("undone", "driver-1", 7)


def test_refusals_name_the_problem(http: httpx.Client, events: str) -> None:
    problem_of(put(http, "no_such", ONE, "staging"), 404, "table-not-found")
    problem_of(put(http, events, ONE, "committing"), 404, "write-not-found")
    problem_of(put(http, events, "x", "staging"), 422, "invalid-request")
    problem_of(put(http, events, ONE, "staging", lease_seconds=0), 422, "invalid-request")
    put(http, events, ONE, "staging")
    problem_of(put(http, events, ONE, "published"), 409, "write-state")
    problem_of(put(http, events, ONE, "staging", process=8), 409, "write-taken")
    problem_of(http.get(f"/tables/{events}/writes/{TWO}"), 404, "write-not-found")
