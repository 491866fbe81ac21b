"""Tables whose partitions a catalog lists: where their files are, and what is refused."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.faults.writers import report_of, stage
from tests.support.tables import hive
from windrow_calls.errors import RefreshFailedError, UnconfirmedReplacementError
from windrow_core.models import TablePartition
from windrow_tables.commits.errors import StagedFilesError, UnfitLocationError
from windrow_tables.commits.table_write import begin

MakePlan = Callable[..., dict[str, Any]]
NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture
def elsewhere(tables_folder: Path, name: str) -> Path:
    """A folder outside the table's location, where tables are allowed."""
    return tables_folder / f"{name}-elsewhere"


def put(*folders: Path, rows: int = 3) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        hive.write_file(folder / "part-0.parquet", range(rows))


def listed(**folders: Path | str) -> pa.Table:
    """Return a list of partitions of one column, by value."""
    return pa.table(
        {
            "values": [[value.replace("_eq_", "=")] for value in folders],
            "location": [str(folder) for folder in folders.values()],
        },
        schema=pa.schema([("values", pa.list_(pa.string())), ("location", pa.string())]),
    )


def register(client: windrow.Client, name: str, location: Path, type_: str = "string") -> None:
    client.register_table(name, str(location), partition_columns={"ds": type_})


def files_of(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the value of `ds` by path."""
    return {
        split["path"]: split["partition"]["ds"]
        for group in plan["groups"]
        for split in group["splits"]
    }


@pytest.fixture
def table(client: windrow.Client, name: str, location: Path, elsewhere: Path) -> str:
    """The name of a table with partitions in a usual folder, in another one, and outside.

    The folder `ds=dropped` belongs to no partition.
    """
    put(location / "ds=a", location / "else/b", elsewhere / "c", location / "ds=dropped")
    register(client, name, location)
    client.set_partitions(
        name, listed(a=location / "ds=a", b=location / "else/b", c=elsewhere / "c")
    )
    client.refresh(name)
    return name


def test_the_files_of_a_table_are_those_in_the_folders_of_its_list(
    client: windrow.Client, table: str, elsewhere: Path, make_plan: MakePlan
) -> None:
    assert files_of(make_plan(table)) == {
        "ds=a/part-0.parquet": "a",
        "else/b/part-0.parquet": "b",
        f"{elsewhere}/c/part-0.parquet": "c",
    }
    assert list(files_of(make_plan(table, filter="ds > 'b'"))) == [f"{elsewhere}/c/part-0.parquet"]
    assert client.table(table).partition_count == 3


def test_a_refresh_of_an_unchanged_list_changes_nothing_and_lists_only_changed_folders(
    client: windrow.Client, table: str, elsewhere: Path
) -> None:
    # Files that had just changed when they were listed are read again.
    time.sleep(2.5)
    client.refresh(table)

    again = client.refresh(table)

    assert (again.changed, again.progress.footers_read) == (False, 0)
    hive.write_file(elsewhere / "c/part-1.parquet", range(5))
    grown = client.refresh(table)
    assert (grown.files_added, grown.files_removed, grown.progress.footers_read) == (1, 0, 1)


def test_partitions_removed_from_the_list_vanish_though_their_folders_stay(
    client: windrow.Client, table: str, location: Path, elsewhere: Path, make_plan: MakePlan
) -> None:
    change = client.set_partitions(
        table, listed(a=elsewhere / "c", new=location / "ds=dropped", b=location / "else/b")
    )

    assert (change.added, change.removed, change.moved, change.partition_count) == (1, 1, 1, 3)
    client.refresh(table)
    assert files_of(make_plan(table)) == {
        f"{elsewhere}/c/part-0.parquet": "a",
        "ds=dropped/part-0.parquet": "new",
        "else/b/part-0.parquet": "b",
    }


def test_the_same_list_again_changes_nothing(
    client: windrow.Client, table: str, location: Path, elsewhere: Path
) -> None:
    version = client.table_version(table)

    change = client.set_partitions(
        table, listed(c=elsewhere / "c", a=f"file://{location}/ds=a", b=location / "else/../else/b")
    )

    assert (change.added, change.removed, change.moved) == (0, 0, 0)
    assert client.table_version(table) == version


def test_a_list_is_shown_in_pages_with_the_values_and_folders_of_the_catalog(
    client: windrow.Client, http: httpx.Client, table: str, location: Path, elsewhere: Path
) -> None:
    wanted = [
        TablePartition(values=["c"], location=f"{elsewhere}/c"),
        TablePartition(values=["a"], location=f"{location}/ds=a"),
        TablePartition(values=["b"], location=f"{location}/else/b"),
    ]
    assert list(client.partitions(table)) == wanted
    path = f"/tables/{table}/partitions"
    first = http.get(path, params={"page_size": 2}).json()
    assert first["partitions"] == [one.model_dump() for one in wanted[:2]]
    token = {"page_size": 2, "page_token": first["next_page_token"]}
    assert http.get(path, params=token).json()["partitions"] == [wanted[2].model_dump()]
    # A page of another version of the list would miss partitions, or show them again.
    client.set_partitions(table, listed(a=location / "ds=a"))
    problem_of(http.get(path, params=token), 404, "page-not-found")


def test_texts_of_the_catalog_are_kept_as_values_unchanged(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    odd = ["a b/c%2Fd", "ä=ö", "%", NULL]
    for at in range(len(odd)):
        put(location / f"p{at}")
    register(client, name, location)
    client.set_partitions(
        name,
        pa.table(
            {"values": [[one] for one in odd], "location": [f"{location}/p{at}" for at in range(4)]}
        ),
    )
    client.refresh(name)
    assert list(files_of(make_plan(name)).values()) == ["a b/c%2Fd", "ä=ö", "%", None]
    assert [one.values for one in client.partitions(name)] == [[one] for one in odd]


def test_values_have_the_types_of_their_columns(
    client: windrow.Client, http: httpx.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    put(location / "x", location / "y")
    columns = {"d": "date", "n": "decimal(6,2)", "i": "int"}
    client.register_table(name, str(location), partition_columns=columns)
    rows = [(["2026-01-02", "1.5", "7"], "x"), ([NULL, NULL, "-1"], "y")]
    body = {"partitions": [{"values": v, "location": f"{location}/{f}"} for v, f in rows]}
    assert http.put(f"/tables/{name}/partitions", json=body).status_code == 200
    client.refresh(name)
    splits = [split for group in make_plan(name)["groups"] for split in group["splits"]]
    assert {split["path"]: tuple(split["partition"].values()) for split in splits} == {
        "x/part-0.parquet": ("2026-01-02", "1.50", 7),
        "y/part-0.parquet": (None, None, -1),
    }
    body["partitions"][0]["values"] = ["soon", "1.5", "7"]
    found = problem_of(http.put(f"/tables/{name}/partitions", json=body), 422, "partition-list")
    assert "'soon' is not a date" in found["detail"]


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"a": "p", "b": "p"}, "two partitions have this location"),
        ({"a": "p", "b": "p/q"}, "it lies in the folder of another partition"),
        ({"a": "", "b": "q"}, "it lies in the folder of another partition"),
    ],
)
def test_a_file_is_in_one_partition(
    client: windrow.Client,
    http: httpx.Client,
    name: str,
    location: Path,
    sent: dict[str, str],
    says: str,
) -> None:
    register(client, name, location)
    partitions = [
        {"values": [value], "location": f"{location}/{folder}".rstrip("/")}
        for value, folder in sent.items()
    ]
    answer = http.put(f"/tables/{name}/partitions", json={"partitions": partitions})
    assert says in problem_of(answer, 422, "partition-list")["detail"]
    assert client.table(name).partition_count is None


def test_lists_that_do_not_fit_the_table_are_refused(
    client: windrow.Client, http: httpx.Client, name: str, location: Path
) -> None:
    client.register_table(name, str(location))
    path, one = f"/tables/{name}/partitions", {"values": ["a"], "location": str(location / "p")}
    problem_of(http.put(path, json={"partitions": [one]}), 422, "invalid-table")
    register(client, name, location)
    for partitions, type_, says in [
        ([one, one | {"location": f"{location}/q"}], "partition-list", "the same values"),
        ([one | {"values": ["a", "b"]}], "partition-list", "1 partition columns"),
        ([one | {"location": "/etc"}], "location-not-allowed", "not under an allowed prefix"),
        ([one | {"location": "s3://bucket/p"}], "location-not-allowed", "s3://bucket/p"),
    ]:
        answer = http.put(path, json={"partitions": partitions})
        status = 403 if type_ == "location-not-allowed" else 422
        assert says in problem_of(answer, status, type_)["detail"]
    headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
    problem_of(http.put(path, content=b"nothing", headers=headers), 422, "invalid-inventory")
    problem_of(
        http.put(path, json={"partitions": []}, headers={"If-Match": '"1"'}), 412, "table-changed"
    )


def test_a_partition_outside_is_not_read_through_a_link(
    client: windrow.Client, table: str, elsewhere: Path, tmp_path: Path
) -> None:
    (elsewhere / "c").rename(tmp_path / "moved")
    (elsewhere / "c").symlink_to(tmp_path / "moved")
    with pytest.raises(RefreshFailedError, match="reached through a symbolic link"):
        client.refresh(table)


def test_files_below_the_folder_of_a_partition_are_refused_and_missing_folders_are_empty(
    client: windrow.Client, table: str, location: Path
) -> None:
    shutil.rmtree(location / "ds=a")
    gone = client.refresh(table)
    assert gone.snapshot is not None
    assert (gone.snapshot.file_count, gone.files_removed) == (2, 1)
    put(location / "else/b/deeper")
    with pytest.raises(RefreshFailedError, match="lies below the folder of a partition"):
        client.refresh(table)


def test_without_a_list_folders_are_the_partitions_again(
    client: windrow.Client, name: str, location: Path, make_plan: MakePlan
) -> None:
    put(location / "ds=a", location / "ds=dropped")
    register(client, name, location)
    client.set_partitions(name, listed(a=location / "ds=a"))
    client.refresh(name)
    assert client.remove_partitions(name).partition_count is None
    client.refresh(name)
    assert set(files_of(make_plan(name)).values()) == {"a", "dropped"}


def test_other_partition_columns_drop_the_list_only_if_that_is_allowed(
    client: windrow.Client, table: str, location: Path
) -> None:
    columns = {"ds": "date"}
    with pytest.raises(UnconfirmedReplacementError, match="a list of 3 partitions"):
        client.register_table(table, str(location), partition_columns=columns)
    assert client.table(table).partition_count == 3
    client.register_table(table, str(location), partition_columns=columns, replace=True)
    assert client.table(table).partition_count is None
    assert list(client.partitions(table)) == []


def test_changes_that_would_bypass_the_list_are_refused(
    client: windrow.Client, http: httpx.Client, table: str
) -> None:
    with pytest.raises(UnfitLocationError, match=r"a catalog lists.*windrow table sync"):
        begin(client, table)
    answer = http.post(f"/tables/{table}/snapshots", json={"added": []})
    problem_of(answer, 409, "listed-partitions")


def test_only_partitions_in_their_usual_folders_are_compacted(
    client: windrow.Client, table: str, location: Path, elsewhere: Path, http: httpx.Client
) -> None:
    for folder in (location / "ds=a", location / "else/b", elsewhere / "c"):
        for at in range(6):
            hive.write_file(folder / f"part-{at}.parquet", range(3))
    client.refresh(table)
    request = {"min_files": 2, "worth_reads": 1_000_000}
    plan = http.post(f"/tables/{table}/compaction-plans", json=request).json()
    assert plan["partitions"]["folders"] == ["ds=a"]
    assert [(one["reason"], one["partitions"]) for one in plan["left_alone"]] == [("layout", 2)]


def test_a_compaction_moves_files_only_into_partitions_that_the_list_still_has(
    client: windrow.Client, table: str, location: Path
) -> None:
    for day in ("a", "dropped", "b"):
        with begin(client, table, kind="compaction") as write:
            rows = stage(write.folder, {f"ds={day}/new.parquet": range(3)})
            if day == "a":
                write.commit(report_of(rows))
                continue
            with pytest.raises(StagedFilesError, match="no partition of the table's list"):
                write.commit(report_of(rows))
    assert [one.exists() for one in location.glob("ds=*/new.parquet")] == [True]
    assert not client.refresh(table).changed


def test_a_delta_cannot_add_files_to_folders_of_no_listed_partition(
    client: windrow.Client, http: httpx.Client, table: str
) -> None:
    lease = {"mode": "append", "host": "h", "process": 1, "lease_seconds": 30}
    write_id = "0" * 32
    for state in ("staging", "committing"):
        answer = http.put(f"/tables/{table}/writes/{write_id}", json=lease | {"state": state})
        assert answer.is_success, answer.text
    for day in ("dropped", "b"):
        file = {"path": f"ds={day}/x", "size_bytes": 1, "mtime_ns": 1, "row_count": 1}
        query = {"mode": "delta", "write_id": write_id}
        answer = http.post(f"/tables/{table}/snapshots", json={"added": [file]}, params=query)
        assert "has no such partition" in problem_of(answer, 422, "partition-list")["detail"]


def test_a_table_that_waits_for_its_list_is_not_read_by_folders(
    client: windrow.Client, http: httpx.Client, name: str, location: Path
) -> None:
    put(location / "ds=a", location / "ds=dropped")
    columns = [{"name": "ds", "type": "string"}]
    definition = {"location": str(location), "listed_partitions": True}
    refused = http.put(f"/tables/{name}", json=definition)
    assert "name them" in problem_of(refused, 422, "invalid-table")["detail"]
    http.put(f"/tables/{name}", json=definition | {"partition_columns": columns}).raise_for_status()
    with pytest.raises(RefreshFailedError, match="no list yet: import it again"):
        client.refresh(name)
    client.set_partitions(name, listed(a=location / "ds=a"))
    snapshot = client.refresh(name).snapshot
    assert snapshot is not None
    assert snapshot.file_count == 1


def test_a_list_may_be_empty_and_be_filled_later(
    client: windrow.Client, name: str, location: Path
) -> None:
    put(location / "ds=a")
    columns = {"id": "bigint", "name": "string"}
    client.register_table(name, str(location), columns=columns, partition_columns={"ds": "string"})
    client.set_partitions(name, listed())
    for _ in range(2):
        snapshot = client.refresh(name).snapshot
        assert snapshot is not None
        assert (snapshot.file_count, client.table(name).partition_count) == (0, 0)
    client.set_partitions(name, listed(a=location / "ds=a"))
    assert client.refresh(name).files_added == 1
    client.set_partitions(name, listed())
    assert client.refresh(name).files_removed == 1


def test_a_page_holds_at_most_a_thousand_entries_however_many_are_asked_for(
    client: windrow.Client, http: httpx.Client, name: str, location: Path
) -> None:
    register(client, name, location)
    path = f"/tables/{name}/partitions"
    many = [{"values": [f"{n:04}"], "location": str(location / f"{n:04}")} for n in range(1_001)]
    http.put(path, json={"partitions": many}).raise_for_status()

    first = http.get(path, params={"page_size": 10_000}).json()
    asked = {"page_size": 10_000, "page_token": first["next_page_token"]}
    last = http.get(path, params=asked).json()

    assert len(first["partitions"]) == 1_000
    assert first["partitions"] + last["partitions"] == many
    assert last["next_page_token"] is None
