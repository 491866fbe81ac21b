"""`POST /tables/{name}/snapshots`: an inventory taken elsewhere, with the hosts of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support import hive
from windrow.errors import InvalidRequestError, TableChangedError

MakePlan = Callable[..., dict[str, Any]]


@pytest.fixture
def client(url: str) -> Iterator[windrow.Client]:
    with windrow.connect(url) as client:
        yield client


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


def test_a_refresh_keeps_the_hosts_of_files_that_did_not_change(
    client: windrow.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
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


def test_a_table_whose_columns_nobody_knows_is_refused(
    client: windrow.Client, name: str, location: Path
) -> None:
    hive.write_events(location)
    client.register_table(name, str(location))

    with pytest.raises(InvalidRequestError, match="declare them, or refresh the table first"):
        client.publish(name, inventory_of(location, by_day))


def test_an_inventory_over_another_version_is_refused(
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
        ("path", "ds=2026-11-01/part-00000.parquet", "stands twice"),
        ("path", "x.parquet", "every file of a table must lie under the same"),
        ("size_bytes", -1, "column 'size_bytes', row 2: -1 is negative"),
        ("row_count", None, "column 'row_count', row 2: None is null"),
        ("hosts", ["a", None], "holds null"),
    ],
)
def test_a_row_that_cannot_be_is_named_and_nothing_is_published(
    client: windrow.Client, events: str, location: Path, column: str, value: Any, message: str
) -> None:
    files = inventory_of(location, by_day)
    values = files[column].to_pylist()
    values[2] = value
    wrong = changed(files, column, pa.array(values, files.schema.field(column).type))

    with pytest.raises(windrow.WindrowError, match=message.replace(".", r"\.")):
        client.publish(events, wrong)

    assert client.table(events).current_snapshot.snapshot_id == 1  # type: ignore[union-attr]


def test_a_missing_an_unknown_and_a_mistyped_column_are_named(
    client: windrow.Client, events: str, location: Path
) -> None:
    files = inventory_of(location, by_day)

    for wrong, message in (
        (files.drop(["row_count"]), "column 'row_count' is missing"),
        (files.append_column("colour", files["path"]), "column 'colour' is not known"),
        (changed(files, "mtime_ns", pa.array(["x"] * len(files))), "column 'mtime_ns' is string"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            client.publish(events, wrong)


def test_a_body_that_is_not_an_arrow_stream_or_a_cut_one_is_refused(
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
