"""Times in folders without an offset are those of each session, as in Spark."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import a_few, examples
from tests.support.queries.accelerations import accelerate
from windrow.spark import recent_writes
from windrow_calls.errors import RefreshFailedError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

ZONES = ("Europe/Berlin", "America/New_York", "UTC", "Australia/Lord_Howe", "Asia/Kathmandu")
NULL = "__HIVE_DEFAULT_PARTITION__"
TEXTS = (
    "2026-11-28 09%3A00%3A00",
    "2026-11-28 10%3A00%3A00",
    "2026-11-28",
    # Berlin's clocks skip the first of these times, and show the third twice.
    "2026-03-29 02%3A30%3A00",
    "2026-03-29 03%3A30%3A00",
    "2026-10-25 02%3A30%3A00",
    # The same of New York.
    "2026-03-08 02%3A30%3A00",
    "2026-11-01 01%3A30%3A00.5",
    "1883-11-18 12%3A02%3A00",
    NULL,
)
LITERALS = (
    "2026-11-28 10:00:00",
    "2026-03-29 02:30:00",
    "2026-03-29 03:30:00",
    "2026-03-29 03:00:00",
    "2026-10-25 02:30:00",
    "2026-11-01 01:30:00.500",
    "2026-03-08 03:30:00",
)
SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _same_zone(spark: SparkSession) -> Iterator[None]:
    settings = {"spark.sql.session.timeZone": "", "spark.sql.timestampType": ""}
    before = {name: spark.conf.get(name) for name in settings}
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))


def in_zone(spark: SparkSession, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)


def write_hours(location: Path, texts: tuple[str, ...] = TEXTS) -> Path:
    for number, text in enumerate(texts):
        folder = location / f"hour={text}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([number, -number])}), folder / "a.parquet")
    return location


@pytest.fixture(scope="module")
def hours(spark: SparkSession, client: windrow.Client, folder: Path) -> Path:
    """A table of hours, inferred and declared, with a view that was made in another zone."""
    location = write_hours(folder / "hours")
    client.register_table("hours.inferred", str(location))
    client.register_table("hours.declared", str(location), partition_columns={"hour": "timestamp"})
    windrow.register(spark, client)
    for name in ("inferred", "declared"):
        client.refresh(f"hours.{name}")
        client.create_view(spark, f"hours.{name}", f"hours_{name}")
    return location


def rows_of(rows: DataFrame) -> list[tuple[int, int | None, str | None]]:
    shown = rows.select("id", F.unix_micros("hour"), F.col("hour").cast("string"))
    return sorted(map(tuple, shown.collect()))


@examples(8, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    op=st.sampled_from(sorted(SIGNS)),
    literal=st.sampled_from(LITERALS),
    name=st.sampled_from(["inferred", "declared"]),
    reader=st.sampled_from(["auto", "grouped", "native"]),
    other=st.sampled_from(["", " OR id = 4", " AND id > -5"]),
)
def test_conditions_on_local_times_keep_sparks_rows_in_every_zone(
    spark: SparkSession,
    client: windrow.Client,
    hours: Path,
    zone: str,
    op: str,
    literal: str,
    name: str,
    reader: str,
    other: str,
) -> None:
    in_zone(spark, zone)
    text = f"hour {SIGNS[op]} '{literal}'{other}"
    theirs = spark.read.parquet(str(hours))
    expected = rows_of(theirs.where(text))
    options = {"reader": reader}

    ways: dict[str, DataFrame] = {
        "view": spark.table(f"hours_{name}").where(text),
        "catalog": spark.sql(f"SELECT * FROM windrow.hours.{name} WHERE {text}"),
        "filter": client.read(spark, f"hours.{name}", filter=text, **options),
        "filter of one column": client.read(
            spark, f"hours.{name}", filter=text, columns=["hour", "id"], **options
        ),
        "read": client.read(spark, f"hours.{name}", **options).where(text),
    }
    if not other:
        tree = {"op": op, "column": "hour", "value": literal}
        ways["tree"] = client.read(spark, f"hours.{name}", filter=tree)

    for way, rows in ways.items():
        assert rows_of(rows) == expected, way
    assert ways["read"].dtypes == theirs.dtypes


@pytest.mark.parametrize("zone", a_few(ZONES, 5))
def test_accelerated_paths_of_hours_are_sparks_in_the_zone_of_their_session(
    spark: SparkSession, client: windrow.Client, hours: Path, zone: str
) -> None:
    def queries() -> dict[str, DataFrame]:
        rows = spark.read.parquet(str(hours))
        schema = spark.read.schema("id long, hour timestamp").parquet(str(hours))
        return {
            "inferred": rows.where("hour >= '2026-03-29 03:00:00'"),
            "declared": schema.where("hour < '2026-11-28 10:00:00'"),
            "newest": rows.where(F.col("hour") == rows.agg(F.max("hour")).first()[0]),
        }

    in_zone(spark, zone)
    expected = {name: rows_of(rows) for name, rows in queries().items()}
    with accelerate(spark, client, "hours.*") as acceleration:
        answers = {name: rows_of(rows) for name, rows in queries().items()}
        assert acceleration.reasons() == {}
        earlier = spark.read.parquet(str(hours))
        late = rows_of(earlier)
        in_zone(spark, "Asia/Tokyo")
        # Spark has read the folders in the zone of the time at which the path was opened.
        assert [row[:2] for row in rows_of(earlier)] == [row[:2] for row in late]
        assert "another time zone" in str(acceleration.reasons())
    assert answers == expected


def test_sessions_of_local_timestamps_read_the_times_as_they_are(
    spark: SparkSession, client: windrow.Client, hours: Path
) -> None:
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    text = "hour BETWEEN '2026-03-29 02:00:00' AND '2026-03-29 03:00:00'"
    theirs = spark.read.parquet(str(hours))

    ours = client.read(spark, "hours.inferred", filter=text)

    assert ours.dtypes == theirs.dtypes == [("id", "bigint"), ("hour", "timestamp_ntz")]
    assert sorted(ours.collect()) == sorted(theirs.where(text).collect())
    assert ours.count() == 2


def test_plans_and_scans_have_local_times_as_the_folders_do(
    spark: SparkSession, client: windrow.Client, hours: Path
) -> None:
    in_zone(spark, "Europe/Berlin")
    plan = client.plan("hours.declared", filter="hour <= '2026-03-29 02:30:00' OR id = 0")
    scan = (
        client.scan("hours.inferred", filter="hour = '2026-03-29 02:30:00'").to_reader().read_all()
    )

    ids = sorted(row.id for row in client.read_plan(spark, plan).collect())

    # Read in Berlin, the third would be an hour later, and so would be left out.
    assert ids == sorted([0, 0, 3, -3, 6, -6, 8, -8])
    assert plan.info.local_times == ["hour"]
    assert scan.schema.field("hour").type == pa.timestamp("us")
    assert sorted(scan["id"].to_pylist()) == [-3, 3]


@pytest.mark.parametrize("zone", a_few(ZONES[:3], 3))
def test_rows_go_to_the_folders_that_spark_names(
    spark: SparkSession, client: windrow.Client, folder: Path, zone: str
) -> None:
    in_zone(spark, zone)
    spark.conf.set("spark.windrow.warehouse", str(folder / "warehouse"))
    name = f"hours{next(_numbers)}"
    location = write_hours(folder / name, TEXTS[:2])
    client.register_table(f"written.{name}", str(location))
    client.refresh(f"written.{name}")
    windrow.register(spark, client)
    new = spark.sql(
        "SELECT id, timestamp_micros(1774749600000000 + id * 1800000000) AS hour FROM range(4)"
    )
    target = f"windrow.written.{name}"

    client.write(new, f"written.{name}")
    spark.sql(
        f"INSERT INTO {target} SELECT id + 10, hour + INTERVAL 1 SECOND FROM {{new}}", new=new
    )
    spark.sql(f"INSERT INTO {target} PARTITION (hour = TIMESTAMP'2026-11-28 09:00:00') SELECT 20L")
    spark.sql(f"INSERT OVERWRITE {target} PARTITION (hour = '2026-11-28 10:00:00') SELECT 21L")
    later = new.selectExpr("id + 30 AS id", "hour")
    later.write.mode("append").format("windrow").save(f"written.{name}")

    plain = write_hours(folder / f"{name}_plain", TEXTS[:1])
    seconds = new.selectExpr("id + 10 AS id", "hour + INTERVAL 1 SECOND AS hour")
    static = spark.sql("SELECT 20L AS id, TIMESTAMP'2026-11-28 09:00:00' AS hour")
    replaced = spark.sql("SELECT 21L AS id, TIMESTAMP'2026-11-28 10:00:00' AS hour")
    for rows in (new, seconds, static, replaced, later):
        rows.write.mode("append").partitionBy("hour").parquet(str(plain))
    assert {path.name for path in location.glob("hour=*")} == {
        path.name for path in plain.glob("hour=*")
    }
    assert rows_of(spark.table(target)) == rows_of(spark.read.parquet(str(plain)))
    assert rows_of(spark.table(target)) == rows_of(spark.read.parquet(str(location)))


def test_accelerated_inserts_of_hours_name_partitions_as_spark_does(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    in_zone(spark, "Europe/Berlin")
    spark.sql(f"CREATE DATABASE hourly LOCATION '{folder}/hourly'")
    for name in ("plain", "fast"):
        spark.sql(
            f"CREATE TABLE hourly.{name} (id BIGINT, hour TIMESTAMP) USING parquet "
            "PARTITIONED BY (hour)"
        )
    try:
        client.import_tables(spark, "hourly.fast")
        with accelerate(spark, client, "hourly.*", writes=True) as acceleration:
            for name in ("plain", "fast"):
                spark.sql(
                    f"INSERT INTO hourly.{name} SELECT id, timestamp_micros(1774749600000000 + "
                    "id * 1800000000) FROM range(6)"
                )
                spark.sql(
                    f"INSERT OVERWRITE hourly.{name} PARTITION (hour = '2026-03-29 04:00:00') "
                    "SELECT 9L"
                )
            answers = {
                name: rows_of(spark.table(f"hourly.{name}").where("hour > '2026-03-29 03:00:00'"))
                for name in ("plain", "fast")
            }
            shown = {
                name: sorted(
                    row[0] for row in spark.sql(f"SHOW PARTITIONS hourly.{name}").collect()
                )
                for name in ("plain", "fast")
            }
            reasons = acceleration.reasons()
        assert not any("fast" in target for target in reasons), reasons
        assert answers["fast"] == answers["plain"]
        assert shown["fast"] == shown["plain"]
        assert len(recent_writes("hourly.fast")) == 2
    finally:
        spark.sql("DROP DATABASE hourly CASCADE")
        client.delete_table("hourly.fast")


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (("2026-11-28 09%3A00%3A00", "2026-11-28 09%3A00%3A00Z"), "with an offset"),
        (("2026-11-28 09%3A00%3A00", "latest"), "'latest' is not a timestamp, the declared"),
    ],
)
def test_a_declared_timestamp_has_offsets_in_all_folders_or_in_none(
    client: windrow.Client, folder: Path, texts: tuple[str, ...], reason: str
) -> None:
    name = f"mixed{next(_numbers)}"
    location = write_hours(folder / name, texts)
    client.register_table(name, str(location), partition_columns={"hour": "timestamp"})

    with pytest.raises(RefreshFailedError, match=reason):
        client.refresh(name)
