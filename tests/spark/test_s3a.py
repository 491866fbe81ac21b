"""Tables on S3 where Spark has a file system of its own for it, as clusters do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.servers import embedded
from tests.support.servers.s3 import S3, s3_server
from tests.support.spark.s3a import s3a
from tests.support.tables import hive

pytestmark = pytest.mark.spark

BUCKET = "s3a-tables"


@pytest.fixture(scope="module")
def s3(spark: SparkSession) -> Iterator[S3]:
    with s3_server() as server, s3a(spark, server.environment):
        # The same as setting spark.executorEnv.* before the session starts.
        environment = spark.sparkContext.environment
        before = dict(environment)
        environment.update(server.environment)
        yield server
        environment.clear()
        environment.update(before)


@pytest.fixture(scope="module")
def client(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    state = tmp_path_factory.mktemp("s3a") / "state"
    with embedded.client(state, allowed_locations=(f"s3://{BUCKET}",)) as client:
        yield client


def test_rows_are_those_that_spark_reads_itself(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    folder = hive.write_events(tmp_path / "events", files_per_day=3)
    location = s3.upload(folder, BUCKET, "events")
    client.register_table("sales.events", location)
    client.refresh("sales.events")

    rows = client.read(spark, "sales.events")

    theirs = spark.read.parquet(location.replace("s3:", "s3a:")).select(*rows.columns)
    assert sorted(map(str, rows.collect())) == sorted(map(str, theirs.collect()))
