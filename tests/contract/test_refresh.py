"""`POST /tables/{name}/refresh`: published, reused and refused inventories."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.api.problems import problem_of
from tests.support.tables import hive

MakePlan = Callable[..., dict[str, Any]]

# Longer than a refresh and a plan take.
OLD_S = 3


def refresh(http: httpx.Client, table: str, **params: Any) -> dict[str, Any]:
    answer = http.post(f"/tables/{table}/refresh", params=params)
    assert answer.status_code == 200, answer.text
    status: dict[str, Any] = answer.json()
    return status


def planned_paths(plan: dict[str, Any]) -> list[str]:
    return sorted(split["path"] for group in plan["groups"] for split in group["splits"])


def register(http: httpx.Client, name: str, location: Path, **fields: Any) -> None:
    http.put(f"/tables/{name}", json={"location": str(location), **fields}).raise_for_status()


def test_a_first_refresh_publishes_all_files(http: httpx.Client, name: str, location: Path) -> None:
    hive.write_events(location)
    register(http, name, location)

    status = refresh(http, name)

    assert (status["status"], status["changed"], status["problem"]) == ("done", True, None)
    assert (status["files_added"], status["files_removed"]) == (6, 0)
    snapshot = status["snapshot"]
    assert (snapshot["snapshot_id"], snapshot["file_count"], snapshot["row_count"]) == (1, 6, 60)
    assert snapshot["size_bytes"] == sum(
        path.stat().st_size for path in location.rglob("*.parquet")
    )
    assert snapshot["columns"] == [
        {"name": "id", "type": "bigint"},
        {"name": "name", "type": "string"},
    ]
    assert snapshot["partition_columns"] == [{"name": "ds", "type": "date"}]
    assert http.get(f"/tables/{name}").json()["current_snapshot"] == snapshot
    assert http.get(f"/tables/{name}/refresh").json()["snapshot"] == snapshot


def test_a_refresh_that_finds_nothing_new_makes_no_snapshot(
    http: httpx.Client, events: str
) -> None:
    before = http.get(f"/tables/{events}")

    status = refresh(http, events)

    assert (status["changed"], status["files_added"], status["manifests_reused"]) == (False, 0, 1)
    after = http.get(f"/tables/{events}")
    assert after.json() == before.json()
    assert after.headers["ETag"] == before.headers["ETag"]


def test_new_removed_and_rewritten_files_are_noticed(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    hive.write_file(location / "ds=2026-11-04" / "new.parquet", range(5))
    assert refresh(http, events)["files_added"] == 1

    (location / "ds=2026-11-01" / "part-00000.parquet").unlink()
    assert refresh(http, events)["files_removed"] == 1

    hive.write_file(location / "ds=2026-11-04" / "new.parquet", range(7))
    overwritten = refresh(http, events, full=True)

    assert (overwritten["files_added"], overwritten["files_removed"]) == (1, 1)
    assert overwritten["snapshot"]["row_count"] == 50 + 7
    assert planned_paths(make_plan(events)) == hive.data_files(location)
    ids = [s["snapshot_id"] for s in http.get(f"/tables/{events}/snapshots").json()["snapshots"]]
    assert ids == [4, 3, 2, 1]


def test_snapshots_are_listed_newest_first_a_page_at_a_time(
    http: httpx.Client, events: str, location: Path
) -> None:
    for number in range(3):
        hive.write_file(location / "ds=2026-11-04" / f"{number}.parquet", [number])
        refresh(http, events)

    ids: list[int] = []
    params: dict[str, Any] = {"page_size": 3}
    while True:
        page = http.get(f"/tables/{events}/snapshots", params=params).json()
        ids += [snapshot["snapshot_id"] for snapshot in page["snapshots"]]
        if page["next_page_token"] is None:
            break
        params["page_token"] = page["next_page_token"]

    assert ids == [4, 3, 2, 1]


def test_a_table_that_has_become_empty_keeps_its_columns_and_does_not_change_again(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    columns = http.get(f"/tables/{events}").json()["current_snapshot"]["columns"]
    for path in location.rglob("*.parquet"):
        path.unlink()

    emptied = refresh(http, events)
    again = refresh(http, events)

    assert (emptied["changed"], emptied["snapshot"]["file_count"]) == (True, 0)
    assert again["changed"] is False
    assert again["snapshot"]["columns"] == columns
    assert [column["name"] for column in make_plan(events)["columns"]] == ["id", "name", "ds"]


def test_an_empty_folder_is_a_table_of_no_files_with_the_declared_columns(
    http: httpx.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    location.mkdir()
    register(
        http,
        name,
        location,
        columns=[{"name": "id", "type": "bigint"}, {"name": "at", "type": "timestamp"}],
        partition_columns=[{"name": "ds", "type": "date"}],
    )

    status = refresh(http, name)
    plan = make_plan(name, filter="ds >= '2026-11-01' AND id > 3")

    assert (status["changed"], status["snapshot"]["file_count"]) == (True, 0)
    assert (plan["groups"], plan["next_page_token"]) == ([], None)
    assert plan["summary"]["group_count"] == 0
    assert [(c["name"], c["type"]) for c in plan["columns"]] == [
        ("id", "bigint"),
        ("at", "timestamp"),
        ("ds", "date"),
    ]


def test_a_changed_definition_drops_the_snapshots_and_never_reuses_their_ids(
    http: httpx.Client, events: str, location: Path
) -> None:
    body = {"location": str(location), "partition_columns": [{"name": "ds", "type": "string"}]}
    http.put(f"/tables/{events}", json=body, params={"replace": True}).raise_for_status()

    dropped = http.get(f"/tables/{events}").json()["current_snapshot"]
    status = refresh(http, events)

    assert dropped is None
    assert status["snapshot"]["snapshot_id"] == 2
    assert status["snapshot"]["partition_columns"] == [{"name": "ds", "type": "string"}]


def test_a_caller_that_does_not_wait_sees_the_progress_and_then_the_outcome(
    http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_events(location)
    register(http, name, location)

    started = http.post(f"/tables/{name}/refresh", headers={"Prefer": "respond-async"})

    assert started.status_code == 202
    assert started.headers["Location"] == f"/tables/{name}/refresh"
    assert int(started.headers["Retry-After"]) >= 1
    status = started.json()
    while status["status"] == "running":
        assert status["changed"] is None
        time.sleep(0.01)
        status = http.get(started.headers["Location"]).json()
    assert (status["status"], status["progress"]["phase"]) == ("done", "done")
    assert status["snapshot"]["file_count"] == 6


def test_a_caller_that_does_not_wait_sees_why_the_refresh_failed(
    http: httpx.Client, name: str, location: Path
) -> None:
    register(http, name, location)

    status = http.post(f"/tables/{name}/refresh", headers={"Prefer": "respond-async"}).json()
    while status["status"] == "running":
        time.sleep(0.01)
        status = http.get(f"/tables/{name}/refresh").json()

    assert status["status"] == "failed"
    assert status["problem"]["type"] == "urn:windrow:problem:location-unreadable"
    assert str(location) in status["problem"]["detail"]


def test_a_second_caller_joins_the_running_refresh(
    http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_events(location, files_per_day=50)
    register(http, name, location)
    background = {"Prefer": "respond-async"}

    first = http.post(f"/tables/{name}/refresh", headers=background).json()
    second = http.post(f"/tables/{name}/refresh").json()

    # The second joined the first if that was still running; otherwise it found nothing new.
    joined = second["started_at"] == first["started_at"]
    assert second["changed"] is joined
    assert len(http.get(f"/tables/{name}/snapshots").json()["snapshots"]) == 1


def test_an_unknown_table_cannot_be_refreshed(http: httpx.Client, name: str) -> None:
    problem_of(http.post(f"/tables/{name}/refresh"), 404, "table-not-found")
    problem_of(http.get(f"/tables/{name}/refresh"), 404, "table-not-found")


def test_a_table_that_was_never_refreshed_has_no_refresh_status(
    http: httpx.Client, name: str, location: Path
) -> None:
    register(http, name, location)

    problem_of(http.get(f"/tables/{name}/refresh"), 404, "refresh-not-found")


def test_a_location_that_is_missing_is_named(http: httpx.Client, name: str, location: Path) -> None:
    register(http, name, location)

    detail = problem_of(http.post(f"/tables/{name}/refresh"), 409, "location-unreadable")["detail"]

    assert str(location) in detail
    assert "does not exist" in detail


def _truncate(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _corrupt_footer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-40:-8] = b"\xff" * 32
    path.write_bytes(bytes(data))


def _text(path: Path) -> None:
    path.write_text("id,name\n1,a\n")


def _other_type(path: Path) -> None:
    pq.write_table(pa.table({"id": [[1]], "name": ["a"]}), path)


@pytest.mark.parametrize(
    ("break_file", "slug"),
    [
        (_truncate, "unreadable-file"),
        (_corrupt_footer, "unreadable-file"),
        (_text, "unreadable-file"),
        (_other_type, "schema-conflict"),
    ],
)
def test_a_broken_file_is_named_and_blocks_publication_until_it_is_repaired(
    http: httpx.Client,
    events: str,
    location: Path,
    make_plan: MakePlan,
    break_file: Callable[[Path], None],
    slug: str,
) -> None:
    path = location / "ds=2026-11-02" / "part-00001.parquet"
    good = path.read_bytes()
    before = http.get(f"/tables/{events}").json()
    break_file(path)
    hive.write_file(location / "ds=2026-11-04" / "good.parquet", [1])

    refused = http.post(f"/tables/{events}/refresh?full=true")

    assert "ds=2026-11-02/part-00001.parquet" in problem_of(refused, 409, slug)["detail"]
    assert http.get(f"/tables/{events}").json() == before
    assert len(planned_paths(make_plan(events))) == 6

    path.write_bytes(good)

    assert refresh(http, events, full=True)["snapshot"]["file_count"] == 7


def test_folders_of_unequal_depth_are_named_and_block_publication_until_repaired(
    http: httpx.Client, events: str, location: Path
) -> None:
    stray = hive.write_file(location / "ds=2026-11-01" / "hour=3" / "x.parquet", [1])

    refused = http.post(f"/tables/{events}/refresh")

    assert "hour=3" in problem_of(refused, 409, "partition-layout")["detail"]

    stray.unlink()

    assert refresh(http, events)["changed"] is False


def test_a_folder_that_does_not_fit_its_declared_type_is_named(
    http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_events(location, days=("2026-11-01", "yesterday"))
    register(http, name, location, partition_columns=[{"name": "ds", "type": "date"}])

    refused = http.post(f"/tables/{name}/refresh")

    assert "yesterday" in problem_of(refused, 409, "partition-value")["detail"]


def test_a_file_outside_its_bucket_spec_is_named(
    http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_file(location / "part-00000-x_00009.c000.parquet", [1])
    register(http, name, location, bucket_spec={"columns": ["id"], "count": 4})

    refused = http.post(f"/tables/{name}/refresh")

    assert "00009" in problem_of(refused, 409, "bucket-number")["detail"]


def rewrite_in_place(file: Path) -> None:
    """Write a table's file of 10 rows anew: same size and time, other rows."""
    status = file.stat()
    hive.write_file(file, range(1_010, 1_020))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.slow
def test_a_refresh_compares_every_file(http: httpx.Client, events: str, location: Path) -> None:
    # Folders' times say clearly that nothing has changed.
    time.sleep(2.5)
    refresh(http, events)
    rewrite_in_place(location / "ds=2026-11-03" / "part-00000.parquet")

    rewritten, unchanged = refresh(http, events), refresh(http, events)

    assert (rewritten["files_added"], rewritten["files_removed"]) == (1, 1)
    assert rewritten["progress"]["folders_listed"] == 4
    assert (unchanged["changed"], unchanged["progress"]["folders_listed"]) == (False, 4)


@pytest.mark.slow
def test_a_table_may_trust_folders_until_a_plan_finds_a_rewritten_file(
    http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_events(location)
    # A folder is trusted once its last change lies clearly in the past.
    time.sleep(2.5)
    register(http, name, location, trust_folder_times=True)
    refresh(http, name)
    hive.write_file(location / "ds=2026-11-02" / "new.parquet", range(5))
    rewrite_in_place(location / "ds=2026-11-03" / "part-00000.parquet")
    time.sleep(OLD_S)

    changed = refresh(http, name)
    # That refresh has not compared every file, and the first one is too old.
    body = {"table": name, "filter": "id >= 1010", "max_staleness": OLD_S}
    planned = http.post("/plans", json=body).json()
    later = refresh(http, name)

    progress = changed["progress"]
    assert (progress["folders_listed"], progress["folders_unchanged"]) == (1, 3)
    assert changed["files_added"] == 1
    assert planned_paths(planned) == ["ds=2026-11-03/part-00000.parquet"]
    assert later["progress"]["folders_unchanged"] == 0


def test_hidden_files_are_skipped(http: httpx.Client, events: str, location: Path) -> None:
    (location / "_SUCCESS").write_bytes(b"")
    (location / "ds=2026-11-01" / ".part.crc").write_bytes(b"")

    assert refresh(http, events)["changed"] is False
