"""Statements and writers of Spark's write planned files, with the rows that Spark would write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import windrow
from tests.support.laws import is_nightly
from tests.support.queries import statements
from windrow.spark import recent_writes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TABLE = "sales.inserts"
NAME = f"windrow.{TABLE}"


def assert_outcomes(outcomes: dict[str, str], version: str) -> None:
    """Compare the outcomes of all statements on a release of Spark with what they must be."""
    wrong = {
        name: outcome
        for name, outcome in outcomes.items()
        if outcome != ("refused" if name in statements.REFUSALS else "same")
    }
    if version.startswith(("3.5.", "4.0.")):
        # They want a value for each column of a catalog's table.
        columns = wrong.pop(f"INSERT INTO (columns) ({statements.CATALOG})")
        assert "CANNOT_FIND_DATA" in columns
    assert (version, wrong) == (version, {})


@pytest.fixture
def location(spark: SparkSession, client: windrow.Client, folder: Path) -> Iterator[Path]:
    """The folder of a table with the ids 0 to 5 on two days, also as the view `inserts`."""
    windrow.register(spark, client)
    location = folder / "inserts"
    client.register_table(
        TABLE,
        str(location),
        columns={"id": "bigint"},
        partition_columns={"ds": "date"},
        replace=True,
    )
    day = F.expr("date_add(DATE'2026-11-01', CAST(id % 2 AS INT))")
    client.write(spark.range(6).withColumn("ds", day), TABLE, "overwrite")
    client.read(spark, TABLE).createOrReplaceTempView("inserts")
    yield location
    spark.catalog.dropTempView("inserts")


def ids(spark: SparkSession, table: str = NAME) -> list[int]:
    return sorted(row.id for row in spark.table(table).select("id").collect())


def test_statements_write_what_spark_would_write(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    windrow.register(spark, client)

    outcomes = statements.outcomes(spark, client, folder, every=is_nightly())
    assert_outcomes(outcomes, spark.version)


def test_statements_write_on_older_spark_as_well(on_older_sparks: list[dict[str, Any]]) -> None:
    for older in on_older_sparks:
        assert_outcomes(older["statements"], older["version"])


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_statement_writes_once_when_it_runs(
    spark: SparkSession, client: windrow.Client, location: Path, adaptive: str
) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    spark.conf.set("spark.sql.adaptive.forceApply", adaptive)
    try:
        for name in ("inserts", NAME):
            writes = len(list(client.writes(TABLE)))
            plan = spark.sql(f"EXPLAIN INSERT INTO {name} VALUES (7, DATE'2026-11-01')").first()
            assert plan is not None
            assert "not" not in plan[0].lower()
            assert len(list(client.writes(TABLE))) == writes
            result = spark.sql(f"INSERT INTO {name} VALUES (7, DATE'2026-11-01')")
            assert (result.collect(), result.count()) == ([], 0)
            assert len(list(client.writes(TABLE))) == writes + 1
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.conf.unset("spark.sql.adaptive.forceApply")


def test_settings_and_options_decide_the_files(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    spark.conf.set("spark.windrow.write.target_rows", "2")
    try:
        spark.sql(f"INSERT OVERWRITE {NAME} SELECT id, DATE'2026-11-01' FROM range(8)")
        assert recent_writes(TABLE)[0].report.files == 4
        assert recent_writes(TABLE)[0].options == {"target_rows": 2}
        rows = spark.range(8).selectExpr("id", "DATE'2026-11-02' AS ds")
        rows.write.option("target_rows", "4").mode("append").saveAsTable(NAME)
        assert recent_writes(TABLE)[0].report.files == 2
        # Reads do not take it for an option of plans.
        assert spark.table(NAME).count() == 16
    finally:
        spark.conf.unset("spark.windrow.write.target_rows")
    spark.conf.set("spark.windrow.write.counts", "guess")
    try:
        with pytest.raises(Exception, match="counts='guess': it must be one of count, files"):
            spark.sql(f"INSERT INTO {NAME} VALUES (7, DATE'2026-11-01')")
    finally:
        spark.conf.unset("spark.windrow.write.counts")


def test_a_view_follows_what_is_written_through_it_and_dataframes_do_not(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    earlier = spark.table("inserts")
    client.read(spark, TABLE).createOrReplaceTempView("other")
    client.read(spark, TABLE).where("id < 3").createOrReplaceTempView("part")
    # What has been written does not fail because of a view of a table that is gone.
    spark.sql("CREATE TABLE gone (id INT) USING parquet")
    spark.sql("CREATE TEMPORARY VIEW broken AS SELECT id FROM gone")
    spark.sql("DROP TABLE gone")

    spark.sql("INSERT INTO inserts VALUES (7, DATE'2026-11-01')")

    assert ids(spark, "inserts") == ids(spark, "other") == [0, 1, 2, 3, 4, 5, 7]
    spark.sql(
        "FROM range(3) INSERT INTO inserts SELECT id + 20, DATE'2026-11-01' "
        "INSERT INTO inserts SELECT id + 30, DATE'2026-11-01'"
    )
    assert ids(spark, "inserts") == [0, 1, 2, 3, 4, 5, 7, 20, 21, 22, 30, 31, 32]
    assert earlier.count() == 6
    assert ids(spark, "part") == [0, 1, 2]
    spark.catalog.dropTempView("other")
    spark.catalog.dropTempView("part")
    spark.catalog.dropTempView("broken")


def test_what_reads_a_part_of_a_table_is_not_written_through(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    views = {
        "only some of its rows": client.read(spark, TABLE, filter="id < 3"),
        "its snapshot 1, whatever": client.read(spark, TABLE, snapshot_id=1),
    }
    for words, rows in views.items():
        rows.createOrReplaceTempView("part")
        with pytest.raises(Exception, match=words):
            spark.sql("INSERT INTO part VALUES (7, DATE'2026-11-01')")
    spark.catalog.dropTempView("part")
    assert ids(spark) == [0, 1, 2, 3, 4, 5]


def test_a_table_of_sparks_catalog_is_written_and_read_anew(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    spark.sql(f"CREATE TABLE named USING windrow OPTIONS (table '{TABLE}')")
    try:
        spark.sql("INSERT INTO named VALUES (7, DATE'2026-11-01')")
        assert ids(spark, "named") == [0, 1, 2, 3, 4, 5, 7]
    finally:
        spark.sql("DROP TABLE named")


def test_rows_that_a_session_has_cached_are_those_of_the_table_after_a_statement(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    spark.sql(f"CACHE TABLE {NAME}")
    try:
        assert spark.table(NAME).count() == 6
        spark.sql(f"INSERT INTO {NAME} VALUES (7, DATE'2026-11-01')")
        assert spark.table(NAME).count() == 7
        spark.sql(f"INSERT OVERWRITE {NAME} SELECT id + 10, ds FROM {NAME} WHERE id > 4")
        assert ids(spark) == [15, 17]
    finally:
        spark.sql(f"UNCACHE TABLE IF EXISTS {NAME}")


def test_columns_of_cached_rows_place_rows_only_if_they_are_stable(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    day = "DATE'2026-11-01' AS ds"
    random = "date_add(DATE'2026-11-01', CAST(rand() * 3 AS INT)) AS ds"
    try:
        spark.sql(f"CACHE TABLE stable AS SELECT id, {day} FROM range(3)")
        spark.sql("INSERT OVERWRITE inserts SELECT * FROM stable")
        assert ids(spark) == [0, 1, 2]
        spark.sql(f"CACHE TABLE unstable AS SELECT id, {random} FROM range(3)")
        with pytest.raises(Exception, match=r"'ds' cannot be .*`rand` differs between attempts"):
            spark.sql("INSERT INTO inserts SELECT * FROM unstable")
    finally:
        for name in ("stable", "unstable"):
            spark.sql(f"UNCACHE TABLE IF EXISTS {name}")
            spark.catalog.dropTempView(name)


def test_a_failed_statement_leaves_nothing_and_says_why_in_one_line(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    fail = F.udf(lambda id_: 1 // (id_ - 3), LongType())
    before = sorted(location.rglob("*"))
    spark.range(6).select(fail("id").alias("id")).createOrReplaceTempView("failing")

    for name in ("inserts", NAME):
        with pytest.raises(Exception, match=r"^files for table .* ZeroDivisionError") as error:
            spark.sql(f"INSERT OVERWRITE {name} SELECT id, DATE'2026-11-01' FROM failing")
        assert "\n" not in str(error.value).strip()

    assert sorted(location.rglob("*")) == before
    assert not list(client.writes(TABLE, open_only=True))
    spark.sql(f"INSERT INTO {NAME} VALUES (7, DATE'2026-11-01')")
    assert ids(spark) == [0, 1, 2, 3, 4, 5, 7]
    spark.catalog.dropTempView("failing")


def test_statements_of_two_threads_and_sessions_are_all_written(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    sessions = [spark, spark.newSession()]
    errors = []

    def insert(session: SparkSession, first: int) -> None:
        try:
            for id_ in range(first, first + 3):
                session.sql(f"INSERT INTO {NAME} VALUES ({id_}, DATE'2026-11-01')")
        except Exception as error:
            errors.append(error)

    threads = [
        threading.Thread(target=insert, args=(session, 10 * (at + 1)))
        for at, session in enumerate(sessions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert ids(spark) == [0, 1, 2, 3, 4, 5, 10, 11, 12, 20, 21, 22]
