"""`/plans`: make, page through, stream and delete plans."""

from __future__ import annotations

import json
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
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
# One group per file, whatever the sizes.
ALONE = {"max_split_size": 1}


def splits_of(groups: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(s["path"], s["start"], s["length"]) for group in groups for s in group["splits"]]


def all_pages(http: httpx.Client, plan: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    """Return the groups of all pages after the first, which comes with the plan."""
    groups: list[dict[str, Any]] = []
    token = plan["next_page_token"]
    while token is not None:
        page = http.get(
            f"/plans/{plan['plan_id']}/groups", params={"page_token": token, **params}
        ).json()
        assert page["plan_id"] == plan["plan_id"]
        assert page["groups"], "a page after the first is never empty"
        groups += page["groups"]
        token = page["next_page_token"]
    return groups


def test_a_plan_comes_with_its_first_page(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    plan = make_plan(events)

    assert (plan["status"], plan["snapshot_id"], plan["table"]) == ("completed", 1, events)
    assert plan["location"] == str(location)
    assert plan["expires_at"] > plan["created_at"]
    assert [column["name"] for column in plan["columns"]] == ["id", "name", "ds"]
    assert plan["next_page_token"] is None
    sizes = {path: (location / path).stat() for path in hive.data_files(location)}
    assert sorted(splits_of(plan["groups"])) == [
        (path, 0, stat.st_size) for path, stat in sizes.items()
    ]
    (group,) = plan["groups"]
    assert (group["group_id"], group["bucket"], group["hosts"]) == (0, None, [])
    assert group["residual_filter"] is None
    split = group["splits"][0]
    assert split["mtime_ns"] == sizes[split["path"]].st_mtime_ns
    assert split["partition"] == {"ds": split["path"][3:13]}
    summary = plan["summary"]
    assert (summary["files_total"], summary["files_planned"], summary["row_count"]) == (6, 6, 60)
    assert summary["size_bytes"] == sum(stat.st_size for stat in sizes.values())


def test_a_plan_marks_files_that_sparks_own_reader_reads_the_same(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    narrow = location / "ds=2026-11-02" / "narrow.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), narrow)
    http.post(f"/tables/{events}/refresh").raise_for_status()
    unknown = {"path": "ds=2026-11-02/new", "size_bytes": 1, "mtime_ns": 1, "row_count": 1}
    http.post(
        f"/tables/{events}/snapshots", json={"mode": "delta", "added": [unknown]}
    ).raise_for_status()

    for columns, of_narrow in ((["name", "ds"], True), (["ID"], False), ([], True), (None, False)):
        (group,) = make_plan(events, columns=columns)["groups"]
        native = {split["path"]: split["native"] for split in group["splits"]}
        assert native.pop("ds=2026-11-02/narrow.parquet") is of_narrow
        assert native.pop("ds=2026-11-02/new") is None
        assert list(native.values()) == [True] * 6


def test_page_size_0_returns_a_plan_without_groups(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    plan = make_plan(events, page_size=0, options=ALONE)

    assert plan["groups"] == []
    assert plan["next_page_token"] is not None
    assert len(all_pages(http, plan)) == 6


@pytest.mark.parametrize("page_size", [1, 2, 4, 5, 6, 7])
def test_paging_to_the_end_returns_every_split_once_and_in_order(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan, page_size: int
) -> None:
    plan = make_plan(events, page_size=page_size, options=ALONE)

    groups = plan["groups"] + all_pages(http, plan, page_size=page_size)

    assert len(plan["groups"]) == min(page_size, 6)
    assert [group["group_id"] for group in groups] == list(range(6))
    assert sorted(path for path, _, _ in splits_of(groups)) == hive.data_files(location)


def test_large_files_are_cut_on_row_groups_and_every_byte_is_planned_once(
    http: httpx.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    path = hive.write_file(location / "large.parquet", range(1000), row_group_size=100)
    http.put(f"/tables/{name}", json={"location": str(location)})
    http.post(f"/tables/{name}/refresh").raise_for_status()

    plan = make_plan(name, options={"max_split_size": path.stat().st_size // 3})

    pieces = sorted((start, length) for _, start, length in splits_of(plan["groups"]))
    assert len(pieces) > 2
    position = 0
    for start, length in pieces:
        assert start == position
        position += length
    assert position == path.stat().st_size


def test_the_arrow_stream_holds_the_groups_of_the_json_pages_and_an_end_marker(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    plan = make_plan(events, filter="id <> 7", page_size=2, options=ALONE)
    pages = plan["groups"] + all_pages(http, plan)

    answer = http.get(f"/plans/{plan['plan_id']}/groups", headers=ARROW)

    assert answer.headers["Content-Type"] == ARROW["Accept"]
    rows: list[dict[str, Any]] = []
    markers = []
    with pa.ipc.open_stream(answer.content) as stream:
        while True:
            try:
                batch, metadata = stream.read_next_batch_with_custom_metadata()
            except StopIteration:
                break
            rows += batch.to_pylist()
            markers.append(json.loads(metadata[b"windrow:end"]) if metadata else None)
    assert markers[-1] == {"groups": 6, "splits": 6}
    assert set(markers[:-1]) == {None}
    for row in rows:
        row["residual_filter"] = json.loads(row["residual_filter"] or "null")
        for split in row["splits"]:
            split["partition"]["ds"] = split["partition"]["ds"].isoformat()
    assert rows == pages


def test_a_plan_can_be_fetched_until_it_is_deleted(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    plan = make_plan(events, filter="ds = '2026-11-02'")
    path = f"/plans/{plan['plan_id']}"

    again = http.get(path).json()
    deleted = http.delete(path)

    assert again == plan
    assert (deleted.status_code, deleted.content) == (204, b"")
    for answer in (
        http.get(path),
        http.get(f"{path}/groups"),
        http.get(f"{path}/groups", headers=ARROW),
        http.delete(path),
    ):
        problem_of(answer, 404, "plan-not-found")


def test_the_same_request_gives_the_same_groups(events: str, make_plan: MakePlan) -> None:
    first, second = make_plan(events, options=ALONE), make_plan(events, options=ALONE)

    assert first["plan_id"] != second["plan_id"]
    assert first["groups"] == second["groups"]


def test_an_old_snapshot_can_be_planned_and_paged(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    before = make_plan(events, page_size=1, options=ALONE)
    old = hive.data_files(location)
    (location / old[0]).unlink()
    hive.write_file(location / "ds=2026-11-09" / "new.parquet", [1])
    http.post(f"/tables/{events}/refresh").raise_for_status()

    rest = all_pages(http, before)
    pinned = make_plan(events, snapshot_id=1)
    current = make_plan(events)

    assert sorted(path for path, _, _ in splits_of(before["groups"] + rest)) == old
    assert sorted(path for path, _, _ in splits_of(pinned["groups"])) == old
    assert pinned["snapshot_id"] == 1
    assert sorted(path for path, _, _ in splits_of(current["groups"])) == hive.data_files(location)


def test_not_found_errors_name_the_missing_table_snapshot_plan_or_page(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    plan = make_plan(events)
    groups = f"/plans/{plan['plan_id']}/groups"
    other = make_plan(events, page_size=1, options=ALONE)["next_page_token"]

    problem_of(http.post("/plans", json={"table": "no.table"}), 404, "table-not-found")
    problem_of(
        http.post("/plans", json={"table": events, "snapshot_id": 9}), 404, "snapshot-not-found"
    )
    problem_of(http.get(f"/plans/{'0' * 32}"), 404, "plan-not-found")
    problem_of(http.get(groups, params={"page_token": other}), 404, "page-not-found")
    problem_of(http.get(groups, params={"page_token": "x"}), 404, "page-not-found")
    problem_of(http.get("/plans/not-an-id"), 422, "invalid-request")


@pytest.mark.parametrize(
    ("sql", "tree"),
    [
        ("id = 7", {"op": "eq", "column": "id", "value": 7}),
        (
            "ds IN ('2026-11-01', '2026-11-03')",
            {"op": "in", "column": "ds", "values": ["2026-11-01", "2026-11-03"]},
        ),
        (
            "ds > '2026-11-01' AND NOT (name LIKE 'name-5%' OR id IS NULL)",
            {
                "op": "and",
                "args": [
                    {"op": "gt", "column": "ds", "value": "2026-11-01"},
                    {
                        "op": "not",
                        "arg": {
                            "op": "or",
                            "args": [
                                {"op": "starts_with", "column": "name", "prefix": "name-5"},
                                {"op": "is_null", "column": "id"},
                            ],
                        },
                    },
                ],
            },
        ),
        ("id BETWEEN 15 AND 25", {"op": "between", "column": "id", "low": 15, "high": 25}),
    ],
)
def test_a_filter_as_text_and_as_a_tree_give_the_same_plan(
    events: str, make_plan: MakePlan, sql: str, tree: dict[str, Any]
) -> None:
    as_text = make_plan(events, filter=sql, options=ALONE)
    as_tree = make_plan(events, filter=tree, options=ALONE)

    assert 0 < as_text["summary"]["files_planned"] <= 6
    for field in ("groups", "filter", "columns", "hidden_columns"):
        assert as_text[field] == as_tree[field]


def test_the_filter_stated_by_a_plan_gives_the_same_plan_again(
    events: str, make_plan: MakePlan
) -> None:
    first = make_plan(events, filter="ds >= '2026-11-02' AND (id > 25 OR id IS NULL)")

    again = make_plan(events, filter=first["filter"])

    assert (again["filter"], again["groups"]) == (first["filter"], first["groups"])


def test_conditions_decided_by_pruning_are_dropped_and_the_reader_gets_the_rest(
    events: str, make_plan: MakePlan
) -> None:
    settled = make_plan(events, filter="ds = '2026-11-02'")
    left = make_plan(events, filter="ds = '2026-11-02' AND id = 25", columns=["name"])

    assert {group["residual_filter"] for group in settled["groups"]} == {None}
    assert settled["summary"]["files_pruned_by_partition"] == 4
    assert left["summary"]["files_pruned_by_statistics"] == 1
    (group,) = left["groups"]
    assert group["residual_filter"] == {"op": "eq", "column": "id", "value": 25}
    assert [column["name"] for column in left["hidden_columns"]] == ["id"]


def test_bloom_filters_prune_after_a_refresh_with_chosen_columns(
    http: httpx.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    for number in range(4):
        hive.write_file(location / f"{number}.parquet", [0, 100 + number, 1000])
    # Files that have just changed are read again, and count as changed with another schema.
    time.sleep(2.5)
    definition: dict[str, Any] = {"location": str(location)}
    http.put(f"/tables/{name}", json=definition).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    question = {"table": name, "filter": "id IN (102, 555)"}

    without = make_plan(**question)["summary"]
    http.put(f"/tables/{name}", json=definition | {"bloom_columns": ["id"]}).raise_for_status()
    not_yet = make_plan(**question)["summary"]
    refreshed = http.post(f"/tables/{name}/refresh").json()
    chosen = make_plan(**question)
    again = http.post(f"/tables/{name}/refresh").json()

    assert (without["files_planned"], not_yet["files_planned"]) == (4, 4)
    assert (refreshed["changed"], refreshed["files_added"], again["changed"]) == (True, 0, False)
    assert [path for path, _, _ in splits_of(chosen["groups"])] == ["2.parquet"]
    summary = chosen["summary"]
    assert (summary["files_pruned_by_statistics"], summary["files_pruned_by_bloom"]) == (0, 3)
    sizes = [(location / f"{number}.parquet").stat().st_size for number in (0, 1, 3)]
    assert summary["bytes_pruned_by_bloom"] == sum(sizes)


def test_a_missing_bloom_column_fails_the_refresh(
    http: httpx.Client, events: str, location: Path
) -> None:
    definition = {"location": str(location), "bloom_columns": ["nope"]}
    http.put(f"/tables/{events}", json=definition).raise_for_status()

    problem = http.post(f"/tables/{events}/refresh")

    assert "'nope'" in problem_of(problem, 409, "bloom-column")["detail"]


def test_a_limit_keeps_the_first_files_that_are_certain_to_hold_enough_rows(
    events: str, make_plan: MakePlan
) -> None:
    certain = make_plan(events, filter="ds >= '2026-11-02'", limit=11)
    uncertain = make_plan(events, filter="name <> 'name-7'", limit=11)

    assert sorted(path for path, _, _ in splits_of(certain["groups"])) == [
        "ds=2026-11-02/part-00000.parquet",
        "ds=2026-11-02/part-00001.parquet",
    ]
    assert certain["summary"]["files_pruned_by_limit"] == 2
    assert certain["summary"]["files_pruned_by_partition"] == 2
    assert uncertain["summary"]["files_planned"] >= 2


@pytest.mark.parametrize("limit", [0, -1, 1.5, "ten", 10**12])
def test_an_invalid_limit_is_refused_and_named(
    http: httpx.Client, events: str, limit: object
) -> None:
    answer = http.post("/plans", json={"table": events, "limit": limit})

    assert "limit" in problem_of(answer, 422, "invalid-request")["detail"]


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("ds = ", 1, None),
        ("ds = '2026-11-01' AND\nnope = 3", 2, 1),
        ("id = 'seven'", 1, 6),
        ("id == 3 ORDER BY id", 1, 9),
        ("upper(name) = 'A'", 1, 1),
    ],
)
def test_a_bad_filter_is_shown_with_the_position_of_the_error(
    http: httpx.Client, events: str, sql: str, line: int, column: int | None
) -> None:
    answer = http.post("/plans", json={"table": events, "filter": sql})

    detail = problem_of(answer, 422, "invalid-filter")["detail"]
    assert f"line {line}, column {column or ''}" in detail
    assert detail.endswith("^")


def test_a_filter_with_too_many_or_too_deep_conditions_is_refused(
    http: httpx.Client, events: str
) -> None:
    one = {"op": "is_null", "column": "id"}
    many = {"op": "and", "args": [{"op": "or", "args": [one] * 6_000}] * 2}
    deep: dict[str, Any] = {"op": "is_null", "column": "id"}
    for _ in range(150):
        deep = {"op": "not", "arg": deep}

    for bad in ("(" * 150 + "id = 1" + ")" * 150, "NOT " * 500 + "id = 1", deep, many):
        problem_of(
            http.post("/plans", json={"table": events, "filter": bad}), 422, "invalid-filter"
        )


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        (["id", "nope"], "'nope'"),
        (["id", "nmae"], "did you mean name?"),
        (["id", "ID"], "twice"),
        (["id", "id"], "twice"),
    ],
)
def test_missing_and_repeated_columns_are_refused(
    http: httpx.Client, events: str, columns: list[str], word: str
) -> None:
    answer = http.post("/plans", json={"table": events, "columns": columns})

    assert word in problem_of(answer, 422, "invalid-columns")["detail"]


def test_a_plan_for_counting_rows_may_request_no_columns(events: str, make_plan: MakePlan) -> None:
    plan = make_plan(events, filter="id = 25", columns=[])

    assert plan["columns"] == []
    assert [column["name"] for column in plan["hidden_columns"]] == ["id"]


def test_columns_are_returned_in_the_requested_order_and_matched_without_regard_to_case(
    events: str, make_plan: MakePlan
) -> None:
    plan = make_plan(events, columns=["DS", "id"])

    assert [column["name"] for column in plan["columns"]] == ["ds", "id"]


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("64MB", 64 * 2**20), ("1.5 KiB", 1536), ("7", 7), ("3b", 3), ("1g", 2**30), (12, 12)],
)
def test_sizes_are_bytes_or_text(
    events: str, make_plan: MakePlan, text: str | int, size_bytes: int
) -> None:
    plan = make_plan(events, options={"max_split_size": text})

    assert plan["options"]["max_split_size"] == size_bytes


@pytest.mark.parametrize(
    "size",
    [
        "",
        "MB",
        "64 parsecs",
        "-1",
        "5IB",
        "1e3",
        "0",
        0,
        -5,
        "9" * 400 + "TB",
        2**70,
        1.5,
        None,
    ],
)
def test_an_invalid_size_is_refused_and_named(
    http: httpx.Client, events: str, size: object
) -> None:
    answer = http.post("/plans", json={"table": events, "options": {"max_split_size": size}})

    assert "max_split_size" in problem_of(answer, 422, "invalid-request")["detail"]


def test_openlookengs_strategy_groups_at_most_the_requested_number_of_splits(
    http: httpx.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    hive.write_events(location, files_per_day=10)
    http.put(f"/tables/{name}", json={"location": str(location)})
    http.post(f"/tables/{name}/refresh").raise_for_status()

    ten = make_plan(name, options={"strategy": "openlookeng"})
    four = make_plan(name, options={"strategy": "openlookeng", "max_small_splits_grouped": 4})

    assert ten["summary"]["strategy"] == "openlookeng"
    assert [len(group["splits"]) for group in ten["groups"]] == [10, 10, 10]
    assert max(len(group["splits"]) for group in four["groups"]) == 4
    assert sorted(splits_of(ten["groups"])) == sorted(splits_of(four["groups"]))


def test_an_unknown_strategy_is_refused(http: httpx.Client, events: str) -> None:
    answer = http.post("/plans", json={"table": events, "options": {"strategy": "greedy"}})

    assert "balanced" in problem_of(answer, 422, "invalid-request")["detail"]


def test_a_plan_outlives_its_table(http: httpx.Client, events: str, make_plan: MakePlan) -> None:
    plan = make_plan(events, page_size=1, options=ALONE)
    http.delete(f"/tables/{events}")

    assert len(all_pages(http, plan)) == 5


def test_partition_values_of_every_type_are_sent_as_json(
    http: httpx.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    for folder in ("d=1.5/s=a%2Fb", "d=NaN/s=__HIVE_DEFAULT_PARTITION__", "d=-Infinity/s=é"):
        hive.write_file(location / folder / "f.parquet", [1])
    http.put(
        f"/tables/{name}",
        json={
            "location": str(location),
            "partition_columns": [{"name": "d", "type": "double"}, {"name": "s", "type": "string"}],
        },
    )
    http.post(f"/tables/{name}/refresh").raise_for_status()

    plan = make_plan(name)

    values = [split["partition"] for group in plan["groups"] for split in group["splits"]]
    assert sorted(values, key=str) == sorted(
        [{"d": 1.5, "s": "a/b"}, {"d": "NaN", "s": None}, {"d": "-Infinity", "s": "é"}], key=str
    )
