"""INT96 times that a session takes for local ones: files, and how ways to read them differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import windrow
from windrow_spark.relation.division import Reader

PARQUET = "spark.sql.parquet."
READERS: tuple[Reader, ...] = ("auto", "grouped", "native")
DAY_S = 86_400
# Hours around changes of several zones in these seconds, and days from the year 1 to 9999.
CHANGES_S = (-2_717_640_000, -1_205_956_800, 1_520_737_200, 1_603_587_600, 1_636_248_600)
SECONDS = [
    *(change + quarter * 900 for change in CHANGES_S for quarter in range(-8, 9, 2)),
    *range(-62_135_000_000, 253_402_000_000, 9_999 * DAY_S * 4),
]
_COMPARED = [
    "file",
    "id",
    "unix_micros(t) AS t",
    "transform(s.l, x -> unix_micros(x)) AS l",
    "transform(map_keys(m), x -> unix_micros(x)) AS k",
    "transform(map_values(m), x -> unix_micros(x.t)) AS v",
]


def write_files(spark: SparkSession, table: Path) -> None:
    """Write times as INT96 by Arrow, in two calendars, and by Spark; and as no INT96 by Arrow."""
    times = pa.array([at * 1_000_000 + 789 for at in SECONDS], pa.timestamp("us"))
    ids = pa.array(range(len(times)))
    item = pa.StructArray.from_arrays([times], ["t"])
    each = pa.array(range(len(times) + 1), pa.int32())
    lists = pa.ListArray.from_arrays(each, times)
    rows = pa.table(
        {
            "id": ids,
            "t": times,
            "s": pa.StructArray.from_arrays([lists], ["l"]),
            "m": pa.MapArray.from_arrays(each, times, item),
        }
    )
    empty = pa.table({"id": [-1]}).cast(pa.schema([("id", pa.int64())]))
    rows = pa.concat_tables([rows, empty], promote_options="default")
    old = {"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "Europe/Amsterdam"}
    new = {"org.apache.spark.version": "3.5.9"}
    for number, marks in enumerate(({}, old, new)):
        folder = table / f"file={number}"
        folder.mkdir(parents=True)
        pq.write_table(
            rows.replace_schema_metadata(marks),
            folder / "a.parquet",
            store_schema=False,
            use_deprecated_int96_timestamps=True,
        )
    instants = pa.table({"id": ids, "t": times.cast(pa.timestamp("us", "UTC"))})
    (table / "file=3").mkdir()
    pq.write_table(instants.replace_schema_metadata(new), table / "file=3" / "a.parquet")
    with converting(spark, "UTC"), settings(spark, {f"{PARQUET}outputTimestampType": "INT96"}):
        read = spark.read.parquet(str(table / "file=2"))
        read.coalesce(1).write.parquet(str(table / "file=4"))


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set settings of a session for a while."""
    before = {name: spark.conf.get(name) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value or "")


def converting(spark: SparkSession, zone: str) -> Any:
    """Let a session take INT96 for local times of a zone, and files without a calendar as new."""
    return settings(
        spark,
        {
            f"{PARQUET}int96TimestampConversion": "true",
            f"{PARQUET}int96RebaseModeInRead": "CORRECTED",
            f"{PARQUET}int96RebaseModeInWrite": "CORRECTED",
            f"{PARQUET}datetimeRebaseModeInRead": "CORRECTED",
            "spark.sql.session.timeZone": zone,
        },
    )


def numbers(rows: DataFrame) -> list[Any]:
    """Return all times of rows as numbers, in order of files and rows."""
    return sorted(map(tuple, rows.selectExpr(*_COMPARED).collect()), key=lambda row: row[:2])


def differences(
    spark: SparkSession, client: windrow.Client, table: str, folder: Path, zones: Sequence[str]
) -> list[str]:
    """Return which ways to read a table give other times than Spark, and how many.

    Args:
        spark: A classic session.
        client: The client that plans.
        table: Name of the table.
        folder: Its location.
        zones: Zones of the session.
    """
    different = []
    for zone in zones:
        with converting(spark, zone):
            spark_numbers = numbers(spark.read.parquet(str(folder)))
            for reader in READERS:
                rows = numbers(client.read(spark, table, reader=reader))
                wrong = sum(
                    ours != theirs for ours, theirs in zip(rows, spark_numbers, strict=True)
                )
                if wrong:
                    different.append(f"{zone} {reader}: {wrong} of {len(spark_numbers)} rows")
    return different
