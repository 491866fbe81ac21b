"""Tables read without Spark: the planned rows, in every form, or an error that says what to do."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
import windrow_calls.installed
from tests.support.laws import examples
from tests.support.tables import hive
from windrow_calls.errors import InvalidArgumentError, NotFoundError
from windrow_calls.installed import MissingPackageError
from windrow_tables.errors import OnlySparkReadsError, UnfitReadError
from windrow_tables.executor.errors import StaleFileError, UnreadableFileError, VanishedFileError
from windrow_tables.scans.threads import THREAD_NAME

ROOT = Path(__file__).parents[2]
# `hive.write_events` writes three days of twenty ids each.
IDS = list(range(60))


def ids_in(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


def readers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == THREAD_NAME]


def in_another_process(*arguments: str, content: bytes = b"") -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.programs.scanning", *arguments],
        cwd=ROOT,
        input=content,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def test_a_scan_does_not_import_pandas_which_takes_longer_than_most_reads(
    client: windrow.Client, events: str
) -> None:
    code = (
        "import sys, windrow\n"
        "url, table = sys.argv[1:]\n"
        "with windrow.connect(url) as client:\n"
        "    rows = client.scan(table).to_table()\n"
        "print(rows.num_rows, 'pandas' in sys.modules)"
    )
    printed = subprocess.check_output([sys.executable, "-c", code, client.url, events], text=True)
    assert printed == "60 False\n"


def test_every_form_has_the_same_rows_and_reads_them_anew(
    client: windrow.Client, events: str
) -> None:
    scan = client.scan(events, columns=["id", "ds"])

    assert scan.schema == pa.schema([("id", pa.int64()), ("ds", pa.date32())])
    assert ids_in(scan.to_table()) == IDS
    assert ids_in(scan.to_reader().read_all()) == IDS
    assert sorted(scan.to_pandas()["id"]) == IDS
    assert sorted(scan.to_polars()["id"]) == IDS
    assert pl.DataFrame(scan).schema == {"id": pl.Int64, "ds": pl.Date}
    assert ids_in(pa.table(scan)) == IDS
    assert pa.schema(scan) == scan.schema
    days = scan.to_table().group_by("ds").aggregate([("id", "sum")]).to_pylist()
    assert {str(row["ds"]): row["id_sum"] for row in days} == {
        day: sum(range(20 * nth, 20 * nth + 20)) for nth, day in enumerate(hive.DAYS)
    }


def test_duckdb_reads_a_scan_anew_for_each_query_under_its_name(
    client: windrow.Client, events: str
) -> None:
    connection = client.scan(events).to_duckdb("events")
    own = duckdb.connect()

    assert client.scan(events, limit=5).to_duckdb("few", own) is own
    joined = "SELECT count(*), sum(a.id) FROM events a JOIN events b USING (id) WHERE a.id < 30"
    for _ in range(2):
        assert connection.sql(joined).fetchall() == [(30, sum(range(30)))]
    assert own.sql("SELECT count(*) FROM few").fetchall() == [(5,)]


@examples(20)
@given(
    st.integers(-5, 65),
    st.sampled_from([*hive.DAYS, "2026-12-01"]),
    st.sampled_from(["id >= {n} AND ds = '{day}'", "id < {n} OR ds > '{day}'", "NOT id = {n}"]),
    st.none() | st.integers(1, 70),
    st.integers(1, 3),
)
def test_a_filter_is_applied_to_every_row_and_a_limit_is_exact(
    shared: tuple[windrow.Client, str], n: int, day: str, text: str, limit: int | None, threads: int
) -> None:
    client, events = shared
    days = {id_: hive.DAYS[id_ // 20] for id_ in IDS}
    kept = {
        "id >= {n} AND ds = '{day}'": [i for i in IDS if i >= n and days[i] == day],
        "id < {n} OR ds > '{day}'": [i for i in IDS if i < n or days[i] > day],
        "NOT id = {n}": [i for i in IDS if i != n],
    }[text]

    scan = client.scan(events, filter=text.format(n=n, day=day), limit=limit, threads=threads)
    ids = ids_in(scan.to_table())

    assert set(ids) <= set(kept)
    assert len(ids) == len(set(ids)) == min(len(kept), limit or len(kept))


@pytest.fixture(scope="module")
def shared(url: str, tables_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    hive.write_events(tables_folder / "shared_scan")
    with windrow.connect(url) as client:
        client.register_table("shared_scan", location=str(tables_folder / "shared_scan"))
        client.refresh("shared_scan")
        yield client, "shared_scan"


@pytest.mark.parametrize("count", [1, 2, 6, 9])
def test_splits_have_each_row_once_and_can_be_pickled(
    client: windrow.Client, events: str, count: int
) -> None:
    scan = client.scan(events, filter="id <> 7")

    splits = pickle.loads(pickle.dumps(scan.splits(count)))

    tables = [split.read() for split in splits]
    assert ids_in(pa.concat_tables(tables)) == [id_ for id_ in IDS if id_ != 7]
    assert len(splits) == count
    assert sum(split.size_bytes for split in splits) == scan.plan.summary.size_bytes
    assert {split.schema for split in splits} == {scan.schema}
    # Workers that each plan the snapshot divide it alike.
    again = client.scan(events, filter="id <> 7", snapshot_id=scan.plan.snapshot_id)
    assert [ids_in(split.read()) for split in again.splits(count)] == [*map(ids_in, tables)]
    with pytest.raises(InvalidArgumentError, match="at least one part"):
        scan.splits(0)


def test_a_process_without_spark_and_pandas_reads_a_table_or_a_part_of_one(
    client: windrow.Client, url: str, location: Path, name: str
) -> None:
    kinds = {
        "n": pa.array([1, None], pa.int8()),
        "nest": pa.array([[{"a": "x", "b c": 1.5}], None]),
        "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    }
    (location / "k=a%2Fb").mkdir(parents=True)
    pq.write_table(pa.table(kinds), location / "k=a%2Fb" / "1.parquet")
    client.register_table(name, location=str(location))
    client.refresh(name)
    rows = [
        {"n": 1, "nest": [{"a": "x", "b c": 1.5}], "map": [["k", 1]], "k": "a/b"},
        {"n": None, "nest": None, "map": [], "k": "a/b"},
    ]

    (split,) = client.scan(name).splits(1)

    assert in_another_process(url, name) == rows
    assert in_another_process(content=pickle.dumps(split)) == rows


def test_a_file_that_is_not_as_planned_is_named_with_what_to_do(
    client: windrow.Client, events: str, location: Path
) -> None:
    scan = client.scan(events)
    first = min(location.rglob("*.parquet"))
    hive.write_file(first, range(11))

    with pytest.raises(StaleFileError, match=rf"{first.name}.*refresh the table and plan again"):
        scan.to_table()
    with pytest.raises(duckdb.Error, match=rf"{first.name}.*refresh the table and plan again"):
        scan.to_duckdb("events").sql("SELECT count(*) FROM events").fetchall()

    first.unlink()
    with pytest.raises(VanishedFileError, match=rf"{first.name}.*refresh the table and plan again"):
        scan.to_table()
    assert ids_in(client.scan(events, filter="ds > '2026-11-01'").to_table()) == IDS[20:]
    assert readers() == []


def test_a_scan_reads_the_snapshot_that_it_was_planned_on(
    client: windrow.Client, events: str, location: Path
) -> None:
    scan = client.scan(events)
    hive.write_file(location / "ds=2026-11-01" / "new.parquet", [100])
    client.refresh(events)

    assert ids_in(scan.to_table()) == IDS
    assert ids_in(client.scan(events).to_table()) == [*IDS, 100]
    earlier = client.scan(events, snapshot_id=scan.plan.snapshot_id)
    assert ids_in(earlier.to_table()) == IDS


def test_a_reader_that_is_left_early_frees_its_threads(client: windrow.Client, events: str) -> None:
    reader = client.scan(events, threads=2, buffer_size=1).to_reader()
    assert reader.read_next_batch().num_rows
    assert readers()

    del reader

    assert readers() == []


def test_files_beyond_a_limit_are_not_read(
    client: windrow.Client, name: str, location: Path
) -> None:
    for number in range(40):
        hive.write_file(location / f"{number:02}.parquet", range(10 * number, 10 * number + 10))
    client.register_table(name, location=str(location))
    client.refresh(name)
    # Each file may hold such rows, and holds two.
    request: dict[str, Any] = {
        "filter": f"id IN ({', '.join(str(id_) for id_ in range(0, 400, 5))})",
        "limit": 9,
    }
    scan = client.scan(name, threads=1, **request)
    splits = [split for group in client.plan(name, **request).groups["splits"] for split in group]
    assert len(splits) == 40
    # One file is read, and then four, which hold enough.
    for split in splits[5:]:
        (location / split.as_py()["path"]).unlink()

    assert scan.to_table().num_rows == 9


def test_an_empty_table_and_one_of_which_no_row_matches_have_columns_and_no_rows(
    client: windrow.Client, events: str
) -> None:
    scan = client.scan(events, filter="ds = '2020-01-01'")

    assert scan.to_table() == pa.table({"id": [], "name": [], "ds": []}, schema=scan.schema)
    assert scan.to_polars().shape == (0, 3)
    assert [split.read().num_rows for split in scan.splits(2)] == [0, 0]


def test_files_that_only_spark_reads_are_refused_by_name(
    client: windrow.Client, name: str, location: Path
) -> None:
    location.mkdir()
    (location / "1.csv").write_text("1\n")
    client.register_table(name, location=str(location), format="csv", columns={"a": "int"})
    client.refresh(name)

    with pytest.raises(OnlySparkReadsError, match=rf"{name}.*csv.*client\.read"):
        client.scan(name)


def test_a_struct_without_fields_is_refused_by_file_and_column(
    client: windrow.Client, name: str, location: Path
) -> None:
    location.mkdir()
    shutil.copy(ROOT / "tests" / "fixtures" / "duckdb" / "empty_group_test.parquet", location)
    client.register_table(name, location=str(location))
    client.refresh(name)

    with pytest.raises(UnreadableFileError, match=r"empty_group_test\.parquet.*'nested'"):
        client.scan(name).to_table()
    assert client.scan(name, columns=["id"]).to_table().to_pylist() == [{"id": 1}]


def test_scans_that_cannot_work_say_why(
    client: windrow.Client, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFoundError):
        client.scan("no.such.table")
    with pytest.raises(InvalidArgumentError, match="at least one column"):
        client.scan(events, columns=[])
    with pytest.raises(InvalidArgumentError, match="'much' is not a size"):
        client.scan(events, buffer_size="much")
    with pytest.raises(InvalidArgumentError, match="scan without limit"):
        client.scan(events, limit=1).splits(2)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "polars", None)
        with pytest.raises(UnfitReadError, match="pip install polars"):
            client.scan(events).to_polars()
    monkeypatch.setattr(windrow_calls.installed.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"numpy is not installed.*\[scan\]"):
        client.scan(events)


def test_memory_is_bounded_while_the_consumer_pauses(
    client: windrow.Client, name: str, location: Path
) -> None:
    location.mkdir()
    values = [random.Random(nth).randbytes(10_000) for nth in range(100)]
    pq.write_table(pa.table({"v": values}), location / "0.parquet")
    for number in range(1, 300):
        os.link(location / "0.parquet", location / f"{number}.parquet")
    client.register_table(name, location=str(location))
    client.refresh(name)
    before = pa.total_allocated_bytes()
    reader = client.scan(name, threads=2, buffer_size="1MB").to_reader()

    reader.read_next_batch()
    time.sleep(0.5)

    # Of 300 MB: each thread decodes 16 MB, and joins them to a batch.
    assert pa.total_allocated_bytes() - before < 120 * 2**20
    del reader
    assert readers() == []
