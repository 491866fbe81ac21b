"""Old dates and times are read as by Spark's own reader, and no file with a match is pruned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.servers import embedded
from windrow_spark.reading.session_calendars import calendars_of
from windrow_tables.executor.rebasing import Calendars, corrected, rule_of

pytestmark = pytest.mark.usefixtures("interpreted")

ZONES = [
    "UTC",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Tokyo",
    "Asia/Kolkata",
    "Europe/Amsterdam",
    "GMT+05:45",
]
DAYS = [
    "0001-01-01",
    "0001-12-31",
    "1000-02-28",
    "1000-03-01",
    "1500-01-01",
    "1582-10-04",
    "1582-10-15",
    "1850-01-01",
    "1883-11-18",
    "1899-12-31",
    "1900-01-01",
    "2026-11-22",
    "9999-12-30",
]
PARQUET = "spark.sql.parquet."
# As numbers, since west of Greenwich the earliest times lie in the year 0, which Python lacks.
COMPARED = [
    "file",
    "id",
    "unix_date(d) AS d",
    "unix_micros(t) AS t",
    "unix_date(s.d) AS sd",
    "transform(s.l, x -> unix_micros(x)) AS sl",
    "transform(map_keys(m), x -> unix_date(x)) AS mk",
    "transform(map_values(m), x -> unix_micros(x)) AS mv",
]


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    names = {f"{PARQUET}{name}": value for name, value in values.items() if name != "zone"}
    if "zone" in values:
        names["spark.sql.session.timeZone"] = values["zone"]
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, old or "")


def reading_as(spark: SparkSession, mode: str) -> Any:
    return settings(spark, datetimeRebaseModeInRead=mode, int96RebaseModeInRead=mode)


def days(spark: SparkSession, *more: str) -> DataFrame:
    rows = ", ".join(
        f"({n}, date'{day}', timestamp'{day} 12:34:56.789Z')"
        for n, day in enumerate([*DAYS, *more])
    )
    return spark.sql(
        f"""SELECT id, d, t, named_struct('d', d, 'l', array(t, NULL)) s, map(d, t) m
        FROM VALUES {rows}, (99, NULL, NULL) AS v(id, d, t) WHERE d IS NOT NULL
        UNION ALL SELECT 99, NULL, NULL, NULL, NULL"""
    ).coalesce(1)


def write_as(spark: SparkSession, folder: Path, mode: str, zone: str, stored: str) -> None:
    with settings(
        spark,
        zone=zone,
        datetimeRebaseModeInWrite=mode,
        int96RebaseModeInWrite=mode,
        outputTimestampType=stored,
    ):
        # Windrow refuses INT96 before the year 1.
        before_christ = () if stored == "INT96" else ("-0044-03-15", "-4000-02-29")
        days(spark, *before_christ).write.parquet(str(folder))


def rewrite_as(source: Path, target: Path, told: Mapping[str, str], *, int96: bool = False) -> None:
    """Copy a file written by Spark with different metadata in its footer."""
    file = next(source.glob("*.parquet"))
    table = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    target.mkdir()
    pq.write_table(
        table.replace_schema_metadata(told),
        target / "part-0.parquet",
        store_schema=False,
        use_deprecated_int96_timestamps=int96,
    )


@pytest.fixture(scope="module")
def certain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose files all state the calendar they were written in."""
    table = tmp_path_factory.mktemp("certain")
    number = 0
    for zone in ZONES:
        for stored in ("TIMESTAMP_MICROS", "INT96", "TIMESTAMP_MILLIS"):
            if stored != "TIMESTAMP_MILLIS" or zone == "Asia/Kolkata":
                write_as(spark, table / f"file={number}", "LEGACY", zone, stored)
                number += 1
    for stored in ("TIMESTAMP_MICROS", "INT96"):
        write_as(spark, table / f"file={number}", "CORRECTED", "Asia/Tokyo", stored)
        number += 1
    # Spark 2 states no zone; Spark 3.0 uses the new calendar except for INT96.
    micros = table / "file=0"
    rewrite_as(micros, table / f"file={number}", {"org.apache.spark.version": "2.4.8"})
    told = {"org.apache.spark.version": "3.0.3"}
    rewrite_as(table / "file=1", table / f"file={number + 1}", told, int96=True)
    return table


@pytest.fixture(scope="module")
def uncertain(spark: SparkSession, certain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of files that do not state the calendar they were written in."""
    table = tmp_path_factory.mktemp("uncertain")
    rewrite_as(certain / "file=0", table / "file=0", {})
    return table


def opened(client: windrow.Client, table: Path) -> str:
    client.register_table("old", str(table), bloom_columns=["d", "t"])
    client.refresh("old")
    return "old"


@pytest.fixture
def client(tmp_path: Path, certain: Path, uncertain: Path) -> Iterator[windrow.Client]:
    allowed = [str(certain), str(uncertain), str(tmp_path)]
    with embedded.client(tmp_path / "state", allowed_locations=allowed) as client:
        yield client


def seen(rows: DataFrame) -> list[Any]:
    return sorted(rows.selectExpr(*COMPARED).collect(), key=lambda row: (row.file, row.id))


def test_files_that_state_their_calendar_are_read_as_by_spark(
    spark: SparkSession, client: windrow.Client, certain: Path
) -> None:
    name = opened(client, certain)

    expected = seen(spark.read.parquet(str(certain)))
    assert seen(client.read(spark, name)) == expected
    assert len({row.t for row in expected}) > len(DAYS)
    # Filters match the values that were meant, even if the file stores different numbers.
    for column, text in (("d", "date'{}'"), ("t", "timestamp'{} 12:34:56.789Z'")):
        for day in DAYS:
            condition = f"{column} = {text.format(day)}"
            wanted = {row.file for row in expected if row[column] == expected_value(column, day)}
            assert files_of(client, name, condition) >= wanted, condition
    condition = "d < date'1500-06-01' AND t >= timestamp'1000-01-01 00:00:00Z'"
    assert seen(client.read(spark, name, filter=condition)) == seen(
        spark.read.parquet(str(certain)).where(condition)
    )


def expected_value(column: str, day: str) -> int:
    at = pa.scalar(day, pa.string()).cast(pa.date32()).cast(pa.int32()).as_py()
    return at if column == "d" else at * 86_400_000_000 + 45_296_789_000


def files_of(client: windrow.Client, name: str, condition: str) -> set[int]:
    paths = client.plan(name, filter=condition).groups["splits"].combine_chunks().flatten()
    return {int(path.partition("/")[0][5:]) for path in paths.field("path").to_pylist()}


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_files_that_state_no_calendar_are_read_by_the_settings_of_the_session(
    spark: SparkSession, client: windrow.Client, uncertain: Path, mode: str
) -> None:
    name = opened(client, uncertain)

    with reading_as(spark, mode):
        expected = seen(spark.read.parquet(str(uncertain)))
        assert seen(client.read(spark, name)) == expected
        for day in DAYS:
            condition = f"d = date'{day}'"
            is_there = any(row.d == expected_value("d", day) for row in expected)
            assert files_of(client, name, condition) or not is_there, condition


def test_a_session_that_asks_for_an_error_gets_one_with_column_and_file(
    spark: SparkSession, client: windrow.Client, uncertain: Path
) -> None:
    name = opened(client, uncertain)

    with reading_as(spark, "EXCEPTION"):
        with pytest.raises(Exception, match="INCONSISTENT_BEHAVIOR_CROSS_VERSION"):
            spark.read.parquet(str(uncertain)).collect()
        with pytest.raises(Exception, match=r"column 'd' of file '.*' holds dates before 1582"):
            client.read(spark, name, reader="grouped").collect()


def test_int96_beyond_year_9999_is_refused_by_file_and_column(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    folder = tmp_path / "far" / "file=0"
    for number, year in enumerate(("+290000", "-7000")):
        folder = tmp_path / "far" / f"file={number}"
        with settings(spark, outputTimestampType="INT96"):
            spark.sql(f"SELECT timestamp'{year}-01-01 00:00:00Z' t").write.parquet(str(folder))
        name = f"far{number}"
        client.register_table(name, str(folder), bloom_columns=["t"])
        client.refresh(name)

        with pytest.raises(Exception, match=r"column 't' of file '.*' holds INT96 times beyond"):
            client.read(spark, name, filter="t IS NOT NULL", reader="grouped").collect()
        assert len(client.plan(name, filter="t > timestamp'0001-01-01 00:00:00Z'")) == 1


def test_every_zone_changes_at_the_same_times_as_in_spark(spark: SparkSession) -> None:
    calendars = calendars_of(spark)
    loader = spark.sparkContext._jvm.org.apache.spark.util.Utils.getSparkClassLoader()
    stream = loader.getResourceAsStream("julian-gregorian-rebase-micros.json")

    for record in json.loads(bytes(stream.readAllBytes())):
        asked, expected = [], []
        for at, (switch, diff) in enumerate(zip(record["switches"], record["diffs"], strict=True)):
            before = [(switch - 1, record["diffs"][at - 1])] if at else []
            for second, shift in [*before, (switch, diff), (switch + 86_399, diff)]:
                asked.append(second * 1_000_000)
                expected.append((second + shift) * 1_000_000)
        assert rebased(asked, record["tz"], calendars) == expected, record["tz"]


def rebased(micros: list[int], zone: str, calendars: Calendars) -> list[int]:
    told = {
        b"org.apache.spark.version": b"4.0.0",
        b"org.apache.spark.legacyDateTime": b"",
        b"org.apache.spark.timeZone": zone.encode(),
    }
    type_ = pa.timestamp("us", "UTC")
    rule = rule_of(type_, "INT64", calendars.of(told), type_)
    moved: list[int] = (
        corrected(pa.array(micros, pa.int64()).cast(type_), iter([rule]))
        .cast(pa.int64())
        .to_pylist()
    )
    return moved
