"""`POST /tables/{name}/compaction-plans`: which partitions are worth compacting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.tables import hive
from windrow_service.planner.maintenance.corrections import PIECE_SECONDS

KIB = 2**10
MANY = 8


@pytest.fixture
def crowded(http: httpx.Client, name: str, location: Path) -> str:
    """The name of a table of four days: three of eight files each, and one of a single file."""
    hive.write_events(location, files_per_day=MANY)
    hive.write_file(location / "ds=2026-11-04" / "part-00000.parquet", range(1_000, 1_010))
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    return name


def planned(http: httpx.Client, table: str, **fields: Any) -> dict[str, Any]:
    answer = http.post(f"/tables/{table}/compaction-plans", json=fields)
    assert answer.status_code == 200, answer.text
    plan: dict[str, Any] = answer.json()
    return plan


def test_partitions_of_many_small_files_are_worth_compacting(
    http: httpx.Client, crowded: str, location: Path
) -> None:
    plan = planned(http, crowded, with_paths=True)

    found = plan["partitions"]
    assert found["folders"] == [f"ds={day}" for day in hive.DAYS]
    assert found["buckets"] == [None] * 3
    assert found["files"] == found["all_files"] == [MANY] * 3
    assert found["rows"] == [10 * MANY] * 3
    assert found["becomes"] == [1] * 3
    paths = hive.data_files(location)[:-1]
    assert found["paths"] == paths
    sizes = [(location / path).stat().st_size for path in paths]
    assert sum(found["size_bytes"]) == sum(sizes)
    assert plan["totals"] == {
        "partitions": 3,
        "files": len(paths),
        "size_bytes": sum(sizes),
        "rows": 10 * len(paths),
        "becomes_bytes": sum(found["becomes_bytes"]),
        "becomes": 3,
        "cost_seconds": pytest.approx(PIECE_SECONDS + sum(found["cost_seconds"])),
        "gain_seconds": pytest.approx(sum(found["gain_seconds"])),
    }
    assert [(one["reason"], one["partitions"], one["files"]) for one in plan["left_alone"]] == [
        ("few_files", 1, 1)
    ]
    assert plan["snapshot_id"] == 1
    assert plan["file_count"] == len(paths) + 1
    assert plan["next_offset"] is None


def test_a_write_plan_of_the_rows_and_bytes_found_makes_the_predicted_files(
    http: httpx.Client, crowded: str
) -> None:
    plan = planned(http, crowded, target_file_size=3_000, worth_reads=10**9)
    found = plan["partitions"]
    keys = {
        "columns": [{"name": "ds", "type": "string"}],
        "values": [[folder.removeprefix("ds=") for folder in found["folders"]]],
        "rows": found["rows"],
        "bytes": found["becomes_bytes"],
    }

    answer = http.post(
        "/write-plans",
        json={"table": crowded, "scheme": "exact", "target_file_size": 3_000, "keys": keys},
    )

    assert answer.status_code == 200, answer.text
    assert answer.json()["keys"]["files"] == found["becomes"]
    assert min(found["becomes"]) > 1


def test_three_tiny_files_in_each_partition_are_worth_compacting_by_default(
    http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_events(location, files_per_day=3)
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()

    plan, declined = planned(http, name), planned(http, name, min_files=5)

    assert (plan["totals"]["files"], plan["totals"]["becomes"]) == (9, 3)
    (why,) = declined["left_alone"]
    assert "with min_files=3, 9 of them would become 3" in why["explanation"]


def test_only_files_below_a_size_are_rewritten_if_one_is_given(
    http: httpx.Client, crowded: str, location: Path
) -> None:
    hive.write_file(location / "ds=2026-11-01" / "large.parquet", range(20_000))
    http.post(f"/tables/{crowded}/refresh").raise_for_status()

    everything = planned(http, crowded, worth_reads=10**9)
    smallest = planned(http, crowded, worth_reads=10**9, small_file_size="8KB")

    assert (everything["small_file_bytes"], everything["totals"]["files"]) == (2**26, 3 * MANY + 1)
    assert (smallest["small_file_bytes"], smallest["totals"]["files"]) == (8_192, 3 * MANY)
    too_large = {"target_file_size": 1_000, "small_file_size": 501}
    problem_of(
        http.post(f"/tables/{crowded}/compaction-plans", json=too_large), 422, "invalid-request"
    )


def test_a_filter_on_partition_columns_selects_partitions(http: httpx.Client, crowded: str) -> None:
    plan = planned(http, crowded, filter="ds >= '2026-11-03'")

    assert plan["partitions"]["folders"] == ["ds=2026-11-03"]
    assert plan["partitions"]["paths"] is None
    assert plan["file_count"] == MANY + 1


def test_a_plan_is_paged_in_batches_of_one_snapshot(
    http: httpx.Client, crowded: str, location: Path
) -> None:
    first = planned(http, crowded, max_partitions=2)
    hive.write_events(location, days=("2026-11-05",), files_per_day=MANY)
    http.post(f"/tables/{crowded}/refresh").raise_for_status()

    second = planned(http, crowded, max_partitions=2, snapshot_id=1, offset=first["next_offset"])

    assert first["partitions"]["folders"] == ["ds=2026-11-01", "ds=2026-11-02"]
    assert second["partitions"]["folders"] == ["ds=2026-11-03"]
    assert second["next_offset"] is None
    assert first["totals"] == second["totals"]
    assert planned(http, crowded)["totals"]["partitions"] == 4


def test_a_batch_is_bounded_in_bytes(http: httpx.Client, crowded: str) -> None:
    two = sum(planned(http, crowded)["partitions"]["size_bytes"][:2])

    plan = planned(http, crowded, max_batch_bytes=two, target_file_size=two)

    assert len(plan["partitions"]["folders"]) == 2


def test_the_options_decide_which_partitions_are_left_alone(
    http: httpx.Client, crowded: str
) -> None:
    def reasons(**fields: Any) -> set[str]:
        return {one["reason"] for one in planned(http, crowded, **fields)["left_alone"]}

    assert reasons(min_files=MANY + 1) == {"few_files"}
    assert reasons(target_file_size=10) == {"large_files"}
    assert reasons(worth_reads=1) == {"few_files", "not_worth"}


def test_bad_requests_are_refused(http: httpx.Client, crowded: str) -> None:
    path = f"/tables/{crowded}/compaction-plans"
    refused = "invalid-request"
    for body, slug, words in (
        ({"target_file_size": 0}, refused, "target_file_size"),
        ({"min_files": 1}, refused, "from 2 to"),
        ({"min_small_ratio": 1.5}, refused, "min_small_ratio"),
        ({"max_batch_bytes": "1MB"}, refused, "a batch must hold a file"),
        ({"offset": 1}, refused, "give its snapshot_id"),
        ({"colour": "red"}, refused, "colour"),
        ({"filter": "id = 1"}, "invalid-compaction", "use partition columns, which are ds"),
        ({"filter": "nothing = 1"}, "invalid-filter", "nothing"),
    ):
        assert words in problem_of(http.post(path, json=body), 422, slug)["detail"]
    gone = problem_of(http.post(path, json={"snapshot_id": 99}), 404, "snapshot-not-found")
    assert "99" in gone["detail"]


def test_the_table_must_exist_be_refreshed_and_be_parquet(
    http: httpx.Client, name: str, location: Path
) -> None:
    path = f"/tables/{name}/compaction-plans"
    problem_of(http.post(path, json={}), 404, "table-not-found")
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    problem_of(http.post(path, json={}), 409, "table-not-refreshed")
    definition = {
        "location": str(location),
        "format": "orc",
        "columns": [{"name": "id", "type": "bigint"}],
    }
    http.put(f"/tables/{name}", json=definition).raise_for_status()
    http.post(
        f"/tables/{name}/snapshots",
        json={"added": [{"path": "a.orc", "size_bytes": 1, "mtime_ns": 1, "row_count": 1}]},
    ).raise_for_status()
    problem_of(http.post(path, json={}), 409, "format-not-compactable")
