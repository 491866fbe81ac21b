"""The catalog `windrow`: a coordinator's tables in SQL, by their names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import windrow
from tests.support.queries import catalogs
from tests.support.queries.catalogs import rows
from tests.support.servers import embedded
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from tests.support.tables.delta_tables import DeltaLog, column, metadata, protocol
from windrow_calls.errors import InvalidArgumentError, WindrowError
from windrow_service.settings import Settings
from windrow_spark.failures import plain_errors
from windrow_tables.errors import UnfitReadError

pytestmark = pytest.mark.usefixtures("interpreted")

DAYS = [[f"ds={day}"] for day in hive.DAYS]
COLUMNS = ["id", "name", "ds"]


def assert_answers(answers: dict[str, Any]) -> None:
    """Compare all answers with what they must be on every release of Spark."""
    reads, names, snapshots = answers["reads"], answers["names"], answers["snapshots"]
    assert reads == {
        "pruned": [[[20]], [2, 6]],
        "scan": True,
        "qualified": [[59, 59]],
        "joined": [[20, 190]],
        "files": [["part-00000.parquet", True], ["part-00001.parquet", True]],
    }
    for name in ("absent", "odd", "case sensitive", "no namespace"):
        del names[name]
    # Other tests of a program on an older Spark have tables, too.
    namespaces = names.pop("namespaces")
    assert namespaces == sorted(namespaces)
    assert {"cat", "default", "sales"} <= {name for (name,) in namespaces}
    assert names == {
        "databases": [["sales"]],
        "nested": [["cat.deep"]],
        "tables": [["sales", "catalog_events", False]],
        "nested tables": [["cat.deep", "Odd-Case", False]],
        "without dots": [["default", "catalog_plain", False]],
        "in another case": [[20]],
        "default namespace": [[20, "A"]],
        "used": [[[60]], [["windrow", "sales"]], [["sales", "catalog_events", False]]],
    }
    columns = answers["descriptions"].pop("columns")
    assert columns in (
        [[name] for name in COLUMNS],
        "[NOT_SUPPORTED_COMMAND_FOR_V2_TABLE] SHOW COLUMNS is not supported for v2 tables.",
    )
    size = answers["descriptions"]["properties"].pop("size_bytes")
    assert int(size) > 1_000
    assert answers["descriptions"] == {
        "described": [
            ["id", "bigint"],
            ["name", "string"],
            ["ds", "date"],
            ["# Partition Information", ""],
            ["# col_name", "data_type"],
            ["ds", "date"],
        ],
        "partitions": DAYS,
        "one partition": [DAYS[1]],
        "location": True,
        "provider": "windrow",
        "figures": True,
        "properties": {
            "format": "parquet",
            "snapshot_id": "1",
            "file_count": "6",
            "row_count": "60",
        },
        "time": True,
    }
    option = answers["interface"].pop("option")
    assert "SET spark.windrow.max_split_size" in option
    assert answers["interface"] == {
        "tables": ["Odd-Case"],
        "exists": [True, False],
        "columns": COLUMNS,
        "table": 5,
        "another session": [[[20]], [2, 6]],
    }
    assert snapshots.pop("no version").startswith("table 'sales.catalog_events' has no snapshot 99")
    assert "'main' is no snapshot of table 'sales.catalog_events'" in snapshots.pop("no number")
    assert "the oldest is 1 of" in snapshots.pop("too early")
    option = snapshots.pop("option")
    assert option == 60 or "write VERSION AS OF" in option
    assert snapshots == {
        "after REFRESH": [[70]],
        "an older DataFrame": 60,
        "version": [[60]],
        "version as text": [[60]],
        "timestamp": [[60]],
        "timestamp now": [[70]],
        "two at once": [[60, 70]],
        # Of the current snapshot; by Spark's own word; of the next one; of the old one; of none.
        "caches": [True, True, True, False, False],
    }


def assert_errors(answers: dict[str, Any]) -> None:
    """Make sure that nothing is written, and that all errors say what to do instead."""
    names, refusals = answers["names"], answers["refusals"]
    for name in ("absent", "odd", "case sensitive"):
        assert names[name].startswith("[TABLE_OR_VIEW_NOT_FOUND]"), names[name]
    assert names["no namespace"].startswith("[SCHEMA_NOT_FOUND]"), names["no namespace"]
    assert refusals.pop("rows of Spark's own table") == "1"
    for statement, words in catalogs.REFUSALS.items():
        assert words in refusals.pop(statement), statement
    assert refusals == {}
    assert len(answers["files"]) == 7


@pytest.fixture(scope="module")
def client(spark: SparkSession, folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture
def location(spark: SparkSession, client: windrow.Client, tmp_path: Path) -> Path:
    """The folder of the table `sales.events`, which is registered anew for each test."""
    windrow.register(spark, client)
    location = hive.write_events(tmp_path / "events")
    client.register_table("sales.events", str(location), replace=True)
    client.refresh("sales.events")
    return location


def test_statements_of_spark_work_on_the_tables_of_a_coordinator(
    spark: SparkSession, tmp_path: Path
) -> None:
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        windrow.register(spark, client)
        answers = catalogs.results(spark, client, tmp_path)

    assert_errors(answers)
    assert_answers(answers)


def test_statements_work_on_older_spark_as_well(on_older_sparks: list[dict[str, Any]]) -> None:
    for older in on_older_sparks:
        assert_errors(older["catalog"])
        assert_answers(older["catalog"])


def test_a_table_that_is_registered_anew_is_another_one(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    assert rows(spark, "SELECT count(*) FROM windrow.sales.events") == [[60]]
    client.delete_table("sales.events")
    with plain_errors(), pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("windrow.sales.events")

    hive.write_file(location / "ds=2026-11-04" / "part-0.parquet", range(60, 70))
    client.register_table("sales.events", str(location))
    client.refresh("sales.events")

    assert client.table("sales.events").current_snapshot.snapshot_id == 1
    assert rows(spark, "SELECT count(*) FROM windrow.sales.events") == [[70]]


def test_the_client_that_was_registered_last_answers(
    spark: SparkSession, client: windrow.Client, location: Path, tmp_path: Path
) -> None:
    few = hive.write_events(tmp_path / "few", days=["2026-11-01"])
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as other:
        other.register_table("sales.events", str(few))
        other.refresh("sales.events")
        assert rows(spark, "SELECT count(*) FROM windrow.sales.events") == [[60]]
        windrow.register(spark, other)
        assert rows(spark, "SELECT count(*) FROM windrow.sales.events") == [[20]]
    with (
        pytest.raises(UnfitReadError, match="client of catalog 'windrow' is closed"),
        plain_errors(),
    ):
        spark.table("windrow.sales.events")


def test_settings_of_a_catalog_name_its_coordinator(spark: SparkSession, tmp_path: Path) -> None:
    few = hive.write_events(tmp_path / "few", days=["2026-11-01"])
    with running(Settings(state_dir=tmp_path / "state", allowed_locations=[str(tmp_path)])) as url:
        with windrow.connect(url) as client:
            client.register_table("sales.events", str(few))
            client.refresh("sales.events")
        windrow.register(spark)
        session = spark.newSession()
        session.conf.set("spark.sql.catalog.other", "windrow.Catalog")
        unset = pytest.raises(InvalidArgumentError, match=r"sql\.catalog\.other\.coordinator")
        with unset, plain_errors():
            session.table("other.sales.events")
        session.conf.set("spark.sql.catalog.other.coordinator", url)
        assert session.table("other.sales.events").count() == 20


def test_names_that_differ_in_case_alone_must_be_written_exactly(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    for name in ("odd.Events", "odd.EVENTS"):
        client.register_table(name, str(location))
        client.refresh(name)

    assert rows(spark, "SELECT count(*) FROM windrow.odd.EVENTS") == [[60]]
    with pytest.raises(UnfitReadError, match=r"'odd\.EVENTS' and 'odd\.Events'"), plain_errors():
        spark.table("windrow.odd.events")


def test_the_snapshot_of_a_time_is_the_one_that_was_current_or_none(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    times = []
    for day in range(4, 8):
        times.append(datetime.now(timezone.utc).isoformat())
        hive.write_file(location / f"ds=2026-11-0{day}" / "part-0.parquet", [day])
        client.refresh("sales.events")
    newest = client.table("sales.events").current_snapshot.snapshot_id
    # A plan keeps its snapshot.
    client.plan("sales.events", snapshot_id=newest - 3)
    client.expire_snapshots("sales.events", keep_last=2, max_age=timedelta(0))

    def count(time: str) -> Any:
        return rows(spark, f"SELECT count(*) FROM windrow.sales.events TIMESTAMP AS OF '{time}'")

    assert count(times[3]) == [[63]]
    with pytest.raises(UnfitReadError, match="has been dropped: the nearest are"), plain_errors():
        count(times[2])
    with pytest.raises(UnfitReadError, match="the oldest is"), plain_errors():
        count(times[0])


def test_a_table_without_a_snapshot_says_so_until_it_is_refreshed(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    client.register_table("sales.unread", str(location))
    with pytest.raises(UnfitReadError, match=r"client\.refresh\('sales\.unread'\)"), plain_errors():
        spark.table("windrow.sales.unread")
    client.refresh("sales.unread")
    assert spark.table("windrow.sales.unread").count() == 60


def test_numbers_are_versions_of_a_table_that_has_a_log(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    windrow.register(spark, client)
    log = DeltaLog(tmp_path / "delta")
    log.commit(protocol(), metadata([column("ds", "date"), column("id", "long")], ["ds"]))
    for day, ids in {"2026-11-01": [1, 2], "2026-11-02": [3]}.items():
        file = f"ds={day}/part.parquet"
        log.commit(log.write_file(file, pa.table({"id": ids}), partitionValues={"ds": day}))
    client.register_table("sales.delta", str(log.folder), format="delta", replace=True)
    client.refresh("sales.delta", version="1")
    client.refresh("sales.delta")
    count = "SELECT count(*) FROM windrow.sales.delta"

    assert rows(spark, f"{count} VERSION AS OF 1") == [[2]]
    assert rows(spark, f"{count} VERSION AS OF 2") == [[3]]
    assert rows(spark, f"{count} VERSION AS OF 'snapshot-1'") == [[2]]
    assert rows(spark, count) == [[3]]
    assert rows(spark, "SELECT ds, id FROM windrow.sales.delta WHERE id = 3") == [["2026-11-02", 3]]
    names = [row[0] for row in rows(spark, "DESCRIBE windrow.sales.delta")]
    columns = spark.table("windrow.sales.delta").columns
    assert names[: len(columns)] == columns
    assert dict(rows(spark, "SHOW TBLPROPERTIES windrow.sales.delta"))["table_version"] == "2"
    with pytest.raises(WindrowError, match="version"), plain_errors():
        rows(spark, f"{count} VERSION AS OF 0")
    with pytest.raises(UnfitReadError, match="VERSION AS OF"), plain_errors():
        rows(spark, f"{count} TIMESTAMP AS OF now()")
