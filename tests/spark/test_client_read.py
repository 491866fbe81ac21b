"""`client.read` beyond reading groups: limits, counting, and tables that it must refuse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.servers import embedded
from tests.support.tables import hive
from windrow.spark import session_options
from windrow_calls.errors import InvalidArgumentError
from windrow_spark.errors import CaseSensitiveNamesError, TaskFailedError
from windrow_spark.failures import plain_errors
from windrow_tables.errors import UnsupportedDeletesError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[windrow.Client]:
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        yield client


def published(location: Path, **more: object) -> pa.Table:
    paths = hive.data_files(location)
    stats = [(location / path).stat() for path in paths]
    columns = {
        "path": paths,
        "size_bytes": [stat.st_size for stat in stats],
        "mtime_ns": [stat.st_mtime_ns for stat in stats],
        "row_count": [pq.read_metadata(location / path).num_rows for path in paths],
    }
    return pa.table({**columns, **more})


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (11, 11), (60, 60), (1_000, 60)])
def test_a_limited_read_returns_all_rows_up_to_the_limit(
    spark: SparkSession, client: windrow.Client, tmp_path: Path, limit: int, expected: int
) -> None:
    client.register_table("sales.events", str(hive.write_events(tmp_path / "events")))
    client.refresh("sales.events")

    rows = client.read(spark, "sales.events", limit=limit).collect()

    assert len({row["id"] for row in rows}) == len(rows) == expected


def test_options_set_in_sql_apply_to_reads_of_that_session_and_a_read_may_override_them(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    client.register_table(
        "sales.events",
        str(hive.write_events(tmp_path / "events")),
        plan_options={"strategy": "spark", "open_file_cost": 0, "parallelism": 1},
    )
    client.refresh("sales.events")
    session = spark.newSession()
    session.sql("SET spark.windrow.max_split_size=1B")
    session.sql("SET spark.windrow.rack_split_reduction=0.5")

    alone = client.read(session, "sales.events", reader="grouped")
    together = client.read(
        session, "sales.events", reader="grouped", max_split_size="1MB", parallelism=1
    )

    assert session_options(session) == {
        "max_split_size": 1,
        "rack_split_reduction": 0.5,
        "parallelism": spark.sparkContext.defaultParallelism,
    }
    assert session_options(spark).keys() == {"parallelism"}
    assert (alone.rdd.getNumPartitions(), together.rdd.getNumPartitions()) == (6, 1)
    assert alone.count() == together.count() == 60
    # Options are read again for each query.
    session.sql("RESET spark.windrow.max_split_size")
    assert alone.where("id >= 0").rdd.getNumPartitions() < 6


def test_a_session_setting_that_is_not_an_option_or_has_an_invalid_value_is_named(
    spark: SparkSession,
) -> None:
    session = spark.newSession()
    session.sql("SET spark.windrow.max_splitsize=64MB")

    with pytest.raises(InvalidArgumentError) as unknown:
        session_options(session)
    session.sql("RESET spark.windrow.max_splitsize")
    session.sql("SET spark.windrow.strategy=balansed")
    with pytest.raises(InvalidArgumentError) as wrong:
        session_options(session)

    assert str(unknown.value) == (
        "there is no parameter 'spark.windrow.max_splitsize': "
        "did you mean 'spark.windrow.max_split_size'?"
    )
    assert str(wrong.value).startswith("spark.windrow.strategy='balansed': it must be 'balanced'")
    assert "did you mean 'balanced'?" in str(wrong.value)


def test_a_limit_holds_with_a_filter_that_only_the_reader_can_decide(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    client.register_table("sales.events", str(hive.write_events(tmp_path / "events")))
    client.refresh("sales.events")

    rows = client.read(spark, "sales.events", filter="name LIKE 'name-5%'", limit=5).collect()

    assert len(rows) == 5
    assert all(row["name"].startswith("name-5") for row in rows)


def test_a_table_with_delete_files_is_refused_rather_than_read_with_deleted_rows(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    location = hive.write_events(tmp_path / "events")
    client.register_table("sales.events", str(location))
    client.refresh("sales.events")
    client.publish("sales.events", published(location, delete_count=[0, 2, 0, 0, 0, 1]))

    rows = client.read(spark, "sales.events")
    with pytest.raises(UnsupportedDeletesError, match="3 delete files"), plain_errors():
        rows.collect()
    assert rows.where("ds = '2026-11-02'").count() == 20


def without_pages_of(file: Path, *columns: str) -> None:
    """Overwrite the data of columns with zeros, so that decoding them fails."""
    metadata = pq.read_metadata(file)
    with file.open("r+b") as opened:
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            chunks = [group.column(at) for at in range(group.num_columns)]
            for chunk in (chunk for chunk in chunks if chunk.path_in_schema in columns):
                opened.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
                opened.write(bytes(chunk.total_compressed_size))


@pytest.fixture
def undecodable(client: windrow.Client, tmp_path: Path) -> str:
    """A table of 60,100 rows in small and large files whose column `name` cannot be decoded."""
    location = hive.write_events(tmp_path / "events", files_per_day=3)
    hive.write_file(location / "ds=2026-11-04" / "large.parquet", range(100, 60_110))
    for path in hive.data_files(location):
        without_pages_of(location / path, "name")
    client.register_table("sales.undecodable", str(location))
    client.refresh("sales.undecodable")
    return "sales.undecodable"


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (None, 60_100),
        ("ds < '2026-11-04'", 90),
        ("id >= 85 AND id < 105", 10),
        ("id < 5 OR ds = '2026-11-03'", 35),
        ("ds = '2027-01-01'", 0),
    ],
    ids=["all rows", "by folders", "within files", "differs by file", "no files"],
)
def test_counting_decodes_only_the_columns_of_the_filter(
    spark: SparkSession,
    client: windrow.Client,
    undecodable: str,
    filter: str | None,
    expected: int,
) -> None:
    bare = client.read(spark, undecodable, filter=filter, columns=[])

    assert (bare.columns, bare.count()) == ([], expected)
    assert client.read(spark, undecodable, filter=filter).count() == expected
    assert client.read(spark, undecodable, filter=filter, columns=["ds"]).count() == expected


def test_counting_a_cached_dataframe_reads_its_rows(
    spark: SparkSession, client: windrow.Client, undecodable: str
) -> None:
    rows = client.read(spark, undecodable).cache()

    with pytest.raises(TaskFailedError), plain_errors():
        rows.count()
    rows.unpersist()
    assert rows.count() == 60_100


def test_counting_refuses_files_that_differ_from_the_plan(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    location = hive.write_events(tmp_path / "events")
    client.register_table("sales.events", str(location), columns={"id": "bigint", "name": "string"})
    inventory = published(location)
    claims = inventory.set_column(3, "row_count", pa.array([10, 10, 10, 10, 10, 11]))
    client.publish("sales.events", claims)

    with pytest.raises(TaskFailedError, match=r"row count was 11 and is 10"), plain_errors():
        client.read(spark, "sales.events").count()

    client.publish("sales.events", inventory)
    rows = client.read(spark, "sales.events")
    assert rows.count() == 60
    os.utime(location / inventory["path"][0].as_py(), ns=(0, 0))
    with pytest.raises(TaskFailedError, match="has changed since"), plain_errors():
        rows.count()


def test_a_case_sensitive_session_is_refused(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    client.register_table("sales.events", str(hive.write_events(tmp_path / "events")))
    client.refresh("sales.events")
    sensitive = spark.newSession()
    sensitive.conf.set("spark.sql.caseSensitive", "true")

    with pytest.raises(CaseSensitiveNamesError, match="set it to false"):
        client.read(sensitive, "sales.events")
