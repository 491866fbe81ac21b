"""The partitions of a snapshot over HTTP, and plans that name them by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from rich.console import Console

import windrow
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import running
from windrow_calls.errors import InvalidArgumentError, ProblemError
from windrow_calls.terminal.render import drawn_list
from windrow_core.models import MAX_PARTITION_RANGES, AddedFiles
from windrow_service.settings import Settings
from windrow_service.usecases.snapshots import differences

MakePlan = Callable[..., dict[str, Any]]
TYPES = [
    {"name": "ds", "type": "date"},
    {"name": "hour", "type": "int"},
    {"name": "region", "type": "string"},
]


def file(path: str, size_bytes: int = 10, **more: Any) -> dict[str, Any]:
    return {"path": path, "size_bytes": size_bytes, "mtime_ns": 1, "row_count": 2} | more


def register(
    http: httpx.Client, name: str, location: Path, partitions: Sequence[Mapping[str, str]] = TYPES
) -> None:
    columns = [{"name": "id", "type": "bigint"}]
    definition = {"location": str(location), "columns": columns, "partition_columns": partitions}
    http.put(f"/tables/{name}", json=definition).raise_for_status()


def publish(http: httpx.Client, name: str, added: Sequence[Mapping[str, Any]], **more: Any) -> int:
    answer = http.post(f"/tables/{name}/snapshots", json={"added": added, **more})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["snapshot_id"])


def folder(ds: str, hour: int, region: str) -> str:
    return f"ds={ds}/hour={hour}/region={region}"


@pytest.fixture
def table(http: httpx.Client, name: str, location: Path) -> str:
    """The name of a table with two snapshots: files in six partitions, then in five."""
    register(http, name, location)
    null = "__HIVE_DEFAULT_PARTITION__"
    first = [
        file(f"{folder('2026-11-02', 10, 'eu')}/a", 7),
        file(f"{folder('2026-11-02', 9, 'eu')}/a"),
        file(f"{folder('2026-11-02', 9, 'eu')}/b", 4),
        file(f"{folder('2026-11-01', 9, 'us')}/a"),
        file(f"{folder('2026-11-01', 9, 'eu')}/a"),
        file(f"{folder(null, 9, 'us')}/a"),
        file(f"{folder('2026-11-02', 9, null)}/a"),
    ]
    publish(http, name, first)
    publish(
        http,
        name,
        [file(f"{folder('2026-11-02', 10, 'eu')}/b", 100)],
        mode="delta",
        removed=[first[0]["path"], first[4]["path"], first[2]["path"]],
    )
    return name


def rows(client: windrow.Client, table: str, snapshot_id: int) -> list[tuple[Any, ...]]:
    partitions = client.partition_values(table, snapshot_id)
    return list(zip(*(column.to_pylist() for column in partitions.columns), strict=True))


def texts(client: windrow.Client, table: str, snapshot_id: int) -> list[str]:
    return ["/".join(map(str, row)) for row in rows(client, table, snapshot_id)]


def paths(plan: dict[str, Any]) -> set[str]:
    return {split["path"] for group in plan["groups"] for split in group["splits"]}


def test_partitions_are_listed_by_value_with_their_files_and_rows(
    client: windrow.Client, table: str
) -> None:
    assert texts(client, table, 1) == [
        "None/9/us/1/10/2",
        "2026-11-01/9/eu/1/10/2",
        "2026-11-01/9/us/1/10/2",
        "2026-11-02/9/None/1/10/2",
        "2026-11-02/9/eu/2/14/4",
        "2026-11-02/10/eu/1/7/2",
    ]
    # A partition without files is none, and what a change removed does not count.
    assert texts(client, table, 2) == [
        "None/9/us/1/10/2",
        "2026-11-01/9/us/1/10/2",
        "2026-11-02/9/None/1/10/2",
        "2026-11-02/9/eu/1/10/2",
        "2026-11-02/10/eu/1/100/2",
    ]
    types = client.partition_values(table, 2).schema.types
    assert types == [pa.date32(), pa.int32(), pa.string(), *[pa.int64()] * 3]


def test_pages_of_json_say_the_same_as_the_stream(
    http: httpx.Client, client: windrow.Client, table: str
) -> None:
    path = f"/tables/{table}/snapshots/2/partitions"
    entries: list[dict[str, Any]] = []
    query: dict[str, str | int] = {"page_size": 2}
    while True:
        page = http.get(path, params=query).json()
        assert page["snapshot_id"] == 2
        entries += page["partitions"]
        if page["next_page_token"] is None:
            break
        query["page_token"] = page["next_page_token"]

    assert [entry["number"] for entry in entries] == [0, 1, 2, 3, 4]
    assert entries[0]["partition"] == {"ds": None, "hour": 9, "region": "us"}
    assert entries[4] == {
        "number": 4,
        "partition": {"ds": "2026-11-02", "hour": 10, "region": "eu"},
        "file_count": 1,
        "size_bytes": 100,
        "row_count": 2,
    }
    arrow = [row[-3:] for row in rows(client, table, 2)]
    names = ("file_count", "size_bytes", "row_count")
    assert [tuple(entry[name] for name in names) for entry in entries] == arrow


def test_rows_are_unknown_if_some_file_does_not_tell_them_or_has_deleted_ones(
    http: httpx.Client, client: windrow.Client, name: str, location: Path
) -> None:
    register(http, name, location, [{"name": "ds", "type": "string"}])
    files = [
        file("ds=a/1"),
        file("ds=a/2", delete_count=1, delete_bytes=5),
        file("ds=b/1"),
    ]
    publish(http, name, files)

    assert rows(client, name, 1) == [("a", 2, 20, None), ("b", 1, 10, 2)]


def test_a_table_without_partition_columns_has_one_partition_or_none(
    http: httpx.Client, client: windrow.Client, make_plan: MakePlan, name: str, location: Path
) -> None:
    register(http, name, location, [])
    publish(http, name, [])
    publish(http, name, [file("a"), file("b")])

    assert rows(client, name, 1) == []
    assert rows(client, name, 2) == [(2, 20, 4)]
    page = http.get(f"/tables/{name}/snapshots/2/partitions").json()
    assert page["partitions"][0]["partition"] == {}
    plan = make_plan(name, snapshot_id=2, partitions=[[0, 1]])
    assert plan["summary"]["files_planned"] == 2
    assert make_plan(name, snapshot_id=1, partitions=[])["groups"] == []


def test_a_plan_has_the_files_of_the_partitions_that_it_names(
    make_plan: MakePlan, table: str
) -> None:
    plan = make_plan(table, snapshot_id=1, partitions=[[0, 1], [3, 5]])

    assert paths(plan) == {
        f"{folder('__HIVE_DEFAULT_PARTITION__', 9, 'us')}/a",
        f"{folder('2026-11-02', 9, '__HIVE_DEFAULT_PARTITION__')}/a",
        f"{folder('2026-11-02', 9, 'eu')}/a",
        f"{folder('2026-11-02', 9, 'eu')}/b",
    }
    summary = plan["summary"]
    assert (summary["files_total"], summary["files_planned"]) == (7, 4)
    assert summary["files_pruned_by_partition"] == 3
    assert summary["bytes_pruned_by_partition"] == 27
    after = make_plan(table, snapshot_id=2, partitions=[[4, 5]])
    assert paths(after) == {f"{folder('2026-11-02', 10, 'eu')}/b"}


def test_no_partitions_are_no_files(make_plan: MakePlan, table: str) -> None:
    plan = make_plan(table, snapshot_id=2, partitions=[])

    assert plan["groups"] == []
    assert (plan["summary"]["files_total"], plan["summary"]["files_planned"]) == (5, 0)


def test_partitions_filter_and_limit_all_hold(make_plan: MakePlan, table: str) -> None:
    both = make_plan(table, snapshot_id=1, partitions=[[1, 5]], filter="region = 'eu' AND id > 3")
    assert paths(both) == {
        f"{folder('2026-11-01', 9, 'eu')}/a",
        f"{folder('2026-11-02', 9, 'eu')}/a",
        f"{folder('2026-11-02', 9, 'eu')}/b",
    }
    assert all(group["residual_filter"]["column"] == "id" for group in both["groups"])

    few = make_plan(table, snapshot_id=1, partitions=[[4, 6]], limit=3)
    assert paths(few) < {f"{folder('2026-11-02', 9, 'eu')}/{one}" for one in "ab"} | {
        f"{folder('2026-11-02', 10, 'eu')}/a"
    }
    assert few["summary"]["files_pruned_by_limit"] == 1


def test_an_explanation_is_that_of_the_partitions(
    http: httpx.Client, make_plan: MakePlan, table: str
) -> None:
    plan = make_plan(table, snapshot_id=1, partitions=[[2, 3]])

    explanation = http.get(f"/plans/{plan['plan_id']}/explain").json()

    assert explanation["files_planned"] == 1
    by_step = {one["step"]: one["files"] for one in explanation["pruned"]}
    assert by_step["partition"] == 6
    assert sum(reason["groups"] for reason in explanation["reasons"]) == 1


def test_equal_partitions_share_groups_and_others_do_not(make_plan: MakePlan, table: str) -> None:
    def groups_of(**fields: Any) -> str:
        plan = make_plan(table, snapshot_id=1, reuse=True, **fields)
        return f"{paths(plan)} {plan['summary']['planning_seconds']}"

    assert groups_of(partitions=[[0, 2]]) == groups_of(partitions=[[0, 2]])
    assert len({groups_of(partitions=part) for part in ([[0, 1]], [[1, 2]], [], None)}) == 4


def test_a_plan_in_the_background_has_only_the_partitions_that_it_names(
    http: httpx.Client, client: windrow.Client, table: str
) -> None:
    body = {"table": table, "snapshot_id": 1, "partitions": [[0, 1]]}
    headers = {"Prefer": "respond-async"}

    answer = http.post("/plans", json=body, headers=headers)

    assert answer.status_code == 202
    plan_id = answer.json()["plan_id"]
    while (plan := http.get(f"/plans/{plan_id}").json())["status"] == "submitted":
        pass
    assert plan["summary"]["files_planned"] == 1
    bad = http.post("/plans", json=body | {"partitions": [[6, 7]]}, headers=headers)
    problem_of(bad, 422, "invalid-partitions")
    assert client.plan(table, snapshot_id=1, partitions=[(1, 3)]).summary.files_planned == 2


def test_the_history_of_plans_tells_how_many_partitions_were_named(
    http: httpx.Client, client: windrow.Client, make_plan: MakePlan, table: str
) -> None:
    plan_id = make_plan(table, snapshot_id=1, partitions=[[0, 1], [3, 5]])["plan_id"]
    make_plan(table)

    counts = [past.partition_count for past in client.past_plans(table=table)]

    assert counts == [None, 3]
    page = http.get(f"/dashboard/plans/{plan_id}").text
    assert "3 partitions by number" in page
    assert "every file is read" not in page
    screen = StringIO()
    Console(width=200, file=screen).print(drawn_list(list(client.past_plans(table=table)), "none"))
    assert "3 partitions by number" in screen.getvalue()


def test_a_coordinator_that_keeps_nothing_in_memory_answers_alike(
    tmp_path: Path, location: Path
) -> None:
    settings = Settings(
        state_dir=tmp_path, allowed_locations=(str(location),), manifest_cache_bytes=0
    )
    with running(settings) as url, windrow.connect(url) as client:
        client.register_table(
            "t", str(location), columns={"id": "bigint"}, partition_columns={"ds": "date"}
        )
        files = [file(f"ds=2026-11-0{day}/a") for day in range(1, 8)]
        client.publish("t", files)
        client.publish_delta("t", removed=[files[2]["path"]])

        for _ in range(2):
            assert client.partition_values("t", 2)["file_count"].to_pylist() == [1] * 6
            plan = client.plan("t", snapshot_id=2, partitions=[(1, 3), (5, 6)])
            splits = plan.groups["splits"].combine_chunks().flatten().field("path").to_pylist()
            assert sorted(splits) == [files[at]["path"] for at in (1, 3, 6)]


def test_as_many_ranges_as_are_allowed_are_accepted(
    http: httpx.Client, make_plan: MakePlan, name: str, location: Path
) -> None:
    register(http, name, location, [{"name": "n", "type": "int"}])
    names = [f"n={number}/a" for number in range(2_000)]
    count = len(names)
    files = pa.table(
        {"path": sorted(names), "size_bytes": [1] * count, "mtime_ns": [1] * count}
    ).append_column("row_count", pa.array([1] * count))
    with windrow.connect(str(http.base_url)) as client:
        client.publish(name, files)
    ranges = [[number, number + 1] for number in range(0, count, 2)]

    plan = make_plan(name, snapshot_id=1, partitions=ranges, page_size=0)

    assert plan["summary"]["files_planned"] == count // 2
    most = [[2 * number, 2 * number + 1] for number in range(MAX_PARTITION_RANGES)]
    body = {"table": name, "snapshot_id": 1, "partitions": most}
    problem_of(http.post("/plans", json=body), 422, "invalid-partitions")
    body["partitions"] = [*most, [2**31 - 2, 2**31 - 1]]
    problem_of(http.post("/plans", json=body), 422, "invalid-request")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"partitions": [[0, 1]]}, "give its snapshot_id"),
        ({"partitions": []}, "give its snapshot_id"),
        ({"partitions": [[1, 1]], "snapshot_id": 1}, "which is empty"),
        ({"partitions": [[2, 1]], "snapshot_id": 1}, "which is empty"),
        ({"partitions": [[0, 2], [1, 3]], "snapshot_id": 1}, "sort the ranges"),
        ({"partitions": [[2, 3], [0, 1]], "snapshot_id": 1}, "sort the ranges"),
        ({"partitions": [[-1, 1]], "snapshot_id": 1}, "from 0"),
        ({"partitions": [[0, 2**31]], "snapshot_id": 1}, "2,147,483,647"),
        ({"partitions": [["0", 1]], "snapshot_id": 1}, "from 0"),
        ({"partitions": [[0]], "snapshot_id": 1}, "partitions"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(
    http: httpx.Client, client: windrow.Client, table: str, fields: dict[str, Any], reason: str
) -> None:
    answer = http.post("/plans", json={"table": table, **fields})

    assert reason in str(problem_of(answer, 422, "invalid-request"))
    with pytest.raises(InvalidArgumentError, match=r"\w"):
        client.plan(table, **fields)


def test_a_number_that_the_snapshot_does_not_have_is_refused(
    http: httpx.Client, client: windrow.Client, table: str
) -> None:
    body = {"table": table, "snapshot_id": 2, "partitions": [[4, 6]]}

    problem = problem_of(http.post("/plans", json=body), 422, "invalid-partitions")

    assert "has 5 partitions, numbered from 0, so there is no partition 5" in problem["detail"]
    assert f"GET /tables/{table}/snapshots/2/partitions" in problem["detail"]
    with pytest.raises(ProblemError, match=r"client\.partition_values"):
        client.plan(table, snapshot_id=2, partitions=[(4, 6)])


def test_partitions_of_a_snapshot_that_is_gone_are_not_found(
    http: httpx.Client, table: str
) -> None:
    for name, snapshot_id, slug in ((table, 3, "snapshot-not-found"), ("no", 1, "table-not-found")):
        path = f"/tables/{name}/snapshots/{snapshot_id}/partitions"
        problem_of(http.get(path), 404, slug)
    problem_of(http.get(f"/tables/{table}/snapshots/0/partitions"), 422, "invalid-request")


def test_plans_and_partitions_tell_registrations_of_one_name_apart(
    http: httpx.Client, client: windrow.Client, name: str, location: Path
) -> None:
    def registrations() -> list[int | None]:
        register(http, name, location)
        assert publish(http, name, [file(f"{folder('2026-11-02', 9, 'eu')}/a")]) == 1
        metadata = client.partition_values(name, 1).schema.metadata
        plans = [client.plan(name, reuse=reuse).info.registration for reuse in (False, True)]
        return [*plans, int(metadata[b"registration"])]

    first = registrations()
    assert len(set(first)) == 1
    client.delete_table(name)
    second = registrations()
    assert len(set(second)) == 1
    assert set(first).isdisjoint(second)


def test_files_that_a_snapshot_added_are_counted_and_planned_by_their_positions(
    client: windrow.Client, table: str, make_plan: MakePlan
) -> None:
    whole = client.added_files(table, 1, since=0)
    assert (whole.file_count, whole.end, whole.removed_file_count) == (7, 7, 0)
    added = client.added_files(table, 2, since=1)
    assert (added.file_count, added.size_bytes, added.removed_file_count) == (1, 100, 3)
    files = client.added_files(table, 1, since=0, first=2, max_files=3)
    assert (files.end, files.file_count) == (5, 7)
    assert client.added_files(table, 1, since=0, max_bytes=1).end == 1
    assert client.added_files(table, 1, since=0, first=7).end == 7

    def plan(**more: Any) -> set[str]:
        return paths(make_plan(table=table, snapshot_id=1, **more))

    everything = sorted(plan())
    parts = [plan(additions={"first": first, "end": first + 2}) for first in range(0, 8, 2)]
    assert [len(part) for part in parts] == [2, 2, 2, 1]
    assert sorted(path for part in parts for path in part) == everything
    assert parts[0] == set(everything[:2])
    new = make_plan(table=table, snapshot_id=2, additions={"since": 1})
    assert paths(new) == {f"{folder('2026-11-02', 10, 'eu')}/b"}
    # Together with partitions and a filter, all of them hold.
    assert plan(additions={"since": 0}, partitions=[[4, 5]]) == plan(partitions=[[4, 5]])
    assert plan(additions={"end": 1}, partitions=[[4, 5]]) <= parts[0]
    assert plan(additions={"end": 4}, filter="hour = 10") == {
        path for path in everything[:4] if "hour=10" in path
    }


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each comparison of two snapshots has looked at so far."""
    sizes = []
    compare = differences.compared

    def counting(before: pa.Table, after: pa.Table) -> differences.Difference:
        sizes.append(len(before) + len(after))
        return compare(before, after)

    monkeypatch.setattr(differences, "compared", counting)
    return sizes


def test_what_a_snapshot_adds_is_worked_out_once_for_all_counts_and_plans(
    tmp_path: Path, location: Path, name: str, comparisons: list[int]
) -> None:
    settings = Settings(state_dir=tmp_path, allowed_locations=(str(location),))
    with running(settings) as url, windrow.connect(url) as client:
        client.register_table(name, str(location), columns={"id": "bigint"})
        client.publish(name, [file(str(at)) for at in range(7)])
        for first in range(0, 6, 2):
            assert client.added_files(name, 1, since=0, first=first, max_files=2).end == first + 2
            files = AddedFiles(since=0, first=first, end=first + 2)
            plan = client.plan(name, snapshot_id=1, additions=files)
            assert plan.summary.files_planned == 2
        assert comparisons == [7]
        client.publish(name, [file("new")])
        client.added_files(name, 2, since=1)
        assert len(comparisons) == 2


def test_no_more_differences_are_kept_than_fit(
    tmp_path: Path, location: Path, name: str, comparisons: list[int]
) -> None:
    # An eighth of it is enough for 2 and for 3 files, of 16 bytes each, but not for both, or 6.
    settings = Settings(
        state_dir=tmp_path, allowed_locations=(str(location),), manifest_cache_bytes=8 * 16 * 4
    )
    with running(settings) as url, windrow.connect(url) as client:
        for count in (2, 3, 6):
            table = f"{name}_{count}"
            client.register_table(table, str(location), columns={"id": "bigint"})
            client.publish(table, [file(str(at)) for at in range(count)])
        for count in (2, 2, 3, 3, 2, 6, 6, 2):
            assert client.added_files(f"{name}_{count}", 1, since=0).file_count == count
    assert comparisons == [2, 3, 2, 6, 6]


def test_added_files_need_both_snapshots(client: windrow.Client, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match="give its snapshot_id"):
        client.plan(table, additions=AddedFiles(since=1))
    with pytest.raises(ProblemError, match="snapshot 9"):
        client.added_files(table, 2, since=9)
    with pytest.raises(ProblemError, match="snapshot 9"):
        client.plan(table, snapshot_id=2, additions=AddedFiles(since=9))
