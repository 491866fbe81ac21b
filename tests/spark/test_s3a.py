"""Tables on S3 where Spark has a file system of its own for it, as clusters do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.servers import embedded
from tests.support.servers.s3 import S3, s3_server
from tests.support.spark.s3a import s3a
from windrow.spark import recent_scans
from windrow_jobs.compact import compact
from windrow_jobs.errors import NoConsentError
from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_spark.writing import staging
from windrow_spark.writing.errors import StagingFailedError
from windrow_tables.commits.errors import UnfitLocationError

# By day, test_hdfs.py has Spark's own reader read from a store, test_s3.py reads groups from S3, and
# tests/faults/test_stored_commits.py commits to it.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.nightly,
]

BUCKET = "s3a-tables"
ROWS = 400


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


def write_mixed(folder: Path) -> Path:
    """Write files of which Spark's own reader may read every other one."""
    for number in range(4):
        part = folder / f"day={number % 2}" / f"part {number}.parquet"
        part.parent.mkdir(parents=True, exist_ok=True)
        ids = np.arange(ROWS) + number * ROWS
        type_ = pa.int64() if number < 2 else pa.int32()
        texts = [f"ü{id_}" for id_ in ids]
        pq.write_table(pa.table({"id": pa.array(ids, type_), "name": texts}), part)
    return folder


def as_texts(rows: DataFrame) -> list[str]:
    return sorted(map(str, rows.collect()))


def test_some_files_are_read_by_sparks_reader_and_others_in_groups(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    location = s3.upload(write_mixed(tmp_path / "mixed"), BUCKET, "a table/mixed")
    client.register_table("sales.mixed", location)
    client.refresh("sales.mixed")

    rows = client.read(spark, "sales.mixed", reader="native")

    # Spark 3.5 itself does not read the narrower half of these files as `bigint`.
    expected = [(id_, f"ü{id_}", id_ // ROWS % 2) for id_ in range(4 * ROWS)]
    assert sorted(map(tuple, rows.select("id", "name", "day").collect())) == expected
    assert recent_scans()[0].native_files == 2
    theirs = spark.read.schema("id bigint, day int").parquet(location.replace("s3:", "s3a:"))
    names = rows.select("_metadata.file_path").distinct()
    assert as_texts(names) == as_texts(theirs.select("_metadata.file_path").distinct())


def test_a_file_that_was_replaced_by_one_of_its_size_fails_the_query_by_its_name(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path
) -> None:
    part = tmp_path / "replaced" / "part 1.parquet"
    part.parent.mkdir()
    pq.write_table(pa.table({"name": ["old"]}), part, compression="none")
    client.register_table("sales.replaced", s3.upload(part.parent, BUCKET, "replaced"))
    client.refresh("sales.replaced")
    rows = client.read(spark, "sales.replaced", reader="native")
    assert [row["name"] for row in rows.collect()] == ["old"]
    content = part.read_bytes().replace(b"old", b"new")
    s3.client.put_object(Bucket=BUCKET, Key=f"replaced/{part.name}", Body=content)

    changed = r"part 1\.parquet' has changed since the plan was made: ETag"
    with pytest.raises(TaskFailedError, match=changed), plain_errors():
        rows.collect()

    s3.client.delete_object(Bucket=BUCKET, Key=f"replaced/{part.name}")
    with pytest.raises(TaskFailedError, match=r"part 1\.parquet' has vanished"), plain_errors():
        rows.collect()


@pytest.mark.parametrize("format", ["orc", "csv"])
def test_other_formats_are_read_by_sparks_reader(
    spark: SparkSession, client: windrow.Client, s3: S3, tmp_path: Path, format: str
) -> None:
    folder, name = tmp_path / format, f"sales.{format}"
    spark.range(ROWS).write.format(format).save(folder.as_uri())
    client.register_table(
        name, s3.upload(folder, BUCKET, format), format=format, columns={"id": "bigint"}
    )
    client.refresh(name)

    rows = client.read(spark, name, reader="native")

    assert [row["id"] for row in rows.sort("id").collect()] == list(range(ROWS))
    assert recent_scans()[0].native_files > 0


def test_rows_are_written_and_compacted_and_nothing_else_is_left(
    spark: SparkSession, client: windrow.Client, s3: S3
) -> None:
    s3.client.create_bucket(Bucket=BUCKET)
    # As on an executor whose first task writes.
    jvm: Any = spark.sparkContext._jvm
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    location = f"s3://{BUCKET}/written ü%"
    client.register_table("sales.written", location, partition_columns={"day": "int"})
    rows = spark.range(60).selectExpr("id", "concat('n', id) AS name", "CAST(id % 3 AS INT) AS day")

    first = client.write(rows, "sales.written", target_rows=5)
    client.write(rows.where("day = 1"), "sales.written", "overwrite_partitions", target_rows=5)
    client.read(spark, "sales.written").createOrReplaceTempView("written")
    spark.sql("INSERT INTO written VALUES (100, 'n100', 2), (101, 'n101', 3)")

    with pytest.raises(NoConsentError, match="--readers-may-see-both"):
        compact(lambda: spark, client, "sales.written")
    done = compact(lambda: spark, client, "sales.written", readers_may_see_both=True)

    assert (first.rows, first.files) == (60, first.planned_files)
    # That of one row is alone in its partition.
    assert (done.files_after, done.left) == (3, {})
    expected = sorted([*map(tuple, rows.collect()), (100, "n100", 2), (101, "n101", 3)])
    assert sorted(map(tuple, client.read(spark, "sales.written").collect())) == expected
    theirs = spark.read.parquet(location.replace("s3:", "s3a:"))
    assert sorted(map(tuple, theirs.collect())) == expected
    assert not client.refresh("sales.written", full=True).changed
    objects = s3.client.list_objects_v2(Bucket=BUCKET, Prefix="written ü%/")["Contents"]
    assert len(objects) == 4
    assert not s3.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads")


def test_buckets_are_written_as_spark_writes_them(
    spark: SparkSession, client: windrow.Client, s3: S3
) -> None:
    s3.client.create_bucket(Bucket=BUCKET)
    client.register_table(
        "sales.buckets",
        f"s3://{BUCKET}/buckets",
        partition_columns={"day": "int"},
        bucket_spec={"columns": ["id"], "count": 4},
    )
    rows = spark.range(60).selectExpr("id", "CAST(id % 2 AS INT) AS day")

    report = client.write(rows, "sales.buckets", target_rows=1_000)

    names = [
        one["Key"].rpartition("/")[2]
        for one in s3.client.list_objects_v2(Bucket=BUCKET, Prefix="buckets/")["Contents"]
    ]
    assert report.files == len(names) == 8
    assert {name.partition("_")[2][:5] for name in names} == {f"0000{n}" for n in range(4)}
    assert client.read(spark, "sales.buckets").count() == 60


def test_a_write_that_fails_leaves_nothing(
    spark: SparkSession, client: windrow.Client, s3: S3
) -> None:
    s3.client.create_bucket(Bucket=BUCKET)
    client.register_table("sales.failed", f"s3://{BUCKET}/failed", partition_columns={"day": "int"})
    rows = spark.range(9).selectExpr("if(id < 8, id, raise_error('odd')) AS id", "1 AS day")

    with pytest.raises(StagingFailedError, match="odd"):
        client.write(rows, "sales.failed", target_rows=5)

    assert "Contents" not in s3.client.list_objects_v2(Bucket=BUCKET, Prefix="failed/")


def test_a_session_without_a_file_system_for_s3_is_told_which_package_is_missing(
    spark: SparkSession, client: windrow.Client, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.client.create_bucket(Bucket=BUCKET)
    client.register_table(
        "sales.without", f"s3://{BUCKET}/without", partition_columns={"day": "int"}
    )
    monkeypatch.setattr(staging, "hadoop_location", lambda *_: None)

    with pytest.raises(UnfitLocationError, match="hadoop-aws"):
        client.write(spark.range(3).selectExpr("id", "1 AS day"), "sales.without", target_rows=5)

    assert "Contents" not in s3.client.list_objects_v2(Bucket=BUCKET, Prefix="without/")
