"""`input_file_name()` is Spark's own for every reader and way to a table, or refused by name."""

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
from tests.support.queries.file_names import READERS, sorted_rows
from tests.support.servers import embedded
from windrow_spark.errors import UnfitReadError
from windrow_spark.failures import plain_errors

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

BLOCKS = ("input_file_block_start", "input_file_block_length")


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


def test_every_supported_spark_gives_the_same_names_and_refuses_blocks(
    on_older_sparks: list[dict[str, Any]],
) -> None:
    for older in on_older_sparks:
        assert older["file_names"]["differences"] == {}
        for function in BLOCKS:
            assert f"{function}() cannot" in older["file_names"]["refusals"][function]
        assert "another session" in older["file_names"]["refusals"]["another session"]
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


def test_queries_that_ask_for_no_file_are_read_as_before(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    rows = client.read(spark, "s.files", reader="grouped")
    sorted_rows(named(rows))
    assert "PlannedFiles" not in str(rows._jdf.queryExecution().executedPlan())
    # Only the side of a join that asks is read in another way.
    joined = named(rows).join(rows, "id")
    plan = str(joined._jdf.queryExecution().executedPlan())
    assert plan.count("Location: PlannedFiles") == 1
    assert "Scan windrow s.files" in plan


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("function", BLOCKS)
def test_blocks_are_refused_by_name(
    spark: SparkSession, client: windrow.Client, location: Path, function: str, reader: Any
) -> None:
    rows = client.read(spark, "s.files", reader=reader)
    block = F.expr(f"{function}()")
    for query in (
        rows.select(block, F.input_file_name()),
        rows.where(block >= 0),
        rows.groupBy(block).count(),
    ):
        assert f"{function}() cannot be answered for table 's.files'" in refusal(query)


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


def test_another_session_refuses_a_global_view_rather_than_give_no_name(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    client.read(spark, "s.files").createOrReplaceGlobalTempView("named")
    session = spark.newSession()
    other = session.table("global_temp.named")
    below = "FROM global_temp.named WHERE input_file_name() != ''"
    for rows in (
        named(other),
        other.where("input_file_name() != ''"),
        session.sql(f"SELECT * FROM range(9) WHERE id IN (SELECT id {below})"),
        session.sql(f"SELECT (SELECT count(*) {below})"),
    ):
        with pytest.raises(PySparkException, match="another session has read the table"):
            rows.collect()
    assert len(other.collect()) == 16
    # Names of other tables in the same query are Spark's own matter.
    theirs = named(session.read.parquet(str(location)))
    assert "file:///" in str(theirs.join(other, "id").first())
    spark.catalog.dropGlobalTempView("named")


def test_tables_with_a_log_refuse(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    delta_writer.write(folder / "delta", 2)
    registered(client, folder / "delta", "s.delta", format="delta")
    rows = client.read(spark, "s.delta", reader="native")
    assert "files of Delta and Iceberg tables have no such name" in refusal(named(rows))


def test_tables_that_are_read_in_groups_only_refuse_and_name_the_remedy(
    spark: SparkSession, client: windrow.Client, location: Path, folder: Path
) -> None:
    columns = [{"name": "id"}]
    registered(client, location, "s.sorted", sort_columns=columns)
    assert "register the table without sort_columns" in refusal(
        named(client.read(spark, "s.sorted"))
    )
    filtered = client.read(spark, "s.files", filter="id = 3")
    assert "use .where" in refusal(named(filtered))
    unlike = folder / "unlike"
    unlike.mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), unlike / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int32())}), unlike / "b.parquet")
    registered(client, unlike, "s.unlike")
    rows = client.read(spark, "s.unlike")
    assert ".parquet' holds a requested column" in refusal(named(rows))
    # Without the function, all rows are read.
    assert rows.count() == 2
