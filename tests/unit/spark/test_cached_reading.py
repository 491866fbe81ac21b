"""Reading through a cache on executors without Windrow, and other points of failure."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from tests.support.plans.plans import group_of, splits_of, splits_type
from tests.support.spark.host_caches import cache_in, keys_in, settle
from windrow_spark.reading.reader import shipped_reader
from windrow_tables.executor.errors import StaleFileError
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadLimits, ReadSpec
from windrow_tables.groups.descriptors import descriptors_of

FILES = 5


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(pa.table({"a": [number, number + 1]}), folder / f"{number}.parquet")
    settle()
    return folder


def spec_of(table: Path, **limits: int) -> ReadSpec:
    return ReadSpec(
        table="t",
        location=str(table),
        data=pa.schema([("a", pa.int64())]),
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=("a",),
        limits=ReadLimits(**limits),
    )


def run_executor(
    table: Path, group: pa.RecordBatch, cache: Path, missing: str
) -> subprocess.CompletedProcess[bytes]:
    groups = pa.table(
        {
            "hosts": pa.array([["here"]]),
            "cached_on": pa.array(["here"]),
            "residual_filter": pa.array([None], pa.string()),
            "splits": pa.ListArray.from_arrays([0, group.num_rows], group.to_struct_array()),
        }
    )
    (descriptor,) = descriptors_of(groups)
    sent = pickle.dumps((cloudpickle.dumps(shipped_reader(spec_of(table))), descriptor.content))
    return subprocess.run(
        [sys.executable, "-m", "tests.programs.bare_executor", "read_column", missing],
        input=sent,
        capture_output=True,
        env=os.environ | {"WINDROW_CACHE_DIR": str(cache)},
        check=True,
    )


@pytest.mark.slow
def test_an_executor_without_windrow_reads_through_the_cache(tmp_path: Path, table: Path) -> None:
    cache = cache_in(tmp_path / "cache")
    cache.close()

    group = group_of(table)
    first = run_executor(table, group, tmp_path / "cache", "windrow,pydantic,httpx")
    second = run_executor(table, group, tmp_path / "cache", "windrow,pydantic,httpx")

    assert (first.stdout, first.stderr) == (b"10 25\n", b"")
    assert (second.stdout, second.stderr) == (b"10 25\n", b"")
    assert len(keys_in(cache)) == FILES
    assert cache.counts()["hits"] == FILES


@pytest.mark.parametrize("buffered", [2**20, 10])
@pytest.mark.parametrize("exchange", ["in place", "by another file"])
def test_a_copy_of_a_file_is_not_read_once_the_file_has_become_another_of_equal_size_and_time(
    tmp_path: Path, table: Path, buffered: int, exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_in(tmp_path / "cache")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    group, file = group_of(table), table / "3.parquet"
    limits = {"max_buffered_file_bytes": buffered, "max_decoded_at_once_bytes": buffered}

    def read() -> list[int]:
        batches = read_group(spec_of(table, **limits), group, None, "here")
        return sorted(value for batch in batches for value in batch["a"].to_pylist())

    first = read()
    status, new = file.stat(), tmp_path / "new"
    pq.write_table(pa.table({"a": [103, 104]}), new)
    assert new.stat().st_size == status.st_size
    if exchange == "in place":
        file.write_bytes(new.read_bytes())
    else:
        new.replace(file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    at_once = read()
    settle()
    later, again = read(), read()

    assert first == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert at_once == later == again == [0, 1, 1, 2, 2, 3, 4, 5, 103, 104]
    assert cache.counts()["misses"] == FILES + 1


@pytest.mark.slow
def test_an_executor_without_sqlite_bypasses_the_cache_and_says_so_once(
    tmp_path: Path, table: Path
) -> None:
    cache = cache_in(tmp_path / "cache")

    done = run_executor(
        table, group_of(table), tmp_path / "cache", "windrow,sqlite3,_sqlite3,fcntl"
    )

    assert done.stdout == b"10 25\n"
    assert done.stderr.decode().count("sqlite3 is missing") == 1
    assert keys_in(cache) == set()


@pytest.mark.parametrize("buffered", [2**20, 10])
def test_bytes_that_differ_from_the_plan_are_not_cached(
    tmp_path: Path, table: Path, buffered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_in(tmp_path / "cache")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    group = group_of(table)
    changed = table / "3.parquet"
    os.utime(changed, ns=(0, changed.stat().st_mtime_ns + 1))

    limits = {"max_buffered_file_bytes": buffered, "max_decoded_at_once_bytes": buffered}
    with pytest.raises(StaleFileError, match=r"3\.parquet"):
        list(read_group(spec_of(table, **limits), group, None, "here"))

    assert not any("3.parquet" in key for key in keys_in(cache))
    assert list((tmp_path / "cache" / "incoming").iterdir()) == []


@pytest.mark.parametrize("buffered", [2**20, 10])
def test_a_file_larger_than_half_the_cache_bypasses_it(
    tmp_path: Path, table: Path, buffered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = pa.array(range(50_000), pa.int64())
    plain = {"use_dictionary": False, "compression": "none"}
    pq.write_table(pa.table({"a": values}), table / "large.parquet", **plain)
    settle()
    cache = cache_in(tmp_path / "cache", capacity=600_000)
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    limits = {"max_buffered_file_bytes": buffered, "max_decoded_at_once_bytes": buffered}

    batches = list(read_group(spec_of(table, **limits), group_of(table), None, "here"))

    assert sum(batch.num_rows for batch in batches) == 50_000 + 2 * FILES
    assert cache.counts()["failures"] == 1
    assert len(keys_in(cache)) == FILES


def test_splits_of_a_large_file_copy_it_once(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = table / "large.parquet"
    values = pa.array(range(60_000), pa.int64())
    pq.write_table(pa.table({"a": values}), file, row_group_size=20_000, use_dictionary=False)
    settle()
    cache = cache_in(tmp_path / "cache")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    splits = [s for s in splits_of(table, {}, by_row_group=True) if s["path"] == file.name]
    group = pa.RecordBatch.from_struct_array(pa.array(splits, splits_type({})))
    limits = {"max_buffered_file_bytes": 10, "max_decoded_at_once_bytes": 10}

    batches = list(read_group(spec_of(table, **limits), group, None, "here"))

    read = [value for batch in batches for value in batch["a"].to_pylist()]
    assert read == list(range(60_000))
    counts = cache.counts()
    assert (counts["misses"], counts["hits"]) == (1, 2)
