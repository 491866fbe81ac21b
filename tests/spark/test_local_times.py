"""INT96 times that a session takes for local ones are read as by Spark's own reader."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import a_few, is_nightly
from tests.support.queries.int96 import (
    READERS,
    converting,
    differences,
    numbers,
    settings,
    write_files,
)
from tests.support.servers import embedded
from windrow_spark.errors import EqualTimesError
from windrow_spark.reading.session_calendars import calendars_of
from windrow_tables.executor.local_times import LocalZone

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

ZONES = ["America/New_York", "Pacific/Apia"]
# Changes of half an hour and of a day, by the seasons of the Sun and the Moon, and only in the past.
MORE_ZONES = [*ZONES, "Australia/Lord_Howe", "Africa/Casablanca", "Africa/Monrovia", "+05:45"]
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("int96") / "table"
    write_files(spark, table)
    return table


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder.parent / "state", allowed_locations=[str(folder)]) as client:
        client.register_table("int96", str(folder), bloom_columns=["t"])
        client.refresh("int96")
        yield client


def test_local_times_become_the_instants_of_spark_in_every_zone(spark: SparkSession) -> None:
    random = Random() if is_nightly() else Random(0)
    zones = MORE_ZONES
    if is_nightly():
        ids = spark.sparkContext._jvm.java.time.ZoneId.getAvailableZoneIds()
        zones = random.sample(sorted(map(str, ids)), 60)
    rows, local_zones = [], {}
    for zone in zones:
        with converting(spark, zone):
            local_zones[zone] = calendars_of(spark).local
        seconds = [random.randint(_FIRST_S, _LAST_S) for _ in range(50)]
        # Every change is some hours from one of these.
        for change in random.sample(_changes(spark, zone), 20):
            seconds += [change + random.randint(-9_000, 9_000) for _ in range(5)]
        micros = [second * 1_000_000 + random.randrange(1_000_000) for second in seconds]
        rows += [(zone, at) for at in micros]
    # It is the function with which Spark's reader converts.
    instant = "unix_micros(to_utc_timestamp(timestamp_micros(local), zone)) AS instant"
    known = spark.createDataFrame(rows, "zone string, local long").selectExpr("*", instant)
    for zone, group in known.toPandas().groupby("zone"):
        local = pa.array(group["local"], pa.int64()).cast(pa.timestamp("us", "UTC"))
        ours = LocalZone.of(local_zones[zone]).instants(local).cast(pa.int64()).to_pylist()
        assert ours == group["instant"].to_list(), zone


def _changes(spark: SparkSession, zone: str) -> list[int]:
    """Return when a zone changes its offset, some far in the future, and when it may not."""
    jvm: Any = spark.sparkContext._jvm
    rules = jvm.java.time.ZoneId.of(zone).getRules()
    changes = [at.toEpochSecond() for at in rules.getTransitions()]
    for year in (2_099, 2_400, 5_000, 9_998):
        changes += [
            rule.createTransition(year).toEpochSecond() for rule in rules.getTransitionRules()
        ]
    return changes + [year * 31_556_952 for year in range(-1_900, 8_000, 450)]


def test_int96_is_taken_for_local_times_of_the_session_as_by_spark(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    assert differences(spark, client, "int96", folder, ZONES) == []


def test_every_supported_spark_takes_int96_for_local_times(
    on_older_sparks: list[dict[str, Any]],
) -> None:
    assert [older["int96"] for older in on_older_sparks] == [[]] * len(on_older_sparks)


def test_a_session_decides_at_each_query_whether_int96_is_local(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    for reader in READERS:
        rows = client.read(spark, "int96", reader=reader)
        with settings(spark, {"spark.sql.parquet.int96RebaseModeInRead": "CORRECTED"}):
            plain = numbers(rows)
        with converting(spark, "Asia/Kathmandu"):
            # A DataFrame keeps the plan of its first query; this is another query of the same.
            moved = numbers(rows.where("id > -2"))
        changed = {one[0] for one, other in zip(plain, moved, strict=True) if one != other}
        assert changed == {0, 1, 2}, reader


@pytest.mark.parametrize("reader", a_few(READERS, 2))
def test_equality_with_an_int96_time_finds_its_rows_despite_bloom_filters(
    spark: SparkSession, client: windrow.Client, folder: Path, reader: Any
) -> None:
    with converting(spark, "Asia/Kathmandu"):
        spark_rows = spark.read.parquet(str(folder))
        (row,) = spark_rows.where("file = 0 AND id = 7").selectExpr("unix_micros(t) t").collect()
        at = f"timestamp'{datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=row.t)}'"
        for condition in (
            f"t = {at}",
            f"t IN ({at}, timestamp'1999-01-01 00:00:00Z')",
            f"NOT (t <> {at})",
        ):
            expected = numbers(spark_rows.where(condition))
            assert (0, 7) in {row[:2] for row in expected}
            rows = client.read(spark, "int96", reader=reader)
            assert numbers(rows.where(condition)) == expected
            filtered = client.read(spark, "int96", filter=condition, reader=reader)
            assert numbers(filtered) == expected


def test_a_plan_that_compares_times_for_equality_is_refused_by_such_a_session(
    spark: SparkSession, client: windrow.Client
) -> None:
    at = "timestamp'2018-03-11 03:00:00.000789Z'"
    for condition in (f"t = {at}", f"t <> {at}", f"id = 1 OR NOT t IN ({at}, NULL)"):
        plan = client.plan("int96", columns=["id"], filter=condition)
        with converting(spark, "Asia/Kathmandu"), pytest.raises(EqualTimesError, match="int96"):
            client.read_plan(spark, plan)
        assert client.read_plan(spark, plan) is not None
    ranged = client.plan("int96", columns=["id"], filter=f"t BETWEEN {at} AND {at} AND file = 1")
    with converting(spark, "Asia/Kathmandu"):
        client.read_plan(spark, ranged)
