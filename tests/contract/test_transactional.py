"""Transactional tables over HTTP: registered, refreshed by write ids, planned; never written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from tests.support.tables.acid_tables import AcidTable
from windrow_calls.errors import RefreshFailedError
from windrow_tables.commits.errors import UnfitLocationError
from windrow_tables.commits.locations import local_location

MakePlan = Callable[..., dict[str, Any]]


def put(location: Path, *folders: str) -> None:
    for folder in folders:
        path = location / folder / "000000_0"
        path.parent.mkdir(parents=True, exist_ok=True)
        hive.write_file(path, range(3))


@pytest.fixture
def inserts(client: windrow.Client, name: str, location: Path) -> str:
    """An insert-only table of two partitions: a base, deltas and the folders that they replaced."""
    put(location, "ds=1/delta_0000001_0000001_0000", "ds=1/base_0000002_v0000009")
    put(location, "ds=1/delta_0000003_0000003_0000", "ds=1/delta_0000004_0000004_0000")
    # Files from before the table became transactional, and a merge of two inserts.
    put(location, "ds=2", "ds=2/HIVE_UNION_SUBDIR_1", "ds=2/delta_0000005_0000006_v0000012")
    (location / "ds=2/delta_0000005_0000006_v0000012/_orc_acid_version").write_text("2")
    put(location, "ds=2/.hive-staging_hive_1/delta_0000009_0000009_0000")
    client.register_table(name, str(location), transactional="insert_only")
    return name


def paths(plan: dict[str, Any]) -> list[str]:
    found = (split["path"] for group in plan["groups"] for split in group["splits"])
    return sorted(path.removesuffix("/000000_0") for path in found)


def test_an_insert_only_table_consists_of_the_files_in_its_current_folders(
    client: windrow.Client, inserts: str, make_plan: MakePlan
) -> None:
    status = client.refresh(inserts)

    assert status.snapshot is not None
    assert status.snapshot.valid_write_ids is None
    assert [column.name for column in status.snapshot.partition_columns] == ["ds"]
    plan = make_plan(inserts)
    assert paths(plan) == [
        "ds=1/base_0000002_v0000009",
        "ds=1/delta_0000003_0000003_0000",
        "ds=1/delta_0000004_0000004_0000",
        "ds=2",
        "ds=2/HIVE_UNION_SUBDIR_1",
        "ds=2/delta_0000005_0000006_v0000012",
    ]
    assert (plan["transactional"], plan["valid_write_ids"]) == ("insert_only", None)
    assert not client.refresh(inserts).changed


def test_write_ids_decide_which_folders_are_seen(
    client: windrow.Client, inserts: str, make_plan: MakePlan
) -> None:
    ids = "db.t:6:4:4:3"
    status = client.refresh(inserts, valid_write_ids=ids)

    assert (status.valid_write_ids, status.snapshot and status.snapshot.valid_write_ids) == (
        ids,
        ids,
    )
    plan = make_plan(inserts)
    assert plan["valid_write_ids"] == ids
    assert [path for path in paths(plan) if path.startswith("ds=1")] == [
        "ds=1/base_0000002_v0000009"
    ]
    # Another list of write ids is another view, even if it selects the same files.
    assert not client.refresh(inserts, valid_write_ids=ids).changed
    assert client.refresh(inserts, valid_write_ids="db.t:6:4:4:2,3").changed


def test_a_view_by_write_ids_is_not_given_up_silently(
    client: windrow.Client, http: httpx.Client, inserts: str
) -> None:
    client.refresh(inserts, valid_write_ids="db.t:6:9::")

    with pytest.raises(RefreshFailedError, match="newer valid_write_ids, or 'on-disk'"):
        client.refresh(inserts)
    stale = http.post("/plans", json={"table": inserts, "max_staleness": 0})
    problem_of(stale, 409, "write-ids-needed")

    snapshot = client.refresh(inserts, valid_write_ids="on-disk").snapshot
    assert snapshot is not None
    assert snapshot.valid_write_ids is None
    assert not client.refresh(inserts).changed


def test_write_ids_that_cannot_be_read_are_refused(
    http: httpx.Client, client: windrow.Client, inserts: str, tables_folder: Path
) -> None:
    answer = http.post(f"/tables/{inserts}/refresh", json={"valid_write_ids": "5,6"})
    assert "table:highest" in problem_of(answer, 422, "invalid-write-ids")["detail"]
    put(tables_folder / f"{inserts}_plain", "ds=1")
    client.register_table(f"{inserts}_plain", str(tables_folder / f"{inserts}_plain"))
    with pytest.raises(RefreshFailedError, match="is not transactional"):
        client.refresh(f"{inserts}_plain", valid_write_ids="db.t:6:9::")


def test_folders_that_do_not_determine_the_rows_fail_the_refresh_by_name(
    client: windrow.Client, inserts: str, location: Path
) -> None:
    with pytest.raises(RefreshFailedError, match=r"'ds=1/base_0000002_v0000009' was compacted"):
        client.refresh(inserts, valid_write_ids="db.t:1:9::")

    put(location, "ds=1/delete_delta_0000009_0000009_0000")
    with pytest.raises(RefreshFailedError, match="deletes single rows, which is impossible in an"):
        client.refresh(inserts)


def test_definitions_that_do_not_fit_are_refused(http: httpx.Client, location: Path) -> None:
    for fields, word in (
        ({"format": "parquet"}, "does not fit format parquet"),
        ({"format": "orc", "bloom_columns": ["a"]}, "bloom_columns do not fit"),
    ):
        body = {"location": str(location), "transactional": "full", **fields}
        answer = http.put("/tables/refused", json=body)
        assert word in problem_of(answer, 422, "invalid-table")["detail"]


def test_transactional_tables_are_only_read(
    client: windrow.Client, http: httpx.Client, inserts: str
) -> None:
    client.refresh(inserts)

    for answer in (
        http.post(f"/tables/{inserts}/snapshots", json={"added": []}),
        http.post(f"/tables/{inserts}/compaction-plans", json={}),
        http.get(f"/tables/{inserts}/advice"),
    ):
        problem = problem_of(answer, 409, "transactional-table")
    assert "COMPACT 'major'" in problem["detail"]
    with pytest.raises(UnfitLocationError, match="write with Hive"):
        local_location(client.table(inserts))


def test_the_rows_of_partitions_are_those_that_are_sure_to_be_visible(
    client: windrow.Client, name: str, location: Path
) -> None:
    table = AcidTable(location)
    table.insert(table.begin(), 0, [("", 0, 5)])
    client.register_table(name, str(location), "orc", transactional="full")
    row_counts = []

    def look(write_ids: str) -> None:
        snapshot = client.refresh(name, valid_write_ids=write_ids).snapshot
        assert snapshot is not None
        partitions = client.partition_values(name, snapshot.snapshot_id)
        row_counts.append(partitions["row_count"].to_pylist())

    look("on-disk")
    look(table.now().text)
    table.delete(table.begin(), 0, table.rows[:1])
    look("on-disk")

    assert row_counts == [[5], [None], [None]]


def test_a_limit_counts_only_rows_that_are_sure_to_be_visible(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    table = AcidTable(location)
    for _ in range(3):
        table.insert(table.begin(), 0, [("", 0, 5)])
    client.register_table(name, str(location), "orc", transactional="full")

    client.refresh(name)
    assert make_plan(name, limit=3)["summary"]["files_planned"] == 1
    client.refresh(name, valid_write_ids=table.now().text)
    assert make_plan(name, limit=3)["summary"]["files_planned"] == 3
    table.delete(table.begin(), 0, table.rows[:1])
    client.refresh(name, valid_write_ids="on-disk")
    plan = make_plan(name, limit=3)
    assert plan["summary"]["files_planned"] == 3
    assert [file["path"] for group in plan["groups"] for file in group["delete_files"]] == [
        "delete_delta_0000004_0000004_0000/bucket_00000"
    ] * len(plan["groups"])
