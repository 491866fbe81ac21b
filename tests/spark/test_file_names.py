"""The files of rows are those that Spark's own reader names, for every reader and way to a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.programs import delta_writer
from tests.support.laws import is_nightly
from tests.support.queries import file_names
from tests.support.queries.file_names import sorted_rows
from tests.support.servers import embedded
from windrow.spark import recent_scans
from windrow_spark.failures import plain_errors
from windrow_spark.relation.division import Reader
from windrow_tables.errors import UnfitReadError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture(scope="module")
def location(client: windrow.Client, folder: Path) -> Path:
    location = file_names.write_files(folder / "files")
    registered(client, location, "s.files")
    return location


def registered(client: windrow.Client, location: Path, name: str, **definition: Any) -> str:
    client.register_table(name, str(location), replace=True, **definition)
    client.refresh(name)
    return name


def named(rows: DataFrame) -> DataFrame:
    return rows.select(F.input_file_name().alias("f"), "id")


def refusal(rows: DataFrame) -> str:
    with pytest.raises(UnfitReadError) as refused, plain_errors():
        rows.collect()
    return str(refused.value)


def test_every_query_gives_the_names_that_sparks_own_reader_gives(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    assert file_names.differences(spark, client, folder / "here", every=is_nightly()) == {}


def test_every_supported_spark_gives_the_same_names(
    on_older_sparks: list[dict[str, Any]],
) -> None:
    for older in on_older_sparks:
        assert older["file_names"]["differences"] == {}
        check_of_groups(older["file_names"]["of_groups"])


def check_of_groups(refused: dict[str, str]) -> None:
    assert len(refused) == 3 * len(file_names.OF_GROUPS)
    for query, text in refused.items():
        assert "is asked for above rows of client.read_plan or client.read_buckets" in text, query


def test_every_way_to_a_table_gives_the_same_names(
    spark: SparkSession, client: windrow.Client, location: Path, folder: Path
) -> None:
    expected = sorted_rows(named(spark.read.parquet(str(location))))
    client.create_view(spark, "s.files", "viewed")
    windrow.register(spark, client)
    loaded = spark.read.format("windrow").load("s.files")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW used USING windrow OPTIONS (table 's.files')")
    read = client.read(spark, "s.files", reader="grouped")
    for rows in (spark.table("viewed"), loaded, spark.table("used"), read):
        assert sorted_rows(named(rows)) == expected
    named(read).write.parquet(str(folder / "written"))
    assert sorted_rows(spark.read.parquet(str(folder / "written"))) == expected
    kept = named(read).cache()
    assert sorted_rows(kept) == expected
    kept.unpersist()


def test_functions_of_users_see_the_same_names(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    last = F.udf(lambda path: path.rpartition("/")[2])

    def seen(rows: DataFrame) -> list[str]:
        return sorted_rows(rows.select("id", last(F.input_file_name())))

    assert seen(client.read(spark, "s.files")) == seen(spark.read.parquet(str(location)))


@pytest.mark.parametrize(("reader", "native_files"), [("grouped", 0), ("native", 8)])
def test_both_readers_name_the_files_that_they_read(
    spark: SparkSession, client: windrow.Client, location: Path, reader: Reader, native_files: int
) -> None:
    rows = client.read(spark, "s.files", reader=reader)
    # Only one side of the join asks for names.
    joined = named(rows).join(rows.select("id", "k"), "id")

    assert {row.f for row in joined.collect()} == {
        row.f for row in named(spark.read.parquet(str(location))).collect()
    }
    assert [scan.native_files for scan in recent_scans("s.files")[:2]] == [native_files] * 2


def test_blocks_are_the_parts_of_files_that_groups_have(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    path = folder / "large" / "part-0.parquet"
    path.parent.mkdir()
    ids = pa.table({"id": pa.array(range(40_000), pa.int64())})
    pq.write_table(ids, path, row_group_size=5_000, compression="none", use_dictionary=False)
    registered(client, path.parent, "s.large")
    rows = client.read(spark, "s.large", reader="grouped", max_split_size=100_000)
    block = [F.expr(f"input_file_block_{end}()").alias(end) for end in ("start", "length")]

    blocks = sorted(rows.groupBy(*block).count().collect())

    assert len(blocks) > 2
    ends = [one.start + one.length for one in blocks]
    assert [0, *ends] == [*(one.start for one in blocks), path.stat().st_size]
    assert sum(one["count"] for one in blocks) == 40_000


def test_groups_that_are_read_without_a_relation_refuse(
    spark: SparkSession, client: windrow.Client, location: Path, folder: Path
) -> None:
    registered(client, location, "names.files")
    spark.read.parquet(str(location)).createOrReplaceTempView("theirs")

    check_of_groups(file_names.of_groups(spark, client, folder))


def test_a_name_above_a_join_of_two_tables_is_refused_as_by_spark(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    ours, theirs = client.read(spark, "s.files"), spark.read.parquet(str(location))
    for left, right in ((ours, ours), (ours, theirs), (theirs, theirs)):
        # Spark's own check refuses the last pair, when the query is analysed.
        with pytest.raises(PySparkException, match="input_file_name"):
            left.join(right, "id").select(F.input_file_name()).collect()


def test_tables_with_a_log_refuse(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    delta_writer.write(folder / "delta", 2)
    registered(client, folder / "delta", "s.delta", format="delta")
    rows = client.read(spark, "s.delta", reader="native")
    assert "files of Delta and Iceberg tables have no such name" in refusal(named(rows))


def test_tables_that_are_read_in_groups_only_name_files_but_number_no_rows(
    spark: SparkSession, client: windrow.Client, location: Path, folder: Path
) -> None:
    def numbered(rows: DataFrame) -> DataFrame:
        return rows.select("id", "_metadata.row_index")

    own = spark.read.parquet(str(location))
    registered(client, location, "s.sorted", sort_columns=[{"name": "id"}])
    in_order = client.read(spark, "s.sorted")
    assert sorted_rows(named(in_order)) == sorted_rows(named(own))
    assert "register the table without sort_columns" in refusal(numbered(in_order))
    filtered = client.read(spark, "s.files", filter="id = 3")
    assert sorted_rows(named(filtered)) == sorted_rows(named(own.where("id = 3")))
    assert "use .where" in refusal(numbered(filtered))
    unlike = folder / "unlike"
    unlike.mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), unlike / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int32())}), unlike / "b.parquet")
    registered(client, unlike, "s.unlike")
    rows = client.read(spark, "s.unlike")
    assert [row.f[-9:] for row in named(rows).orderBy("id").collect()] == ["a.parquet", "b.parquet"]
    assert "b.parquet' holds a requested column" in refusal(numbered(rows))
    assert rows.count() == 2
