"""`POST /tables/{name}/snapshots`: inventories taken elsewhere, with the hosts of files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from windrow_calls.errors import InvalidRequestError, TableChangedError, TableNotRefreshedError

MakePlan = Callable[..., dict[str, Any]]


def inventory_of(location: Path, hosts: Callable[[str], list[str]]) -> pa.Table:
    paths = hive.data_files(location)
    stats = [(location / path).stat() for path in paths]
    return pa.table(
        {
            "path": paths,
            "size_bytes": [stat.st_size for stat in stats],
            "mtime_ns": [stat.st_mtime_ns for stat in stats],
            "row_count": [pq.read_metadata(location / path).num_rows for path in paths],
            "hosts": pa.array([hosts(path) for path in paths], pa.list_(pa.string())),
        }
    )


def by_day(path: str) -> list[str]:
    return [f"host-{path[10:13]}"]


def changed(files: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return files.set_column(files.column_names.index(column), column, values)


def test_groups_prefer_the_hosts_that_were_published(
    client: windrow.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    client.publish(events, inventory_of(location, by_day))

    plan = make_plan(events, options={"parallelism": 3})

    for group in plan["groups"]:
        days = {split["partition"]["ds"] for split in group["splits"]}
        assert group["hosts"] == [f"host-{day[7:10]}" for day in days]
    assert plan["summary"]["groups_with_hosts"] == 3


def test_statistics_of_unchanged_files_are_kept(
    client: windrow.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    before = make_plan(events, filter="id < 10")["summary"]

    snapshot = client.publish(events, inventory_of(location, by_day))

    assert snapshot.snapshot_id == 2
    assert make_plan(events, filter="id < 10")["summary"]["files_planned"] == 1
    assert before["files_planned"] == 1


def test_a_refresh_keeps_the_hosts_of_unchanged_files(
    client: windrow.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    # Files that had just changed when they were listed are read again.
    time.sleep(2.5)
    client.refresh(events)
    client.publish(events, inventory_of(location, lambda _: ["a"]))
    hive.write_file(location / "ds=2026-11-09" / "new.parquet", [900])

    assert client.refresh(events).files_added == 1

    splits = {
        split["path"]: group["hosts"]
        for group in make_plan(events, options={"parallelism": 9})["groups"]
        for split in group["splits"]
    }
    assert splits.pop("ds=2026-11-09/new.parquet") == []
    assert set(map(tuple, splits.values())) == {("a",)}


def test_a_table_with_declared_columns_needs_no_refresh(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    hive.write_events(location)
    client.register_table(name, str(location), columns={"id": "bigint", "ds": "date"})

    snapshot = client.publish(name, inventory_of(location, by_day))

    assert [column.name for column in snapshot.columns] == ["id"]
    assert [column.name for column in snapshot.partition_columns] == ["ds"]
    assert make_plan(name, filter="ds = '2026-11-02'")["summary"]["files_planned"] == 2


def test_a_table_with_unknown_columns_is_refused(
    client: windrow.Client, name: str, location: Path
) -> None:
    hive.write_events(location)
    client.register_table(name, str(location))

    with pytest.raises(InvalidRequestError, match="declare them, refresh the table first"):
        client.publish(name, inventory_of(location, by_day))


def test_an_inventory_for_another_version_is_refused(
    client: windrow.Client, events: str, location: Path
) -> None:
    with pytest.raises(TableChangedError, match="has changed"):
        client.publish(events, inventory_of(location, by_day), if_match='"other"')

    assert client.table(events).current_snapshot.snapshot_id == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("path", "../out.parquet", "column 'path', row 2: '../out.parquet' is not canonical"),
        ("path", "/etc/passwd", "row 2: '/etc/passwd' is not canonical"),
        ("path", "ds=2026-11-01/./x", "is not canonical"),
        ("path", "", "is empty"),
        ("path", None, "row 2: None is null"),
        ("path", "ds=2026-11-01/part-00000.parquet", "appears twice"),
        ("path", "x.parquet", "every file of a table must be under the same"),
        ("size_bytes", -1, "column 'size_bytes', row 2: -1 is negative"),
        ("row_count", None, "column 'row_count', row 2: None is null"),
        ("hosts", ["a", None], "holds null"),
    ],
)
def test_an_invalid_row_is_named_and_nothing_is_published(
    client: windrow.Client, events: str, location: Path, column: str, value: Any, message: str
) -> None:
    files = inventory_of(location, by_day)
    values = files[column].to_pylist()
    values[2] = value
    wrong = changed(files, column, pa.array(values, files.schema.field(column).type))

    with pytest.raises(windrow.WindrowError, match=message.replace(".", r"\.")):
        client.publish(events, wrong)

    assert client.table(events).current_snapshot.snapshot_id == 1  # type: ignore[union-attr]


def test_missing_unknown_and_mistyped_columns_are_named(
    client: windrow.Client, events: str, location: Path
) -> None:
    files = inventory_of(location, by_day)

    for wrong, message in (
        (files.drop(["row_count"]), "column 'row_count' is missing"),
        (files.append_column("colour", files["path"]), "column 'colour' is unknown"),
        (changed(files, "mtime_ns", pa.array(["x"] * len(files))), "column 'mtime_ns' is string"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            client.publish(events, wrong)


def test_a_body_that_is_not_a_complete_arrow_stream_is_refused(
    http: httpx.Client, events: str, location: Path
) -> None:
    sink = pa.BufferOutputStream()
    files = inventory_of(location, by_day)
    with pa.ipc.new_stream(sink, files.schema) as stream:
        stream.write_table(files)
    whole = bytes(sink.getvalue())

    for body in (b"", b"path,size", whole[: len(whole) // 2]):
        answer = http.post(f"/tables/{events}/snapshots", content=body)
        assert (answer.status_code, answer.json()["type"]) == (
            422,
            "urn:windrow:problem:invalid-inventory",
        )


# --- deltas --------------------------------------------------------------------


def entry(path: str, **fields: Any) -> dict[str, Any]:
    return {"path": path, "size_bytes": 10, "mtime_ns": 1, "row_count": 1} | fields


def planned(make_plan: MakePlan, table: str, **request: Any) -> list[str]:
    plan = make_plan(table, **request)
    return sorted(split["path"] for group in plan["groups"] for split in group["splits"])


def test_a_delta_adds_and_removes_files_and_leaves_the_others(
    client: windrow.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    files = hive.data_files(location)

    snapshot = client.publish_delta(
        events, added=[entry("ds=2026-11-09/new.parquet")], removed=files[:1]
    )

    assert (snapshot.files_added, snapshot.files_removed, snapshot.file_count) == (1, 1, len(files))
    assert (snapshot.manifests_written, snapshot.manifests_reused) == (1, 1)
    assert 0 < snapshot.bytes_written < 10_000
    assert planned(make_plan, events) == sorted([*files[1:], "ds=2026-11-09/new.parquet"])
    assert len(planned(make_plan, events, filter="id < 10")) <= 2


def test_a_refresh_after_deltas_finds_the_actual_files(
    client: windrow.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    files = hive.data_files(location)
    client.publish_delta(events, added=[entry("ds=2026-11-09/new.parquet")], removed=files[2:4])

    status = client.refresh(events)

    assert (status.changed, status.files_added, status.files_removed) == (True, 2, 1)
    assert planned(make_plan, events) == files


def test_a_delta_as_json_equals_one_as_a_stream(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    files = hive.data_files(location)
    bounds = {"id": {"min": 5_000, "max": 6_000, "null_count": 0}}
    body = {
        "mode": "delta",
        "added": [entry("ds=2026-11-09/new.parquet", stats=bounds, hosts=["a"])],
        "removed": files[:1],
    }

    answer = http.post(f"/tables/{events}/snapshots", json=body)

    assert answer.status_code == 201, answer.text
    assert answer.headers["ETag"] == http.get(f"/tables/{events}").headers["ETag"]
    assert answer.json()["snapshot_id"] == 2
    assert planned(make_plan, events, filter="id = 5500") == ["ds=2026-11-09/new.parquet"]
    assert len(planned(make_plan, events)) == len(files)


def test_a_whole_inventory_as_json_needs_no_refresh(
    http: httpx.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    columns = [{"name": "id", "type": "bigint"}, {"name": "day", "type": "date"}]
    bounds = [{"day": {"min": f"2026-11-0{day}", "max": f"2026-11-0{day}"}} for day in (1, 2)]
    body = {
        "columns": columns,
        "added": [entry(f"k={at}/f", stats=each) for at, each in enumerate(bounds)],
    }

    answer = http.post(f"/tables/{name}/snapshots", json=body)

    assert answer.status_code == 201, answer.text
    assert answer.json()["columns"] == columns
    assert planned(make_plan, name, filter="day = '2026-11-02'") == ["k=1/f"]


def test_a_table_without_declared_columns_takes_them_from_the_statistics(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    client.register_table(name, str(location))
    files = [entry(f"ds={at}/f", stats={"id": {"min": at, "max": at}}) for at in range(3)]

    snapshot = client.publish(name, files)

    assert [(column.name, column.type) for column in snapshot.columns] == [("id", "bigint")]
    assert planned(make_plan, name, filter="id = 1") == ["ds=1/f"]


def test_columns_in_the_streams_metadata_replace_earlier_ones(
    client: windrow.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    files = inventory_of(location, by_day)
    listed = b'[{"name": "new", "type": "array<int>"}, {"name": "id", "type": "bigint"}]'

    snapshot = client.publish(events, files.replace_schema_metadata({"windrow:columns": listed}))

    assert [column.name for column in snapshot.columns] == ["new", "id"]
    assert len(planned(make_plan, events, filter="id < 10")) == 1


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"{}", "is not a list"),
        (b'[{"name": "id"}]', "entry 0: it is not an object"),
        (b'[{"name": "id", "type": "bigint"}, 3]', "entry 1"),
        (b'[{"name": "id", "type": "thing"}]', "not a column type"),
        (b'[{"name": "\\ud800", "type": "int"}]', "entry 0"),
        (b'[{"name": "id", "type": "int"}, {"name": "ID", "type": "int"}]', "differ only by case"),
    ],
)
def test_metadata_that_lists_no_columns_is_refused(
    client: windrow.Client, events: str, location: Path, listed: bytes, message: str
) -> None:
    files = inventory_of(location, by_day).replace_schema_metadata({"windrow:columns": listed})

    with pytest.raises(windrow.WindrowError, match=message):
        client.publish(events, files)


def test_published_columns_that_contradict_the_declared_ones_are_refused(
    client: windrow.Client, name: str, location: Path
) -> None:
    client.register_table(name, str(location), columns={"id": "bigint"})
    table = pa.table(
        {"path": ["f"], "size_bytes": [1], "mtime_ns": [1], "row_count": [1]},
        metadata={"windrow:columns": '[{"name": "id", "type": "string"}]'},
    )

    with pytest.raises(InvalidRequestError, match="published as string and declared as int64"):
        client.publish(name, table)


@pytest.mark.parametrize(
    ("body", "slug", "word"),
    [
        ({"mode": "delta", "removed": ["ds=2026-11-01/none"]}, "invalid-inventory", "row 0"),
        (
            {"removed": ["x"]},
            "invalid-inventory",
            "only a delta can remove files: leave `removed` out",
        ),
        ({"mode": "delta", "columns": []}, "invalid-inventory", "leave `columns` out"),
        ({"added": [{"path": "x"}]}, "invalid-request", "body.added.0.size_bytes"),
        ({"added": [], "more": 1}, "invalid-request", "body.more"),
        ({"added": [entry("ds=1/f", row_count=2**63)]}, "invalid-request", "row_count"),
        (
            {"mode": "delta", "added": [entry("ds=2026-11-01/f", stats={"id": {"min": "x"}})]},
            "invalid-inventory",
            "stats.id.min",
        ),
        (
            {"mode": "delta", "added": [entry("ds=1/f", stats={"id": {"min": 1, "max": "x"}})]},
            "invalid-inventory",
            "stats.id",
        ),
        (
            {"mode": "delta", "added": [entry("ds=2026-11-01/f", stats={"no": {"min": 1}})]},
            "invalid-inventory",
            "stats.no",
        ),
        ({"removed": ["x"] * 10_001}, "invalid-request", "removed"),
        ({"mode": "delta", "added": [], "removed": ["/x"]}, "invalid-inventory", "not canonical"),
    ],
)
def test_invalid_json_is_refused_with_the_position_of_the_fault(
    http: httpx.Client, events: str, body: dict[str, Any], slug: str, word: str
) -> None:
    answer = http.post(f"/tables/{events}/snapshots", json=body)

    assert word in problem_of(answer, 422, slug)["detail"]
    assert http.get(f"/tables/{events}").json()["current_snapshot"]["snapshot_id"] == 1


def test_a_body_and_a_query_that_disagree_on_the_mode_are_refused(
    http: httpx.Client, events: str
) -> None:
    answer = http.post(f"/tables/{events}/snapshots?mode=full", json={"mode": "delta"})

    problem_of(answer, 422, "invalid-inventory")


def test_a_delta_of_a_table_without_a_snapshot_is_refused(
    client: windrow.Client, name: str, location: Path
) -> None:
    client.register_table(name, str(location))

    with pytest.raises(TableNotRefreshedError):
        client.publish_delta(name, added=[entry("f")])


def test_a_condition_may_name_the_version_or_the_snapshot(
    client: windrow.Client, events: str, http: httpx.Client
) -> None:
    etag = http.get(f"/tables/{events}").headers["ETag"]

    first = client.publish_delta(events, added=[entry("ds=2026-11-09/a")], if_match=etag)
    second = client.publish_delta(
        events, added=[entry("ds=2026-11-09/b")], if_match=f'"snapshot-{first.snapshot_id}"'
    )

    for stale in (etag, f"snapshot-{first.snapshot_id}", "snapshot-x"):
        with pytest.raises(TableChangedError):
            client.publish_delta(events, added=[entry("ds=2026-11-09/c")], if_match=stale)
    client.publish_delta(events, added=[entry("ds=2026-11-09/c")], if_match="*")
    assert [one.snapshot_id for one in client.snapshots(events)] == [4, second.snapshot_id, 2, 1]


def test_a_delta_under_other_bloom_filters_is_refused_until_a_refresh(
    client: windrow.Client, events: str, location: Path
) -> None:
    client.register_table(events, str(location), bloom_columns=["id"])

    with pytest.raises(windrow.WindrowError, match="bloom_columns of table"):
        client.publish_delta(events, removed=hive.data_files(location)[:1])
    client.refresh(events)
    client.publish_delta(events, removed=hive.data_files(location)[:1])

    assert client.table(events).current_snapshot.snapshot_id == 3  # type: ignore[union-attr]
    assert client.refresh(events).files_added == 1
