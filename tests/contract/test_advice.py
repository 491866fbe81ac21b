"""`GET /tables/{name}/advice`: the writes behind a table's files, and how to avoid small ones."""

from __future__ import annotations

import os
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from tests.support.tables.packs import pack_here, write_small_files
from windrow_core.cards import seconds_text
from windrow_core.models import Advice

BEGAN = datetime(2026, 11, 20, 6, tzinfo=timezone.utc)


def write(location: Path, folders: list[str], tasks: int, *, minute: int = 0) -> str:
    """Write the files of a Spark job whose tasks all write into all folders; return its UUID."""
    job = str(uuid.uuid4())
    at_s = (BEGAN + timedelta(minutes=minute)).timestamp()
    for folder in folders:
        for task in range(tasks):
            path = location / folder / f"part-{task:05d}-{job}.c000.snappy.parquet"
            hive.write_file(path, range(10))
            os.utime(path, (at_s, at_s))
    return job


@pytest.fixture
def refreshed(http: httpx.Client, name: str, location: Path) -> Any:
    """Register and refresh the table, and return the advice."""

    def advice(**params: Any) -> dict[str, Any]:
        http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
        http.post(f"/tables/{name}/refresh").raise_for_status()
        answer = http.get(f"/tables/{name}/advice", params=params)
        assert answer.status_code == 200, answer.text
        table_advice: dict[str, Any] = answer.json()
        return table_advice

    return advice


def test_a_write_of_many_tasks_into_many_partitions_is_explained(
    refreshed: Any, location: Path, name: str
) -> None:
    job = write(location, [f"ds={day}" for day in hive.DAYS], tasks=4)

    table_advice = refreshed()

    assert (table_advice["files"], table_advice["small_files"], table_advice["would_be"]) == (
        12,
        12,
        3,
    )
    (origin,) = table_advice["writes"]
    assert datetime.fromisoformat(origin.pop("first_at").replace("Z", "+00:00")) == BEGAN
    assert datetime.fromisoformat(origin.pop("last_at").replace("Z", "+00:00")) == BEGAN
    assert origin.pop("largest_file_bytes") > 0
    assert origin == {
        "job": job,
        "write_id": None,
        "scheme": None,
        "files": 12,
        "small_files": 12,
        "partitions": 3,
        "tasks": 4,
        "size_bytes": table_advice["size_bytes"],
        "rows": 120,
        "would_be": 3,
        "trouble": "explosion",
    }
    (advice,) = table_advice["advice"]
    assert (advice["kind"], advice["writes"]) == ("explosion", 1)
    assert (advice["files"], advice["would_be"]) == (12, 3)
    assert advice["problem"].startswith("4 tasks x 3 partitions made 12 files of ")
    assert (
        '`client.write` would have made 3 files; or `df.repartition(3, "ds")`' in advice["remedy"]
    )
    ending = f"; `windrow compact {name}` makes 3 files of the existing 12"
    assert advice["remedy"].endswith(ending)


def test_small_appends_are_reported_with_the_effect_of_compaction(
    refreshed: Any, location: Path, name: str
) -> None:
    for minute in range(6):
        write(location, ["ds=2026-11-01", "ds=2026-11-02"], 1, minute=10 * minute)

    table_advice = refreshed()

    assert table_advice["write_count"] == len(table_advice["writes"]) == 6
    (advice,) = table_advice["advice"]
    assert (advice["kind"], advice["files"], advice["would_be"]) == ("small_appends", 12, 2)
    assert advice["problem"].endswith("to 2 partitions, 6 into each")
    assert f"`windrow compact {name}` now and then makes 2 files of them" in advice["remedy"]


def test_too_fine_partitions_are_reported_with_coarser_ones(refreshed: Any, location: Path) -> None:
    for hour in range(12):
        write(location, [f"ds=2026-11-01/hour={hour}"], 1)

    table_advice = refreshed(target_file_size=10_000)

    (advice,) = table_advice["advice"]
    assert (advice["kind"], advice["files"]) == ("fine_partitions", 12)
    assert advice["problem"].startswith("12 of 12 partitions hold less than half of 9.8 KB")
    assert "partition by ds alone, and sort by hour" in advice["remedy"]
    assert advice["remedy"].endswith("each has one file already, which compaction leaves as it is")


def test_values_with_several_folders_are_named_with_the_command_that_joins_them(
    refreshed: Any, location: Path, name: str
) -> None:
    write(location, ["month=09", "month=9", "month=10"], 1)

    (advice,) = refreshed()["advice"]

    assert (advice["kind"], advice["files"], advice["would_be"]) == ("several_folders", 2, 1)
    assert advice["problem"].startswith("1 partition has several folders, 2 in all")
    assert "'month=09' and 'month=9'" in advice["problem"]
    assert f"`windrow compact {name}` joins them" in advice["remedy"]


def test_a_planned_write_is_recognised_by_its_report(
    http: httpx.Client, refreshed: Any, location: Path, name: str
) -> None:
    location.mkdir()
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    write_id = uuid.uuid4().hex
    update: dict[str, Any] = {"mode": "append", "host": "driver", "process": 1}
    path = f"/tables/{name}/writes/{write_id}"
    http.put(path, json={**update, "state": "staging"}).raise_for_status()
    hive.write_file(location / "ds=1" / f"part-00000-{uuid.uuid4()}.c000.parquet", range(9))
    http.put(path, json={**update, "state": "committing"}).raise_for_status()
    report = {
        "scheme": "exact",
        "basis": "rows",
        "row_hash": "1",
        **dict.fromkeys(
            (
                *("target_file_bytes", "tasks", "rows", "files", "small_files", "bytes"),
                *("largest_file_bytes", "count_seconds", "write_seconds", "check_seconds"),
                "commit_seconds",
            ),
            1,
        ),
    }
    http.put(path, json={**update, "state": "published", "report": report}).raise_for_status()

    (origin,) = refreshed()["writes"]

    assert (origin["write_id"], origin["scheme"]) == (write_id, "exact")


def test_a_table_without_files_gets_no_advice(refreshed: Any, location: Path) -> None:
    location.mkdir()

    table_advice = refreshed()

    assert (
        table_advice["files"],
        table_advice["would_be"],
        table_advice["writes"],
        table_advice["advice"],
    ) == (0, 0, [], [])


def test_advice_needs_a_table_that_has_a_snapshot_and_a_target(
    http: httpx.Client, name: str, location: Path
) -> None:
    problem_of(http.get(f"/tables/{name}/advice"), 404, "table-not-found")
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    problem_of(http.get(f"/tables/{name}/advice"), 409, "table-not-refreshed")
    asked = http.get(f"/tables/{name}/advice", params={"target_file_size": 0})
    problem_of(asked, 422, "invalid-request")


@pytest.mark.slow
def test_files_outside_of_packs_are_advised_about_if_packing_them_saves_enough(
    client: windrow.Client, name: str, location: Path
) -> None:
    def advice() -> list[Advice]:
        return [one for one in client.advise(name).advice if one.kind == "packs"]

    client.register_table(name, str(location))
    write_small_files(location, 300, rows=1)
    client.refresh(name)
    assert advice() == []
    write_small_files(location, 100, first=300, rows=1)
    client.refresh(name)
    plan = client.plan_packing(name)

    (packs,) = advice()

    assert (packs.files, packs.would_be) == (plan.files, plan.pieces) == (400, 1)
    assert packs.problem == (
        "400 small files in 7 partitions are in no pack, which costs each read of all of them "
        f"{seconds_text(plan.saved_seconds)} of one core or more"
    )
    assert f"`windrow pack {name}` copies their rows" in packs.remedy
    assert (
        f"{seconds_text(plan.core_seconds)} of one core, which {plan.repaid_after} such reads"
        in (packs.remedy)
    )
    assert pack_here(client, name) == 1
    assert advice() == []
