"""Reading a group without Spark: file layouts, memory bounds, and the code sent to executors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from tests.support.plans.plans import group_of, plan_of
from windrow_spark.reading.reader import shipped_reader
from windrow_tables.executor.errors import (
    AmbiguousColumnError,
    ResidualFilterError,
    StaleFileError,
    UnreadableFileError,
    VanishedFileError,
)
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.rebasing import Calendars
from windrow_tables.executor.spec import ReadLimits, ReadSpec, SortKey
from windrow_tables.groups.descriptors import descriptors_of

ROOT = Path(__file__).parents[3]


def spec(location: Path, fields: list[tuple[str, pa.DataType]], **changes: Any) -> ReadSpec:
    data = pa.schema(fields)
    made = ReadSpec(
        table="t",
        location=str(location),
        data=data,
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=tuple(data.names),
    )
    return replace(made, **changes)


def rows(spec: ReadSpec, residual: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    batches = read_group(spec, group_of(spec.location), residual)
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_column_of_the_exact_name_is_preferred_to_one_that_differs_by_case(
    tmp_path: Path,
) -> None:
    pq.write_table(pa.table({"ID": [1], "id": [2]}), tmp_path / "a.parquet")

    assert rows(spec(tmp_path, [("id", pa.int64())])) == [{"id": 2}]


def test_a_column_that_matches_two_by_case_is_an_error_that_names_both(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ID": [1], "Id": [2]}), tmp_path / "a.parquet")

    with pytest.raises(AmbiguousColumnError, match="'ID', 'Id'"):
        rows(spec(tmp_path, [("id", pa.int64())]))


def test_a_name_with_a_dot_is_not_taken_for_a_field_of_a_struct(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [{"b": 1}], "x": [5]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a.b": [2], "x": [6]}), tmp_path / "2.parquet")

    got = rows(spec(tmp_path, [("a.b", pa.int64()), ("x", pa.int64())]))

    assert got == [{"a.b": None, "x": 5}, {"a.b": 2, "x": 6}]


def test_files_of_alternating_layouts_keep_their_order(tmp_path: Path) -> None:
    for n in range(20):
        table = pa.table({"a": pa.array([n], pa.int32() if n % 2 else pa.int64()), "b": [str(n)]})
        pq.write_table(table.select(["b", "a"] if n % 3 else ["a"]), tmp_path / f"{n:02}.parquet")

    got = rows(spec(tmp_path, [("a", pa.int64()), ("b", pa.string())]))

    assert got == [{"a": n, "b": str(n) if n % 3 else None} for n in range(20)]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_are_instants_or_local_times_as_the_table_says(
    zone: str | None, tmp_path: Path
) -> None:
    times = pa.array([0, -1, None], pa.timestamp("us"))
    pq.write_table(
        pa.table({"t": times}), tmp_path / "1.parquet", use_deprecated_int96_timestamps=True
    )
    pq.write_table(pa.table({"t": times}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"t": times.cast(pa.timestamp("us", "UTC"))}), tmp_path / "3.parquet")

    got = rows(spec(tmp_path, [("t", pa.timestamp("us", zone))]))

    expected = times.cast(pa.timestamp("us", zone)).to_pylist()
    assert [row["t"] for row in got] == expected * 3


def test_bytes_that_are_not_text_name_their_file(tmp_path: Path) -> None:
    for name, content in (("a", b"ok"), ("b", b"\xff"), ("c", b"ok")):
        pq.write_table(pa.table({"s": [content]}), tmp_path / f"{name}.parquet")

    with pytest.raises(UnreadableFileError, match=r"b\.parquet"):
        rows(spec(tmp_path, [("s", pa.string())]))


def test_a_file_that_has_become_a_folder_cannot_be_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    group = group_of(tmp_path)
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "a.parquet").mkdir()

    with pytest.raises(UnreadableFileError, match=r"a\.parquet'.*[Dd]irectory"):
        list(read_group(spec(tmp_path, [("a", pa.int64())]), group, None))


@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "streamed"])
def test_a_large_file_that_changed_is_stale(tmp_path: Path, buffered: bool) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    limits = ReadLimits(
        max_decoded_at_once_bytes=0, max_buffered_file_bytes=10_000 if buffered else 0
    )
    group = group_of(tmp_path)
    os.utime(tmp_path / "a.parquet", ns=(5, 5))

    with pytest.raises(StaleFileError, match="modification time"):
        list(read_group(spec(tmp_path, [("a", pa.int64())], limits=limits), group, None))


def test_a_large_file_that_changes_while_it_is_read_is_stale(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(10_000)}), path, row_group_size=1_000)
    limits = ReadLimits(max_batch_rows=100, max_buffered_file_bytes=0, max_decoded_at_once_bytes=0)
    batches = read_group(
        spec(tmp_path, [("a", pa.int64())], limits=limits), group_of(tmp_path), None
    )
    next(batches)

    os.utime(path, ns=(5, 5))

    with pytest.raises(StaleFileError, match="modification time"):
        list(batches)


def test_rows_are_only_counted_if_no_column_of_the_files_is_requested(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "p=1" / "a.parquet")
    pq.write_table(pa.table({"a": [3] * 70_000}), tmp_path / "p=1" / "b.parquet")
    partition = pa.schema([("p", pa.int32())])
    made = spec(tmp_path, [], partition=partition, output=("p",))

    batches = list(read_group(made, group_of(tmp_path, {"p": "int"}), None))

    assert sum(batch.num_rows for batch in batches) == 70_002
    assert max(batch.num_rows for batch in batches) <= made.limits.max_batch_rows


@pytest.mark.slow
def test_long_values_of_a_small_dictionary_stay_within_the_memory_bounds(tmp_path: Path) -> None:
    # 40 KB on disk, 4 GB when decoded.
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 40_000, pa.int32()), ["x" * 100_000])
    pq.write_table(pa.table({"s": values}), tmp_path / "a.parquet", store_schema=False)
    limits = ReadLimits(max_decoded_at_once_bytes=1_000)
    allocated = pa.total_allocated_bytes()
    made = spec(tmp_path, [("s", pa.string())], limits=limits)

    count = most = 0
    for batch in read_group(made, group_of(tmp_path), None):
        count += batch.num_rows
        assert batch.nbytes <= limits.max_batch_bytes
        most = max(most, pa.total_allocated_bytes() - allocated)

    assert count == 40_000
    assert most < 300 * 2**20


def test_a_filter_of_a_newer_coordinator_is_refused_and_not_ignored(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    made = spec(tmp_path, [("a", pa.int64())])

    for residual, words in (
        ({"op": "like", "column": "a", "pattern": "%"}, "operator 'like'"),
        ({"op": "eq", "column": "b", "value": 1}, "column 'b'"),
        ({"op": "eq", "column": "a", "value": "x"}, "not a literal of type int64"),
    ):
        with pytest.raises(ResidualFilterError, match=words):
            rows(made, residual)


def run_executor(way: str, work: tuple[Any, ...]) -> subprocess.CompletedProcess[bytes]:
    """Run work in a way of `tests.programs.bare_executor`."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.programs.bare_executor"),
            *(way, "windrow,windrow_core,windrow_spark,pydantic,pandas,httpx"),
        ],
        input=cloudpickle.dumps(work),
        capture_output=True,
        check=False,
    )


@pytest.mark.slow
def test_executors_need_nothing_but_numpy_and_pyarrow(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    _, groups = plan_of(tmp_path, {"a": "bigint"}, residual={"op": "gt", "column": "a", "value": 1})
    sort = (SortKey(name="a", descending=False, nulls_first=True),)
    run = shipped_reader(spec(tmp_path, [("a", pa.int64())], sort=sort))
    work = (run, descriptors_of(groups)[0].content)

    done = run_executor("read_twice", work)

    assert done.stderr.decode() == ""
    assert done.stdout.split() == [b"2", b"2"]


def test_a_worker_unpacks_the_reader_once_for_all_reads_and_never_collects_it(
    tmp_path: Path,
) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "a.parquet")
    _, groups = plan_of(tmp_path, {"a": "bigint", "b": "string"})
    runs = [
        shipped_reader(spec(tmp_path, [column]))
        for column in (("a", pa.int64()), ("b", pa.string()))
    ]
    work = (*runs, descriptors_of(groups)[0].content)

    done = run_executor("read_in_turn", work)

    assert done.stderr.decode() == ""
    assert done.stdout.decode().splitlines() == [
        "[['a']] False 1",
        "[['b']] True 1",
        "[['a']] True 1",
    ]


def test_a_spec_is_the_same_after_packing_and_unpacking(tmp_path: Path) -> None:
    made = ReadSpec(
        table="t",
        location=str(tmp_path),
        data=pa.schema(
            [("a", pa.list_(pa.field("element", pa.decimal128(38, 3)))), ("t", pa.date32())]
        ),
        hidden=pa.schema([("h", pa.timestamp("us", "UTC"))]),
        partition=pa.schema([("p", pa.int32())]),
        output=("p", "a"),
        sort=(SortKey(name="h", descending=True, nulls_first=False),),
        limits=ReadLimits(max_batch_rows=7),
        calendars=Calendars(dates="LEGACY", int96="EXCEPTION", zone="Europe/Zurich", zones="{}"),
    )

    assert ReadSpec.unpacked(made.packed()) == made


def test_executors_without_windrow_name_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)
    _, groups = plan_of(tmp_path, {"a": "bigint"})
    run = shipped_reader(spec(tmp_path, [("a", pa.int64())]))
    work = (run, descriptors_of(groups)[0].content)
    path.unlink()

    done = run_executor("fail", work)

    assert done.stderr.decode() == ""
    error = VanishedFileError(str(path))
    assert done.stdout.decode() == f"VanishedFileError {error.args} {error}\n"


@pytest.mark.parametrize("column", ["id", "nowhere"], ids=["held by the file", "in no file"])
def test_rows_of_row_groups_are_counted_if_the_footer_states_zero(
    tmp_path: Path, column: str
) -> None:
    published = ROOT / "tests/fixtures/parquet-testing/repeated_no_annotation.parquet"
    assert pq.read_metadata(published).num_rows == 0
    shutil.copy(published, tmp_path)

    got = rows(spec(tmp_path, [(column, pa.int32())]))

    assert got == [{column: n if column == "id" else None} for n in range(1, 7)]


def test_a_split_of_a_file_without_columns_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({}), path)
    assert pq.read_metadata(path).num_row_groups == 1
    columns = group_of(tmp_path).to_pydict()
    columns["length"] = [40]
    part = pa.RecordBatch.from_pydict(columns, group_of(tmp_path).schema)

    got = list(read_group(spec(tmp_path, [("a", pa.int64())]), part, None))

    assert sum(batch.num_rows for batch in got) == 0
