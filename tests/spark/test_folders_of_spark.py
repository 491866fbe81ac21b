"""The inventory of a folder holds the files that Spark reads, or the folder is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import input_file_name

import windrow
from tests.support.servers import embedded
from tests.unit.inventory.files import take_inline, write
from windrow_calls.errors import ProblemError
from windrow_core.files.errors import InventoryError
from windrow_jobs.errors import UnfitFilesError
from windrow_jobs.inventory import publish_inventory

pytestmark = pytest.mark.usefixtures("interpreted")

# Files in each folder; a trailing "!" marks a file of 0 bytes.
SAME = {
    "an empty file first": ["a!", "b"],
    "an empty file last": ["a", "b!"],
    "an empty file in a folder of its own": ["ds=1/a", "ds=x/b!"],
    "an empty file above": ["ds=1/a", "b!"],
    "names that Spark hides, and names like them": [
        "a",
        "_x=1",
        ".y=1",
        "c._COPYING_",
        "_metadata.1",
    ],
    "folders that Spark hides": ["ds=1/a", "ds=1/_temporary/b", "ds=1/.z/c", ".s/ds=1/d"],
    "an underscore before a key": ["_ds=1/a", "_ds=2/b"],
}
REFUSED = {
    "a folder that Spark takes for a summary": ["ds=1/a", "ds=1/_metadata_old/b"],
    "an empty file of another key": ["ds=1/a", "other=x/b!"],
    "a folder in a folder": ["ds=2/sub/a"],
    "files beside folders": ["a", "sub/b"],
}


def make(location: Path, paths: list[str]) -> Path:
    for path in paths:
        if path.endswith("!"):
            (location / path[:-1]).parent.mkdir(parents=True, exist_ok=True)
            (location / path[:-1]).touch()
        else:
            write(location, path)
    return location


def read_by_spark(spark: SparkSession, location: Path) -> list[str]:
    """Return the paths of the files that Spark reads rows from."""
    files = spark.read.parquet(str(location)).select(input_file_name()).distinct().collect()
    return sorted(unquote(row[0]).partition(f"{location}/")[2] for row in files)


def test_files_are_those_that_spark_reads_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    for name, paths in SAME.items():
        location = make(tmp_path / name, paths)
        inventory = take_inline(str(location))

        assert inventory.files["path"].to_pylist() == read_by_spark(spark, location), name
        folders = [str(field.type) for field in inventory.partition_schema]
        spark_types = [type_ for column, type_ in spark.read.parquet(str(location)).dtypes[1:]]
        assert [type_.replace("int32", "int") for type_ in folders] == spark_types, name
    for name, paths in REFUSED.items():
        with pytest.raises(InventoryError, match=paths[-1].rstrip("!").rpartition("/")[0]):
            take_inline(str(make(tmp_path / name, paths)))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[windrow.Client]:
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        yield client


def stream(spark: SparkSession, tmp_path: Path, batches: range) -> Path:
    """Have a streaming query write a batch for each number; return its folder."""
    sink = tmp_path / "si nk"
    for number in batches:
        write(tmp_path / "source", f"{number}.parquet", {"x": [number * 10, number * 10 + 1]})
        query = (
            spark.readStream.schema("x long")
            .parquet(str(tmp_path / "source"))
            .selectExpr("x", "concat('k ', x % 2) AS k")
            .coalesce(1)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .partitionBy("k")
            .trigger(availableNow=True)
            .start(str(sink))
        )
        query.awaitTermination()
    return sink


def test_only_files_named_in_the_log_of_a_streaming_sink_are_read(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "2")
    try:
        sink = stream(spark, tmp_path, range(3))
        client.register_table("by_coordinator", str(sink))
        client.register_table("by_job", str(sink))
        for count in (3, 4):
            if count == 4:
                stream(spark, tmp_path, range(3, 4))
            else:
                write(sink, "k=k 0/uncommitted.parquet", {"x": [999]})
            expected = sorted(map(tuple, spark.read.parquet(str(sink)).collect()))

            status = client.refresh("by_coordinator")
            published = publish_inventory(spark, client, "by_job")

            assert len(expected) == 2 * count
            assert status.progress.files_uncommitted == published.uncommitted_count == 1
            for name in ("by_coordinator", "by_job"):
                assert sorted(map(tuple, client.read(spark, name).collect())) == expected
        assert list((sink / "_spark_metadata").glob("*.compact"))
    finally:
        spark.conf.unset("spark.sql.streaming.fileSink.log.compactInterval")


def test_the_job_refuses_and_skips_the_same_files_as_the_coordinator(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    make(tmp_path / "delta", ["ds=1/a", "_delta_log/0!"])
    make(tmp_path / "empty", ["ds=1/a", "ds=x/b!", "c!"])
    for name, below in (("t", ""), ("part", "/ds=1")):
        client.register_table(name, f"{tmp_path}/delta{below}")
        with pytest.raises(ProblemError) as refused:
            client.refresh(name)
        with pytest.raises(UnfitFilesError, match="a Delta table") as unfit:
            publish_inventory(spark, client, name)
        assert "a Delta table" in str(refused.value)
        assert str(unfit.value).endswith(str(refused.value.problem.detail)[-60:])
    client.register_table("by_coordinator", str(tmp_path / "empty"))
    client.register_table("by_job", str(tmp_path / "empty"))

    status = client.refresh("by_coordinator")
    published = publish_inventory(spark, client, "by_job")

    assert status.snapshot is not None
    assert published.snapshot.partition_columns == status.snapshot.partition_columns
    assert status.snapshot.partition_columns[0].type == "string"
    assert (published.snapshot.file_count, status.snapshot.file_count) == (1, 1)
    assert (published.empty_count, status.progress.files_empty) == (2, 2)
    assert client.refresh("by_job").changed is False
