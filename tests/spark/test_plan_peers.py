"""The peers in the planner's benchmark plan all files, and real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.benchmarks import load_benchmark

pytestmark = pytest.mark.spark

MIB = 2**20


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    return load_benchmark("plan_peers")


def _inventory(sizes: Sequence[int], buckets: Sequence[int | None]) -> pa.Table:
    return pa.table(
        {
            "path": [f"ds={at % 3}/{at:04d}.parquet" for at in range(len(sizes))],
            "size_bytes": pa.array(sizes, pa.int64()),
            "bucket": pa.array(buckets, pa.int32()),
        }
    )


def test_every_file_is_parquet_with_the_size_and_bucket_in_the_inventory(
    peers: ModuleType, tmp_path: Path
) -> None:
    inventory = _inventory([1024, 5000, 70 * MIB], [0, None, 63])

    peers.write_files(inventory, tmp_path)

    for row in inventory.to_pylist():
        path = tmp_path / row["path"]
        assert path.stat().st_size == row["size_bytes"]
        assert pq.ParquetFile(path).read().to_pylist() == [{"id": 1, "bucket": row["bucket"]}]


def test_a_size_too_small_for_a_parquet_file_is_refused(peers: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a file of 1023 bytes: give at least 1,024"):
        peers.write_files(_inventory([5000, 1023], [0, 0]), tmp_path)


@pytest.mark.parametrize(
    ("buckets", "group_count"),
    [
        # A file of 1 MiB counts as the open cost of 4 MiB, so 16 fill a group of 64 MiB.
        ([None] * 100, 7),
        # Buckets of 34, 33 and 33 files.
        ([at % 3 for at in range(100)], 9),
        # 50 files in a bucket, and 50 without one.
        ([0, None] * 50, 8),
    ],
)
def test_pyiceberg_packs_each_bucket_up_to_the_target(
    peers: ModuleType, tmp_path: Path, buckets: Sequence[int | None], group_count: int
) -> None:
    inventory = _inventory([MIB] * 100, buckets)
    peers.write_files(inventory, tmp_path)

    plan = peers.pyiceberg_plan(inventory, tmp_path, runs=2)

    assert (plan.file_count, plan.size_bytes) == (100, 100 * MIB)
    assert plan.group_count == group_count
    assert 0 < plan.pack_s < plan.plan_s


def test_spark_packs_up_to_the_same_target(
    peers: ModuleType, spark: SparkSession, tmp_path: Path
) -> None:
    # Spark counts 4 MiB of open cost for each file, but not for the next one when it checks
    # whether that fits: 13 files of 1 MiB fill 64 MiB. The large file is cut in two.
    inventory = _inventory([MIB] * 100 + [128 * MIB], [None] * 101)
    peers.write_files(inventory, tmp_path)
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")

    plan = peers.spark_plan(spark, inventory, tmp_path, runs=2)

    assert (plan.file_count, plan.size_bytes) == (101, 228 * MIB)
    assert plan.group_count == 8 + 2
    assert 0 < plan.pack_s < plan.plan_s
    assert spark.conf.get("spark.sql.files.maxPartitionBytes") == before


def test_a_peer_that_plans_other_files_is_noticed(
    peers: ModuleType, spark: SparkSession, tmp_path: Path
) -> None:
    peers.write_files(_inventory([2000, 3000], [0, 1]), tmp_path)
    other = _inventory([2000, 3001], [0, 1])

    with pytest.raises(peers.OtherFilesError, match="the inventory has 2 files, 5,001 bytes"):
        peers.pyiceberg_plan(other, tmp_path, runs=1)
    with pytest.raises(peers.OtherFilesError, match="the inventory has 2 files, 5,001 bytes"):
        peers.spark_plan(spark, other, tmp_path, runs=1)
