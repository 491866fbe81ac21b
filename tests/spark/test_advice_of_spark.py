"""Bad ways of writing with Spark are recognised from the files alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.servers.coordinators import running
from windrow.client import Client
from windrow_core.models import TableAdvice
from windrow_service.settings import Settings

pytestmark = pytest.mark.usefixtures("interpreted")

KIB = 2**10


@pytest.fixture(scope="module")
def tables_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def client(tables_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("state"), allowed_locations=(str(tables_root),)
    )
    with running(settings) as url, windrow.connect(url) as client:
        yield client


def advice(client: Client, location: Path, target: int) -> TableAdvice:
    name = f"bad.{location.name}"
    client.register_table(name, str(location))
    client.refresh(name)
    return client.advise(name, target_file_size=target)


def test_repartition_to_a_number_before_partition_by_is_an_explosion(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "exploded"
    rows = spark.range(2_000).selectExpr("id", "id % 8 AS day")
    rows.repartition(10).write.partitionBy("day").parquet(str(location))

    found = advice(client, location, 128 * KIB)

    (origin,) = found.writes
    assert (origin.tasks, origin.partitions, origin.files, origin.would_be) == (10, 8, 80, 8)
    (entry,) = found.advice
    assert entry.kind == "explosion"
    assert entry.problem.startswith("10 tasks x 8 partitions made 80 files of ")
    assert entry.remedy.startswith("`client.write` would have made 8 files")


def test_appends_of_one_small_file_each_are_small_appends(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "appended"
    for _ in range(6):
        rows = spark.range(100).selectExpr("id", "id % 2 AS day")
        rows.coalesce(1).write.partitionBy("day").mode("append").parquet(str(location))

    found = advice(client, location, 128 * KIB)

    assert [one.tasks for one in found.writes] == [1] * 6
    assert {one.trouble for one in found.writes} == {"small_appends"}
    (entry,) = found.advice
    assert (entry.kind, entry.writes, entry.files, entry.would_be) == ("small_appends", 6, 12, 2)


def test_a_hot_key_behind_repartition_by_columns_is_one_file_per_key(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "skewed"
    rows = spark.range(60_000).selectExpr(
        "id", "xxhash64(id) AS noise", "if(id < 50000, 0, id % 8) AS day"
    )
    rows.repartition(5, "day").write.partitionBy("day").parquet(str(location))

    found = advice(client, location, 128 * KIB)

    (origin,) = found.writes
    assert origin.partitions == origin.files == 8
    assert origin.largest_file_bytes > 3 * 128 * KIB
    (entry,) = found.advice
    assert (entry.kind, entry.files) == ("one_file_per_key", 8)
    assert entry.would_be == origin.would_be > 10


def test_a_shuffle_of_too_many_partitions_is_many_tasks(
    spark: SparkSession, client: Client, tables_root: Path
) -> None:
    location = tables_root / "shuffled"
    spark.range(1_000).repartition(20).write.parquet(str(location))

    found = advice(client, location, 128 * KIB)

    (entry,) = found.advice
    assert (entry.kind, entry.files, entry.would_be) == ("many_tasks", 20, 1)
    assert entry.problem.startswith("20 tasks made 20 files of ")
    assert "`df.coalesce(1)`" in entry.remedy
