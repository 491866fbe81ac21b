"""Rows erased from tables of Parquet files: which ones go, what stays as it is, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.servers.coordinators import running
from tests.support.servers.s3 import S3, s3_server
from tests.support.tables import hive
from tests.support.tables.traces import traces_of
from windrow.client import Client
from windrow_calls.errors import InvalidArgumentError, ProblemError
from windrow_cli.app import run
from windrow_core.files.listing import is_hidden
from windrow_core.models import CachedFile, CachedFilesReport, Heartbeat
from windrow_core.models.erasures import ErasureReceipt
from windrow_service.settings import PackSettings, Settings
from windrow_tables.commits import TableWrite
from windrow_tables.commits.errors import PartitionChangedError
from windrow_tables.erasing.errors import UnerasableFilesError
from windrow_tables.erasing.keys import keys_in

# A listing tells nothing of files that had changed just before it.
_MARGIN_S = 2.1
PAYLOAD = pa.struct([("user", pa.struct([("id", pa.int64())])), ("ids", pa.list_(pa.string()))])


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the coordinator of this module keeps what it knows."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def url(tables_folder: Path, state: Path) -> Iterator[str]:
    with running(Settings(state_dir=state, allowed_locations=(str(tables_folder),))) as url:
        yield url


def write(path: Path, table: pa.Table, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


def ids(client: Client, table: str, column: str = "id") -> list[Any]:
    rows: list[Any] = client.scan(table, columns=[column]).to_table()[column].to_pylist()
    return sorted(rows)


def contents(location: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, time of change and bytes of each data file."""
    return {
        path.relative_to(location).as_posix(): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in location.rglob("*")
        if path.is_file() and not is_hidden(path.name) and "_windrow" not in path.parts
    }


def test_rows_of_keys_go_and_other_files_are_not_touched(
    client: Client, events: str, location: Path
) -> None:
    before = contents(location)

    erasure = client.erase(events, key="id", values=[5, 27, 1000, None])

    assert ids(client, events) == [id_ for id_ in range(60) if id_ not in (5, 27)]
    assert (erasure.keys, erasure.null_keys, erasure.rows_removed) == (3, 1, 2)
    # Bounds say which files may hold them.
    assert (erasure.files_total, erasure.files_read, erasure.files_rewritten) == (6, 2, 2)
    assert (erasure.files_checked, erasure.rows_left) == (0, 0) or erasure.files_checked == 2
    after = contents(location)
    same = before.keys() & after.keys()
    assert len(same) == 4
    assert {path: before[path] for path in same} == {path: after[path] for path in same}
    # Nothing is left in staging.
    assert not (location / "_windrow").exists() or not any((location / "_windrow/writes").iterdir())


def test_a_dry_run_counts_and_changes_nothing(client: Client, events: str, location: Path) -> None:
    before = contents(location)

    erasure = client.erase(events, key="id", values=[*range(20, 30), 5], dry_run=True)

    assert contents(location) == before
    assert erasure.is_dry
    assert erasure.snapshot_id is None
    assert (erasure.files_rewritten, erasure.files_removed, erasure.rows_removed) == (1, 1, 11)


def test_a_file_all_of_whose_rows_go_is_removed_with_its_folder(
    client: Client, events: str, location: Path
) -> None:
    erasure = client.erase(events, where="ds = DATE'2026-11-02'")

    assert (erasure.files_rewritten, erasure.files_removed, erasure.rows_removed) == (0, 2, 20)
    assert not (location / "ds=2026-11-02").exists()
    assert ids(client, events) == [*range(20), *range(40, 60)]


def test_a_condition_removes_rows_for_which_it_is_true_alone(
    client: Client, name: str, location: Path
) -> None:
    rows = pa.table({"id": pa.array([1, 2, None, 4]), "v": pa.array(["a", None, "b", "a"])})
    write(location / "a.parquet", rows)
    client.register_table(name, str(location))

    assert client.erase(name, where="v <> 'a'").rows_removed == 1
    assert client.erase(name, where="id IS NULL OR id = 4").rows_removed == 1
    assert ids(client, name) == [1, 2]


@pytest.mark.parametrize(
    ("key", "values", "left"),
    [
        ("payload.user.id", [1, 4], [2, 3]),
        ("payload.ids", ["x"], [2, 3, 4]),
        ("tags", ["t2", "t3"], [1, 4]),
        ("text", ["7"], [2, 3, 4]),
        # Partition values are keys, too.
        ("p", ["b"], [1, 2, 3]),
    ],
)
def test_keys_are_found_in_structs_lists_texts_and_partitions(
    client: Client, name: str, location: Path, key: str, values: list[Any], left: list[int]
) -> None:
    payloads = [{"user": {"id": n}, "ids": ["x"] if n == 1 else None} for n in (1, 2, 3)]
    rows = {
        "id": [1, 2, 3],
        "payload": pa.array(payloads, PAYLOAD),
        "tags": [["t1"], ["t0", "t2"], ["t3", "t3"]],
        "text": ["7", "007", "7.0"],
    }
    write(location / "p=a" / "a.parquet", pa.table(rows))
    last = {"id": [4], "payload": pa.array([{"user": {"id": 4}, "ids": []}], PAYLOAD)}
    more = pa.table({**last, "tags": pa.array([None], pa.list_(pa.string())), "text": ["x"]})
    write(location / "p=b" / "a.parquet", more)
    client.register_table(name, str(location))

    client.erase(name, key=key, values=values)

    assert ids(client, name) == left


def test_rights_names_and_metadata_of_files_stay(client: Client, name: str, location: Path) -> None:
    keys = {"batch": "1", "org.apache.spark.version": "4.1.0"}
    rows = pa.table({"id": [1, 2, 3]}).replace_schema_metadata(keys)
    path = location / "part-0-u_00003.c000.zstd.parquet"
    write(path, rows, compression="zstd")
    path.chmod(0o640)
    client.register_table(name, str(location))

    client.erase(name, key="id", values=[2])

    (new,) = location.glob("*.parquet")
    assert new.name.startswith("part-0-u_00003.erased-")
    assert new.name.endswith(".c000.zstd.parquet")
    assert new.stat().st_mode & 0o777 == 0o640
    file = pq.ParquetFile(new)
    assert file.read().column("id").to_pylist() == [1, 3]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert {one.decode(): text.decode() for one, text in file.schema_arrow.metadata.items()} == keys


def test_a_file_that_cannot_be_read_stops_the_erasure(
    client: Client, events: str, location: Path
) -> None:
    path = location / "ds=2026-11-01" / "part-00000.parquet"
    content = path.read_bytes()
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    # The footer stays, so that a refresh finds nothing wrong.
    path.write_bytes(content[:4] + bytes(60) + content[64:])
    os.utime(path, ns=times)
    before = contents(location)

    with pytest.raises(UnerasableFilesError, match=r"part-00000\.parquet"):
        client.erase(events, where="id < 15")

    assert contents(location) == before


def test_other_formats_and_kinds_are_refused_by_name(
    client: Client, http: httpx.Client, name: str, location: Path
) -> None:
    location.mkdir()
    (location / "a.csv").write_text("1,2\n")
    columns = [{"name": "a", "type": "bigint"}, {"name": "b", "type": "bigint"}]
    client.register_table(name, str(location), format="csv", columns=columns)
    client.refresh(name)

    answer = http.post(f"/tables/{name}/erasure-plans", json={"filter": "a = 1"})

    assert (answer.status_code, answer.json()["type"]) == (
        409,
        "urn:windrow:problem:unerasable-table",
    )
    assert "csv" in answer.json()["detail"]
    assert "Spark" in answer.json()["detail"]
    with pytest.raises(ProblemError, match="rewrite its partitions with Spark"):
        client.erase(name, where="a = 1")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"key": "none", "values": [1]}, 422),
        ({"key": "id", "values": ["x"]}, 422),
        ({"key": "name", "values": [1]}, 422),
        ({"key": "id", "filter": "id = 1"}, 422),
        ({}, 422),
        ({"filter": "none = 1"}, 422),
        ({"key": "id", "values": [5]}, 200),
        ({"filter": "id = 5"}, 200),
    ],
)
def test_a_plan_names_the_files_that_may_hold_rows(
    http: httpx.Client, events: str, body: dict[str, Any], status: int
) -> None:
    answer = http.post(f"/tables/{events}/erasure-plans", json=body)

    assert answer.status_code == status, answer.text
    if status == 200:
        plan = answer.json()
        assert (plan["files"], plan["files_total"], plan["row_count"]) == (1, 6, 10)


def test_keys_come_from_csv_as_texts_and_from_parquet_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text("user_id,name\n007,x\n,y\n7,z\n")
    write(tmp_path / "k.parquet", pa.table({"anything": [1, 2]}))

    assert keys_in(str(tmp_path / "k.csv"), "user_id").to_pylist() == ["007", None, "7"]
    assert keys_in(str(tmp_path / "k.parquet"), "user_id").to_pylist() == [1, 2]
    with pytest.raises(InvalidArgumentError, match="no column 'id'"):
        keys_in(str(tmp_path / "k.csv"), "id")
    (tmp_path / "empty.csv").write_text("user_id\n")
    with pytest.raises(InvalidArgumentError, match="no key"):
        keys_in(str(tmp_path / "empty.csv"), "user_id")


def test_the_command_asks_unless_told_and_prints_json(
    client: Client, events: str, tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.csv").write_text("id\n3\n")
    keys = ["erase", events, "--key", "id", "--from", str(tmp_path / "k.csv"), "--url", url]

    assert run(keys) == 1
    assert "--yes" in capsys.readouterr().err
    assert run([*keys, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["erasure"]["rows_removed"] == 1
    assert 3 not in ids(client, events)
    assert run(["erase", events, "--url", url, "--yes"]) == 1


def test_many_keys_are_found_by_several_processes(
    client: Client, name: str, location: Path
) -> None:
    for number in range(600):
        hive.write_file(location / f"{number}.parquet", range(number * 10, number * 10 + 10))
    client.register_table(name, str(location))

    erasure = client.erase(name, key="id", values=range(0, 100_000, 3), processes=2)

    assert ids(client, name) == [id_ for id_ in range(6000) if id_ % 3]
    assert (erasure.keys, erasure.files_rewritten) == (33_334, 600)


@pytest.mark.slow
def test_a_script_that_erases_and_packs_runs_once(
    client: Client, name: str, location: Path, tmp_path: Path, url: str
) -> None:
    for number in range(600):
        hive.write_file(location / f"{number}.parquet", range(number * 10, number * 10 + 10))
    client.register_table(name, str(location))
    # Without `if __name__ == "__main__":`, as people write scripts.
    script = tmp_path / "script.py"
    script.write_text(
        "import windrow\nprint('begun')\n"
        f"client = windrow.connect({url!r})\n"
        f"print(client.erase({name!r}, key='id', values=range(0, 100_000, 3)).files_rewritten)\n"
        # Files that have just changed wait for the next refresh.
        f"client.pack({name!r})\nprint('packed')\n"
    )

    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["begun", "600", "packed"]
    assert ids(client, name) == [id_ for id_ in range(6000) if id_ % 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "work"),
    [
        ("erase({name!r}, key='id', values=range(0, 100_000, 3), processes=2)", "erasure from"),
        ("pack({name!r}, processes=2, min_files=2)", "packing of"),
    ],
    ids=["erase", "pack"],
)
def test_a_script_that_asks_for_processes_is_told_what_it_lacks(
    client: Client, name: str, location: Path, tmp_path: Path, url: str, call: str, work: str
) -> None:
    for number in range(600):
        path = hive.write_file(location / f"{number}.parquet", range(number * 10, number * 10 + 10))
        os.utime(path, (1e9, 1e9))
    client.register_table(name, str(location))
    client.refresh(name)
    script = tmp_path / "script.py"
    script.write_text(
        f"import windrow\nclient = windrow.connect({url!r})\nclient.{call.format(name=name)}\n"
    )

    done = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True)

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"the {work} table {name!r} did not finish" in last
    assert "`if __name__ == '__main__':`" in last
    assert ids(client, name) == list(range(6000))


def test_rows_are_erased_on_an_object_store(tmp_path: Path, name: str) -> None:
    from tests.support.servers import embedded

    folder = hive.write_events(tmp_path / "events")
    with s3_server() as s3:
        where = upload(s3, folder, name)
        with embedded.client(tmp_path / "state", [where]) as client:
            client.register_table("s.e", where)
            with pytest.raises(InvalidArgumentError, match="readers-may-see-both"):
                client.erase("s.e", key="id", values=[5])
            erasure = client.erase("s.e", key="id", values=[5, 27], readers_may_see_both=True)
            assert (erasure.rows_removed, erasure.files_rewritten) == (2, 2)
            assert ids(client, "s.e") == [id_ for id_ in range(60) if id_ not in (5, 27)]


def upload(s3: S3, folder: Path, name: str) -> str:
    return s3.upload(folder, "tab", f"{name}/events")


def test_a_refusal_of_the_coordinator_reaches_the_caller(client: Client, events: str) -> None:
    with pytest.raises(ProblemError, match="no column 'none'"):
        client.erase(events, key="none", values=[1])


# What no file has by chance.
SECRET = "person-5e3c71f0a9"


@pytest.fixture
def persons(http: httpx.Client, client: Client, name: str, location: Path) -> str:
    """A table of twelve files, written long ago, one of which has a row of a person."""
    for number in range(12):
        who = [SECRET, f"other-{number}"] if number == 3 else [f"a-{number}", f"b-{number}"]
        path = location / f"ds={number % 3}" / f"{number}.parquet"
        write(path, pa.table({"who": who, "number": [number, number + 100]}), compression="none")
        os.utime(path, (1_700_000_000,) * 2)
    time.sleep(_MARGIN_S)
    table = f"mine.{name}"
    client.register_table(table, str(location), bloom_columns=["who"])
    client.refresh(table)
    return table


def test_nothing_of_ours_has_a_removed_value_after_the_receipt(
    client: Client, http: httpx.Client, persons: str, location: Path, state: Path
) -> None:
    first = client.table(persons).current_snapshot
    client.plan(persons, filter=f"who = '{SECRET}'")
    with pytest.raises(ProblemError):
        client.plan(persons, filter=f"{SECRET.replace('-', '_')} = 1")
    packs = client.pack(persons, min_files=2).packs
    schema, _, table = persons.rpartition(".")
    engine = http.get(f"/iceberg/v1/namespaces/{schema}/tables/{table}")
    assert engine.status_code == 200, engine.text
    assert packs
    places = {place.split(" in ")[1].split(" of /")[0] for place in traces_of([SECRET], state)}
    # Bounds, the plan and its history, the pack; and manifests for engines.
    assert {
        "the rows",
        "a value of plans",
        "a value of plan_history",
        "a stream of manifests",
    } <= places

    erasure = client.erase(persons, key="who", values=[SECRET])

    receipt = erasure.receipt
    assert receipt is not None
    assert traces_of([SECRET], location, state) == []
    assert (receipt.rows_removed, receipt.packs_removed, receipt.plans_dropped > 0) == (1, 1, True)
    assert receipt.manifests_rewritten == 1
    assert receipt.descriptions_removed > 0
    left = [one.snapshot_id for one in client.snapshots(persons)]
    assert left == [receipt.snapshot_id]
    assert first is not None
    assert first.snapshot_id not in left
    # The figures of past plans stay.
    assert any(one.table == persons for one in client.past_plans(table=persons))


def traces_beside_engines(location: Path, state: Path) -> list[str]:
    """Return where the secret is, but for what engines have of tables that were deleted."""
    engines = str(state / "engines")
    return [one for one in traces_of([SECRET], location, state) if engines not in one]


def test_what_was_kept_of_a_table_that_is_no_more_goes_with_the_rows_of_its_folder(
    client: Client, http: httpx.Client, persons: str, location: Path, state: Path
) -> None:
    earlier = f"{persons}_earlier"
    client.register_table(earlier, str(location), bloom_columns=["who"])
    client.refresh(earlier)
    client.plan(earlier, filter=f"who = '{SECRET}'")
    assert client.pack(earlier, min_files=2).packs
    engine = http.get(f"/iceberg/v1/namespaces/mine/tables/{earlier.removeprefix('mine.')}")
    assert engine.status_code == 200, engine.text
    client.delete_table(earlier)

    client.erase(persons, key="who", values=[SECRET])

    assert traces_beside_engines(location, state) == []


def test_a_receipt_says_that_other_tables_keep_rows_of_the_same_files(
    client: Client, persons: str, name: str, location: Path, state: Path
) -> None:
    below = f"mine.{name}_below"
    client.register_table(below, str(location / "ds=0"))
    client.refresh(below)
    assert client.pack(below, min_files=2).packs

    receipt = client.erase(persons, key="who", values=[SECRET]).receipt

    assert receipt is not None
    assert (
        "1 other table over the same files, with snapshots, plans and packs: erase there, too"
        in (receipt.not_reached)
    )
    assert client.erase(below, key="who", values=[SECRET]).rows_removed == 0
    assert traces_beside_engines(location, state) == []
    client.delete_table(below)
    again = client.erase(persons, key="who", values=[SECRET]).receipt
    assert again is not None
    assert not any("other table" in one for one in again.not_reached)


def test_packs_in_a_folder_that_was_set_before_are_named_until_somebody_removes_them(
    tmp_path: Path,
) -> None:
    location, state = tmp_path / "t", tmp_path / "state"
    state.mkdir()
    for number in range(2):
        write(location / f"{number}.parquet", pa.table({"id": [number]}))
        os.utime(location / f"{number}.parquet", (1_700_000_000,) * 2)
    time.sleep(_MARGIN_S)

    def settings(folder: str) -> Settings:
        packs = PackSettings(folder=str(tmp_path / folder))
        return Settings(state_dir=state, allowed_locations=(str(tmp_path),), packs=packs)

    with running(settings("before")) as url, windrow.connect(url) as client:
        for table in ("deleted", "live"):
            client.register_table(table, str(location))
            client.refresh(table)
        (pack,) = client.pack("deleted", min_files=2).packs
        client.delete_table("deleted")
    with running(settings("now")) as url, windrow.connect(url) as client:

        def about_packs() -> list[str]:
            receipt = client.erase("live", key="id", values=[7]).receipt
            assert receipt is not None
            return [one for one in receipt.not_reached if "a pack of a deleted table" in one]

        (text,) = about_packs()
        assert pack.path in text
        assert "set WINDROW_PACKS__FOLDER to its folder again, or remove it by hand" in text
        Path(pack.path).unlink()
        assert about_packs() == []


def test_a_receipt_is_verified_and_recorded(
    client: Client, events: str, tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.csv").write_text("id\n3\n4\n")
    keys = ["--key", "id", "--from", str(tmp_path / "k.csv"), "--yes", "--url", url]
    file = tmp_path / "receipt.json"

    assert run(["erase", events, *keys, "--receipt", str(file)]) == 0
    assert run(["receipt", "verify", str(file), "--url", url]) == 0
    assert "genuine: 2 rows" in capsys.readouterr().out
    receipt = json.loads(file.read_text())
    assert (receipt["rule"], receipt["keys"], receipt["rows_left"]) == ("id", 2, 0)
    assert receipt["files_total"] == 6
    (record, *_) = client.changes(table=events)
    assert (record.kind, record.item) == ("erasure", receipt["receipt_id"])
    file.write_text(json.dumps(receipt | {"rows_removed": 1}))
    assert run(["receipt", "verify", str(file), "--url", url]) == 1
    assert "not genuine" in capsys.readouterr().err
    # A receipt is never written over another file.
    assert run(["erase", events, *keys, "--receipt", str(file)]) == 1


def test_a_signature_of_any_text_is_not_genuine(client: Client, events: str) -> None:
    receipt = client.erase(events, key="id", values=[3]).receipt
    assert receipt is not None
    for signature in ("", "é", "\N{SNOWMAN}" * 64, receipt.signature[:-1]):
        assert not client.verify_receipt(receipt.model_copy(update={"signature": signature}))


def test_a_receipt_that_cannot_be_written_is_printed(
    client: Client, events: str, tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.csv").write_text("id\n3\n")
    keys = ["--key", "id", "--from", str(tmp_path / "k.csv"), "--yes", "--url", url]

    assert run(["erase", events, *keys, "--receipt", str(tmp_path / "none" / "r.json")]) == 1

    output, error = capsys.readouterr()
    assert client.verify_receipt(ErasureReceipt.model_validate_json(output))
    assert "the rows are erased" in error
    assert 3 not in ids(client, events)


def test_numbers_beyond_every_type_and_too_many_keys_are_refused(
    http: httpx.Client, client: Client, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"key": "id", "values": [2**80]}
    answer = http.post(f"/tables/{events}/erasure-plans", json=body)
    assert (answer.status_code, "64 bits" in answer.text) == (422, True)
    with pytest.raises(InvalidArgumentError, match="64 bits"):
        client.erase(events, key="id", values=[2**80])
    monkeypatch.setattr("windrow_service.usecases.erasures.plan._MOST_KEYS", 10)
    with pytest.raises(ProblemError, match="keys: 11"):
        client.erase(events, key="id", values=range(11))
    assert len(ids(client, events)) == 60


def test_rows_that_go_are_counted_once_though_a_commit_is_made_again(
    client: Client, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, calls = TableWrite.commit, iter([True, False])

    def changed_once(write: TableWrite, *arguments: Any, **options: Any) -> Any:
        if next(calls):
            raise PartitionChangedError(events, "ds=1", "ds=1/a.parquet", "has changed")
        return commit(write, *arguments, **options)

    monkeypatch.setattr(TableWrite, "commit", changed_once)

    erasure = client.erase(events, key="id", values=[3, 4])

    assert (erasure.rows_removed, len(ids(client, events))) == (2, 58)


@pytest.mark.parametrize("folder", ["ds=b", "elsewhere"])
def test_rows_of_partitions_that_a_catalog_lists_go_or_are_refused(
    folder: str, client: Client, name: str, location: Path
) -> None:
    files = {"a": location / "ds=a" / "1.parquet", "b": location / folder / "2.parquet"}
    for at, path in enumerate(files.values()):
        write(path, pa.table({"id": [10 * at, 10 * at + 1]}))
    folders = [str(path.parent) for path in files.values()]
    client.register_table(name, str(location), partition_columns=[{"name": "ds", "type": "string"}])
    client.set_partitions(name, pa.table({"values": [[one] for one in files], "location": folders}))
    client.refresh(name)
    before = contents(location)

    if folder == "elsewhere":
        with pytest.raises(UnerasableFilesError, match="not named `column=value`"):
            client.erase(name, key="id", values=[0, 1, 10])
        assert contents(location) == before
        assert not list(client.writes(name, open_only=True))
    else:
        erasure = client.erase(name, key="id", values=[0, 1, 10])
        assert (erasure.rows_removed, erasure.files_removed, erasure.files_rewritten) == (3, 1, 1)
        assert ids(client, name) == [11]


def test_a_receipt_of_a_condition_has_no_value(client: Client, events: str) -> None:
    erasure = client.erase(events, where="name = 'name-7' OR (id IN (8, 9) AND ds < '2026-11-02')")

    assert erasure.receipt is not None
    assert erasure.receipt.rule == "(name = ?) OR ((id IN (values: 2)) AND (ds < ?))"
    assert erasure.rows_removed == 3
    assert erasure.receipt.keys is None


def test_a_protected_table_is_not_touched(client: Client, events: str) -> None:
    client.protect_table(events)
    try:
        with pytest.raises(ProblemError, match="protected"):
            client.erase(events, key="id", values=[1])
        assert 1 in ids(client, events)
    finally:
        client.unprotect_table(events)


def test_hosts_that_may_hold_old_files_are_named(client: Client, events: str) -> None:
    split = next(iter(client.plan(events).groups["splits"][0])).as_py()
    worker, host = f"w-{events}", "host-7.example"
    beat = Heartbeat(host=host, capacity_bytes=10**9, used_bytes=0, ttl_seconds=60)
    session = client.beat(worker, beat).session
    file = CachedFile(**{name: split[name] for name in ("path", "size_bytes", "mtime_ns")})
    report = CachedFilesReport(table=events, session=session, added=[file], removed=[])
    client.report_cached_files(worker, report)

    other = client.erase(events, key="id", values=[10**9]).receipt
    receipt = client.erase(events, where=f"id = {min_id(client, events, split['path'])}").receipt

    assert other is not None
    assert receipt is not None
    assert not any(host in text for text in other.not_reached)
    assert any(host in text for text in receipt.not_reached)
    client.forget_worker(worker)


def min_id(client: Client, table: str, path: str) -> int:
    location = client.table(table).definition.location
    return int(pq.read_table(f"{location}/{path}", partitioning=None)["id"].to_pylist()[0])
