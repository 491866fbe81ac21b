"""Warm-up tasks on their hosts, and the files assigned to them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.plans.plans import plan_of
from tests.support.spark.host_caches import cache_in, keys_in, without_marks
from windrow_calls.plans import SplitPlan
from windrow_jobs.warm import fetchable
from windrow_jobs.warming import Warmed, Warming
from windrow_tables.groups.descriptors import descriptors_of
from windrow_tables.host_cache.cache import FileKey

LARGE = 9 * 2**20


def write(folder: Path, name: str, size_bytes: int) -> tuple[str, int, int]:
    """Write a file of random bytes, as nothing decodes it."""
    path = folder / name
    path.write_bytes(os.urandom(size_bytes))
    return name, size_bytes, path.stat().st_mtime_ns


def groups_of(*groups: tuple[str | None, list[tuple[str, int, int, int]]]) -> pa.Table:
    """Return groups of files (path, start, size, mtime), each with the host that should hold it."""
    names = ("path", "start", "size_bytes", "mtime_ns")
    return pa.table(
        {
            "hosts": [[host] if host else [] for host, _ in groups],
            "cached_on": pa.array([host for host, _ in groups], pa.string()),
            "residual_filter": pa.nulls(len(groups), pa.string()),
            "splits": [
                [dict(zip(names, file, strict=True)) for file in files] for _, files in groups
            ],
        }
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    folder.mkdir()
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    return cache_in(tmp_path / "cache", host="here", capacity=64 * 2**20)


def run(
    table: Path, host: str, files: list[tuple[str, int, int]], *, logged: bool = False
) -> tuple[Warmed, list[int]]:
    """Run one task; return its answer and the progress it reported for each file."""
    told: list[int] = []
    groups = groups_of((host, [(path, 0, size, mtime) for path, size, mtime in files]))
    (descriptor,) = descriptors_of(groups)
    (answer,) = Warming("t", str(table), told.append, logged)(7, [(descriptor.content,)])
    return Warmed(*answer), told


def test_small_and_large_files_are_fetched_once(table: Path, cache: Any) -> None:
    files = [write(table, "small", 100), write(table, "large", LARGE), write(table, "empty", 0)]

    first, told = run(table, "here", files)
    second, told_again = run(table, "here", files)

    assert (first.fetched_files, first.fetched_bytes) == (3, 100 + LARGE)
    assert (first.task, first.file_count, first.away, first.failed_files) == (7, 3, None, 0)
    assert sorted(told) == [0, 100, LARGE]
    assert (second.fetched_files, second.present_files) == (0, 3)
    assert second.present_bytes == 100 + LARGE
    assert told_again == [0, 0, 0]
    assert without_marks(keys_in(cache)) == {
        FileKey("t", str(table), size, mtime, path).text() for path, size, mtime in files
    }


def test_files_that_differ_from_the_plan_are_named_and_not_kept(table: Path, cache: Any) -> None:
    good, (path, size, mtime) = write(table, "good", 10), write(table, "changed", 10)
    large, large_size, large_mtime = write(table, "large", LARGE)

    done, _ = run(
        table, "here", [good, (path, size, mtime - 1), (large, large_size, large_mtime + 1)]
    )

    assert (done.fetched_files, done.present_files, done.failed_files) == (1, 0, 2)
    assert "/changed" in done.failures[0]
    assert "/large" in done.failures[1]
    assert without_marks(keys_in(cache)) == {
        FileKey("t", str(table), good[1], good[2], "good").text()
    }


def test_a_file_too_large_for_the_cache_is_reported(table: Path, cache: Any) -> None:
    done, _ = run(table, "here", [write(table, "huge", 80 * 2**20)])

    assert (done.fetched_files, done.failed_files) == (0, 1)
    assert "did not keep 'huge'" in done.failures[0]


def test_a_task_that_runs_on_another_host_fetches_nothing(table: Path, cache: Any) -> None:
    done, told = run(table, "there", [write(table, "one", 10), write(table, "two", 10)])

    assert (done.fetched_files, done.failed_files, done.file_count) == (0, 0, 2)
    assert done.away is not None
    assert "there" in done.away
    assert "here" in done.away
    assert not told
    assert not keys_in(cache)


def test_a_task_without_a_cache_reports_what_is_missing(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDROW_CACHE_DIR", raising=False)

    done, _ = run(table, "here", [write(table, "one", 10)])

    assert done.away is not None
    assert "WINDROW_CACHE_DIR is not set" in done.away


def test_each_cacheable_file_is_assigned_to_its_worker_once(tmp_path: Path) -> None:
    info, _ = plan_of(tmp_path, {"n": "bigint"})
    groups = groups_of(
        ("a", [("x", 0, 9, 1), ("x", 4, 9, 1), ("y", 0, 9, 1)]),
        (None, [("anywhere", 0, 9, 1)]),
        ("a", [("x", 7, 9, 1)]),
        ("b", [("z", 0, 9, 1)]),
    )

    given = fetchable(SplitPlan(info, groups)).to_pylist()

    assert [
        (group["cached_on"], [file["path"] for file in group["splits"]]) for group in given
    ] == [("a", ["x", "y"]), ("b", ["z"])]


@pytest.mark.parametrize("size_bytes", [100, LARGE])
def test_files_of_tables_with_logs_are_fetched_whatever_their_time(
    table: Path, cache: Any, size_bytes: int
) -> None:
    name, size_bytes, _ = write(table, "f", size_bytes)

    logged, _ = run(table, "here", [(name, size_bytes, 5)], logged=True)
    plain, _ = run(table, "here", [(name, size_bytes, 6)])

    assert (logged.fetched_files, logged.failed_files) == (1, 0)
    assert (plain.fetched_files, plain.failed_files) == (0, 1)
    assert keys_in(cache) == {FileKey("t", str(table), size_bytes, 5, name).text()}
