"""Spark reads a table on S3 through its plan, and notices files that have changed since."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import windrow
from tests.support.faults.object_proxy import object_proxy
from tests.support.servers import embedded
from tests.support.servers.s3 import S3, s3_server
from tests.support.tables import hive
from windrow.spark import recent_scans

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

LARGE_ROWS = 1_500_000


@pytest.fixture(scope="module")
def s3(spark: SparkSession) -> Iterator[S3]:
    with s3_server() as server:
        # The same as setting spark.executorEnv.* before the session starts.
        environment = spark.sparkContext.environment
        before = dict(environment)
        environment.update(server.environment)
        yield server
        environment.clear()
        environment.update(before)


@pytest.fixture
def client(s3: S3, tmp_path: Path) -> Iterator[windrow.Client]:
    with embedded.client(tmp_path / "state", allowed_locations=("s3://spark-tables",)) as client:
        yield client


def test_all_rows_are_read_unchanged(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    folder = hive.write_events(tmp_path / "events", files_per_day=40)
    client.register_table("sales.events", s3.upload(folder, "spark-tables", "events"))
    client.refresh("sales.events")
    s3.requests.clear()

    rows = client.read(spark, "sales.events", filter="ds <> '2026-11-02'").collect()

    read = [path for method, path in s3.requests if method == "GET"]
    assert sorted((row["id"], row["name"], str(row["ds"])) for row in rows) == [
        (id_, f"name-{id_}", f"2026-11-0{1 + id_ // 400}")
        for id_ in [*range(400), *range(800, 1200)]
    ]
    assert len(read) == len(set(read)) == 80
    assert client.read(spark, "sales.events", columns=["ds"]).count() == 1200


# tests/faults/test_object_stores.py slows reads down every day.
@pytest.mark.nightly
def test_a_store_that_asks_to_slow_down_fails_no_task_and_the_scan_reports_retries(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    folder = hive.write_events(tmp_path / "events", files_per_day=40)
    client.register_table("sales.events", s3.upload(folder, "spark-tables", "slow"))
    client.refresh("sales.events")
    environment = spark.sparkContext.environment
    before = dict(environment)
    with object_proxy(s3.environment["AWS_ENDPOINT_URL"]) as proxy:
        environment["AWS_ENDPOINT_URL"] = proxy.url
        proxy.limit(100, burst=10)
        rows = client.read(spark, "sales.events").collect()
        told = proxy.counts()
        environment.update(before)

    assert sorted(row["id"] for row in rows) == list(range(1200))
    read = recent_scans()[0].read
    assert read.requests == told.for_objects().total()
    assert read.retries == told.statuses[503] > 0
    assert read.requests == 120 + read.retries
    assert read.waited_s > 0
    assert read.prefetched_bytes > 0


def test_parts_of_a_large_file_are_read_separately(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    (tmp_path / "large").mkdir()
    table = pa.table({"id": pa.array(range(LARGE_ROWS), pa.int64())})
    pq.write_table(
        table,
        tmp_path / "large/f",
        row_group_size=100_000,
        compression="none",
        use_dictionary=False,
    )
    client.register_table("sales.large", s3.upload(tmp_path / "large", "spark-tables", "large"))
    client.refresh("sales.large")

    rows = client.read(spark, "sales.large", max_split_size="3MB")

    assert rows.rdd.getNumPartitions() > 1
    total = rows.selectExpr("sum(id)", "count(*)").first()
    assert total is not None
    assert tuple(total) == (LARGE_ROWS * (LARGE_ROWS - 1) // 2, LARGE_ROWS)


# tests/contract/test_excerpts.py and tests/property/test_excerpts.py read ranges every day.
@pytest.mark.nightly
def test_columns_of_wide_files_are_read_by_their_ranges(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    (tmp_path / "wide").mkdir()
    numbers = {f"n{at}": [at * row for row in range(3000)] for at in range(40)}
    table = pa.table({**numbers, "l": [[row, None] for row in range(3000)]})
    for file in ("a", "b"):
        pq.write_table(
            table,
            tmp_path / "wide" / file,
            row_group_size=1000,
            use_dictionary=False,
            compression="none",
        )
    client.register_table("sales.wide", s3.upload(tmp_path / "wide", "spark-tables", "wide"))
    client.refresh("sales.wide")
    frame = client.read(spark, "sales.wide", filter="n1 >= 2990", max_split_size="600kB")
    s3.requests.clear()
    s3.asked.clear()

    rows = frame.select("l", "n30").collect()

    assert sorted(map(tuple, rows)) == sorted(
        ([row, None], 30 * row) for row in range(2990, 3000) for _ in range(2)
    )
    # Two files of three splits, each a row group, of which two ranges are read: n1, and n30 to l.
    assert len(s3.asked) == 2 * 3 * 2
    assert all(range_ and etag for range_, etag in s3.asked)
    assert frame.count() == 20


def test_a_file_that_was_copied_over_itself_is_still_the_same(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    folder = hive.write_events(tmp_path / "events", files_per_day=1)
    client.register_table("sales.events", s3.upload(folder, "spark-tables", "copied"))
    client.refresh("sales.events")
    frame = client.read(spark, "sales.events")
    # S3 reports times in whole seconds.
    time.sleep(1.1)
    for path in folder.rglob("*.parquet"):
        s3.client.upload_file(str(path), "spark-tables", f"copied/{path.relative_to(folder)}")

    assert sorted(row["id"] for row in frame.collect()) == list(range(30))


@pytest.mark.parametrize("change", ["other size", "same size in the same second", "gone"])
def test_a_file_that_changed_since_the_plan_fails_clearly(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path, change: str
) -> None:
    folder = hive.write_events(tmp_path / "events", files_per_day=1)
    prefix = change.replace(" ", "-")
    client.register_table("sales.events", s3.upload(folder, "spark-tables", prefix))
    client.refresh("sales.events")
    frame = client.read(spark, "sales.events")
    key = f"{prefix}/ds=2026-11-02/part-00000.parquet"
    before = s3.client.head_object(Bucket="spark-tables", Key=key)
    if change == "gone":
        s3.client.delete_object(Bucket="spark-tables", Key=key)
    else:
        ids = range(99) if change == "other size" else range(20, 30)
        path = str(hive.write_file(tmp_path / "new", ids))
        s3.client.upload_file(path, "spark-tables", key)
    if change == "same size in the same second":
        moto_object("spark-tables", key).last_modified = before["LastModified"]
        after = s3.client.head_object(Bucket="spark-tables", Key=key)
        for same in ("ContentLength", "LastModified"):
            assert after[same] == before[same]

    with pytest.raises(PySparkException) as caught:
        frame.collect()

    assert f"s3://spark-tables/{key}" in str(caught.value)
    assert "refresh the table and plan again" in str(caught.value)


def moto_object(bucket: str, key: str) -> Any:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket].keys[key]
