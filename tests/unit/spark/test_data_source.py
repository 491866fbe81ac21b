"""The Python data source of Spark Connect, in the processes that Spark's server runs it in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import LongType, StructField, StructType

import windrow
from tests.support.servers import embedded
from tests.support.tables import hive
from windrow_calls.errors import InvalidArgumentError
from windrow_spark import data_source
from windrow_spark.data_source import OpenTable, SessionSettings
from windrow_spark.errors import DataSourceUnavailableError, ServerCannotReachError
from windrow_tables.errors import UnfitReadError, UnsupportedDeletesError
from windrow_tables.executor.rebasing import Calendars

IDS = StructType([StructField("id", LongType())])


@pytest.fixture
def client(tmp_path: Path) -> Iterator[windrow.Client]:
    with embedded.client(tmp_path / "state", allowed_locations=(str(tmp_path),)) as client:
        client.register_table("events", str(hive.write_events(tmp_path / "events")))
        client.refresh("events")
        yield client


def source_of(client: windrow.Client, table: str = "events", **options: Any) -> DataSource:
    def opener(_: object) -> OpenTable:
        return OpenTable(nullcontext(client), table, options)

    given = {
        "opener": staticmethod(opener),
        "settings": SessionSettings({"parallelism": 3}, Calendars(), {}),
    }
    return type("Registered", (data_source.TableSource, DataSource), given)({})


@pytest.mark.slow
def test_tasks_read_their_groups_without_windrow(client: windrow.Client) -> None:
    source = source_of(client, filter="id >= 12")
    assert source.schema() == "`id` bigint, `name` string, `ds` date"
    reader = source.reader(IDS)
    groups = reader.partitions()

    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.programs.bare_executor"),
            *("read_source", "windrow,windrow_core,windrow_spark"),
        ],
        input=cloudpickle.dumps((reader, source, groups)),
        capture_output=True,
        check=False,
    )

    assert (done.stderr, done.stdout) == (b"", b"%a\n" % list(range(12, 60)))
    assert len(groups) == 3


def test_a_plan_without_groups_has_no_rows(client: windrow.Client) -> None:
    source = source_of(client, filter="id < 0")
    source.schema()
    reader = source.reader(IDS)
    (nothing,) = reader.partitions()

    assert list(reader.read(nothing)) == []


def test_a_table_is_planned_at_the_snapshot_of_its_columns(
    client: windrow.Client, tmp_path: Path
) -> None:
    source = source_of(client)
    source.schema()
    hive.write_file(tmp_path / "events" / "ds=2026-11-01" / "later.parquet", range(100, 200))
    client.refresh("events")

    read = source.reader(IDS)
    rows = [row for group in read.partitions() for batch in read.read(group) for row in batch["id"]]

    assert len(rows) == 60


def test_a_table_has_no_schema_but_its_own(client: windrow.Client) -> None:
    with pytest.raises(InvalidArgumentError, match=r"leave out \.schema"):
        source_of(client).reader(IDS)


def test_delete_files_are_refused_before_a_row_is_read(
    client: windrow.Client, tmp_path: Path
) -> None:
    paths = hive.data_files(tmp_path / "events")
    stats = [(tmp_path / "events" / path).stat() for path in paths]
    inventory = {
        "path": paths,
        "size_bytes": [stat.st_size for stat in stats],
        "mtime_ns": [stat.st_mtime_ns for stat in stats],
        "row_count": [10] * len(paths),
        "delete_count": [0, 2, 0, 0, 0, 1],
    }
    client.publish("events", pa.table(inventory))

    source = source_of(client)
    source.schema()
    with pytest.raises(UnsupportedDeletesError, match="3 delete files"):
        source.reader(IDS)


def test_a_filter_on_a_nested_column_that_is_not_read_is_refused_with_the_remedy(
    client: windrow.Client, tmp_path: Path
) -> None:
    location = tmp_path / "nested"
    location.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "of": [[1], None]}), location / "a.parquet")
    client.register_table("nested", str(location))
    client.refresh("nested")
    source = source_of(client, "nested", columns=["id"], filter="of IS NULL")
    source.schema()

    with pytest.raises(UnfitReadError, match="name it in `columns` too"):
        source.reader(IDS)


def test_columns_have_the_names_and_types_of_a_dataframe(
    client: windrow.Client, tmp_path: Path
) -> None:
    location = tmp_path / "odd"
    location.mkdir()
    pq.write_table(pa.table({"a`b, c": [1], "code": ["x"]}), location / "a.parquet")
    columns = {"a`b, c": "bigint", "code": "varchar(3)"}
    client.register_table("odd", str(location), columns=columns)
    client.refresh("odd")

    assert source_of(client, "odd").schema() == "`a``b, c` bigint, `code` string"


class _ConnectSession:
    """The attributes of a session of Spark Connect that need no call of its server."""

    version = "3.5.9"


def test_sessions_that_cannot_read_on_spark_connect_are_refused_by_name(
    client: windrow.Client,
) -> None:
    session: Any = _ConnectSession()
    with pytest.raises(DataSourceUnavailableError, match=r"3\.5\.9 lacks"):
        windrow.register(session)

    session.dataSource = None
    with pytest.raises(ServerCannotReachError, match="windrow serve"):
        windrow.register(session, client)
