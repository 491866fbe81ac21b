"""On Spark, tasks whose group is cached on their host read through its cache."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.plans.plans import plan_of
from tests.support.servers.coordinators import running
from tests.support.spark.host_caches import cache_in, keys_in, settle
from windrow.spark import read_plan
from windrow_core.models import Plan
from windrow_service.settings import Settings
from windrow_tables.host_cache.agent import Agent
from windrow_tables.host_cache.cache import FileCache

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]
FILES = 20


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    for i in range(FILES):
        part = folder / f"p={i % 2}"
        part.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": [i, i + FILES]}), part / f"{i:02}.parquet")
    settle()
    return folder


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder of all tests; with another environment, Spark would start new workers."""
    return tmp_path_factory.mktemp("caches") / "cache"


@pytest.fixture
def cache(spark: SparkSession, cache_dir: Path) -> Iterator[FileCache]:
    """A new cache that the tasks of the session use."""
    shutil.rmtree(cache_dir, ignore_errors=True)
    made = cache_in(cache_dir)
    environment = spark.sparkContext.environment
    environment["WINDROW_CACHE_DIR"] = made.folder.path
    yield made
    del environment["WINDROW_CACHE_DIR"]


def planned(table: Path, cached_on: str | None = "here") -> tuple[Plan, pa.Table]:
    plan, groups = plan_of(table, {"a": "bigint"}, partition={"p": "int"}, group_count=4)
    return plan, groups.append_column("cached_on", pa.array([cached_on] * len(groups), pa.string()))


def rows_of(spark: SparkSession, plan: Plan, groups: pa.Table) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in read_plan(spark, plan, groups).collect())


def test_the_second_read_takes_all_files_from_the_cache(
    spark: SparkSession, table: Path, cache: FileCache
) -> None:
    plan, groups = planned(table)

    first, second = rows_of(spark, plan, groups), rows_of(spark, plan, groups)

    assert first == sorted((a, i % 2) for i in range(FILES) for a in (i, i + FILES))
    assert second == first
    assert len(keys_in(cache)) == FILES
    counts = cache.counts()
    assert (counts["misses"], counts["hits"]) == (FILES, FILES)
    assert counts["hit_bytes"] == counts["miss_bytes"] == plan.summary.size_bytes
    # Reading only partition columns needs the same files.
    of_folders = plan.model_copy(update={"columns": plan.partition_columns})
    assert read_plan(spark, of_folders, groups).count() == 2 * FILES
    assert cache.counts()["misses"] == FILES


def test_a_table_with_a_rule_is_read_from_its_worker(
    spark: SparkSession, table: Path, cache: FileCache, tmp_path: Path
) -> None:
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    stopped = threading.Event()
    with running(settings) as url, windrow.connect(url) as client:
        agent = Agent(
            client,
            cache.folder.path,
            host="here",
            capacity_bytes=2**26,
            worker_id="w",
            ttl_seconds=30,
        )
        thread = threading.Thread(target=agent.run, args=(stopped,))
        thread.start()
        try:
            client.register_table("t", str(table))
            client.refresh("t")
            client.cache_table("t", "p = 1")
            _until(lambda: client.plan("t").info.summary.primary_placements == FILES // 2)
            first = client.read(spark, "t", cached_splits="by_worker")
            rows = sorted(map(tuple, first.collect()))
            _until(lambda: client.plan("t").info.summary.cached_files == FILES // 2)
            hits = cache.counts().get("hits", 0)

            second = client.read(spark, "t", cached_splits="by_worker")

            assert sorted(map(tuple, second.collect())) == rows
            assert cache.counts()["hits"] == hits + FILES // 2
            assert len(rows) == 2 * FILES
        finally:
            stopped.set()
            thread.join()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.1)


def test_files_of_another_host_bypass_the_cache(
    spark: SparkSession, table: Path, cache: FileCache
) -> None:
    plan, groups = planned(table, cached_on="elsewhere")

    assert len(rows_of(spark, plan, groups)) == 2 * FILES

    assert keys_in(cache) == set()
    assert cache.counts() == {"elsewhere": FILES}


def test_files_that_are_not_cacheable_bypass_the_cache(
    spark: SparkSession, table: Path, cache: FileCache
) -> None:
    plan, groups = planned(table, cached_on=None)

    assert len(rows_of(spark, plan, groups)) == 2 * FILES

    assert keys_in(cache) == set()
    assert cache.counts() == {}


def test_without_a_folder_tasks_bypass_the_cache(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    plan, groups = planned(table)
    environment = spark.sparkContext.environment
    assert "WINDROW_CACHE_DIR" not in os.environ | environment
    assert len(rows_of(spark, plan, groups)) == 2 * FILES

    environment["WINDROW_CACHE_DIR"] = str(tmp_path / "nowhere")
    try:
        assert len(rows_of(spark, plan, groups)) == 2 * FILES
    finally:
        del environment["WINDROW_CACHE_DIR"]
