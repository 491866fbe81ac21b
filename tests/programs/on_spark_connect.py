"""A program that reads tables on a session of Spark Connect, with a server of its own.

`python -m tests.programs.on_spark_connect URL FOLDER [quick]`, where `quick` leaves out what takes a
third of the time: refused writes and streams.

One line of JSON on stdout has the version of Spark and the results.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import windrow
import windrow.errors
from tests.support.queries import refused_uses
from tests.support.tables import hive
from windrow.spark import plain_errors

_NOON = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)


def main(url: str, folder: Path, *, quick: bool) -> None:
    """Read in all ways, and print the results."""
    # With this, the server takes any free port and tells the client.
    os.environ["SPARK_TESTING"] = "1"
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.driver.memory", "600m")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    with windrow.connect(url) as client:
        events = hive.write_events(folder / "connected", files_per_day=2)
        client.register_table("sales.connected", str(events))
        client.refresh("sales.connected")
        windrow.register(spark)
        reading = _Reading(spark, client, url, events)
        report = {
            "rows": reading.rows(),
            "options": reading.options(),
            "filters": reading.filters(),
            "types": reading.types(folder / "typed"),
            "snapshots": reading.snapshots(),
            "uses": None if quick else reading.uses(folder / "streams"),
            "refusals": reading.refusals(),
        }
    sys.stdout.write("\n" + json.dumps({"version": spark.version, **report}) + "\n")
    sys.stdout.flush()
    spark.stop()


class _Reading:
    def __init__(self, spark: SparkSession, client: windrow.Client, url: str, events: Path) -> None:
        self._spark = spark
        self._client = client
        self._url = url
        self._events = events

    def _table(self, table: str = "sales.connected", **options: Any) -> DataFrame:
        reader = self._spark.read.format("windrow").option("coordinator", self._url)
        return reader.options(**options).load(table)

    def rows(self) -> dict[str, Any]:
        """Return the table as it is read, and as Spark reads it."""
        ours, theirs = self._table(), self._spark.read.parquet(str(self._events))
        tasks = ours.selectExpr("spark_partition_id() AS task").distinct().count()
        return {"ours": _texts(ours), "expected": _texts(theirs), "tasks": tasks}

    def uses(self, folder: Path) -> dict[str, list[str]]:
        """Return what writes and streams are refused with."""
        self._table().createOrReplaceTempView("refused")
        options = {"coordinator": self._url}
        return refused_uses.refusals(self._spark, "sales.connected", options, folder)

    def options(self) -> dict[str, Any]:
        """Return the results of reads with options."""
        self._spark.sql(
            f"CREATE TEMPORARY VIEW days USING windrow OPTIONS (coordinator '{self._url}', "
            "table 'sales.connected', columns 'ds, id', filter \"ds > '2026-11-01'\")"
        )
        days = "SELECT string(ds), count(*), sum(id) FROM days GROUP BY ds ORDER BY ds"
        split = self._table(max_split_size="1B", strategy="spark")
        windrow.register(self._spark, self._client)
        default = self._spark.read.format("windrow").load("sales.connected")
        return {
            "columns": self._spark.table("days").columns,
            "days": [list(row) for row in self._spark.sql(days).collect()],
            "empty": self._table(filter="ds = '2030-01-01'").count(),
            "tasks": split.selectExpr("spark_partition_id() AS task").distinct().count(),
            "default": default.count(),
        }

    def filters(self) -> dict[str, Any]:
        """Return counts of queries whose filters Spark would hand to a source that takes them."""
        self._spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        rows = self._table()
        rows.createOrReplaceTempView("filtered")
        both = rows.where("id = 3").union(rows.where("id = 4"))
        return {
            "one": rows.where("id = 3").count(),
            "all": rows.count(),
            "both": sorted(row.id for row in both.collect()),
            "view": [
                self._spark.sql(f"SELECT * FROM filtered {where}").count()
                for where in ("WHERE id < 7", "")
            ],
        }

    def types(self, location: Path) -> dict[str, Any]:
        """Return a table of many types as it is read, and as Spark reads it."""
        location.mkdir()
        pq.write_table(_typed(), location / "part-0.parquet")
        self._client.register_table("typed", str(location))
        self._client.refresh("typed")
        ours, theirs = self._table("typed"), self._spark.read.parquet(str(location))
        return {
            "ours": _texts(ours),
            "expected": _texts(theirs),
            "schemas": [rows.schema.simpleString() for rows in (ours, theirs)],
            "pruned": [self._table("typed", columns="i", filter="d < 3").count()],
        }

    def snapshots(self) -> dict[str, Any]:
        """Return the rows of views before and after the table gets a file."""
        snapshot = self._client.table("sales.connected").current_snapshot
        assert snapshot is not None
        self._table().createOrReplaceTempView("pinned")
        hive.write_file(self._events / "ds=2026-11-03" / "later.parquet", range(200, 205))
        self._client.refresh("sales.connected")
        return {
            "view": self._spark.table("pinned").count(),
            "named": self._table(snapshot_id=snapshot.snapshot_id).count(),
            "new": self._table(reader="auto").count(),
        }

    def refusals(self) -> dict[str, str]:
        """Return the error of each read that is refused."""
        victim = self._events / "ds=2026-11-01" / "part-00000.parquet"
        whole = self._table()
        os.utime(victim, ns=(0, victim.stat().st_mtime_ns + 10**9))
        self._spark.conf.set("spark.sql.caseSensitive", "true")
        sensitive = _refusal(lambda: windrow.register(self._spark))
        self._spark.conf.set("spark.sql.caseSensitive", "false")
        self._spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
        windrow.register(self._spark)
        setting = _refusal(self._table().collect)
        self._spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
        windrow.register(self._spark)
        schema = (
            self._spark.read.format("windrow").option("coordinator", self._url).schema("id int")
        )
        return {
            "changed": _refusal(whole.collect),
            "missing": _refusal(self._table("sales.nothing").collect),
            "limit": _refusal(self._table(limit="3").collect),
            "native": _refusal(self._table(reader="native").collect),
            "schema": _refusal(schema.load("sales.connected").collect),
            "client.read": _refusal(lambda: self._client.read(self._spark, "sales.connected")),
            "case": sensitive,
            "setting": setting,
        }


def _texts(rows: DataFrame) -> list[str]:
    return sorted(str(row.asDict(recursive=True)) for row in rows.collect())


def _refusal(ask: Callable[[], Any]) -> str:
    try:
        with plain_errors():
            ask()
    except windrow.errors.WindrowError as error:
        return f"{type(error).__name__}: {error}"
    return "not refused"


def _typed() -> pa.Table:
    pair = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    return pa.table(
        {
            "b": pa.array([True, None]),
            "i": pa.array([1, None], pa.int32()),
            "s": pa.array([-7, None], pa.int16()),
            "d": pa.array([float("nan"), 2.5]),
            "f": pa.array([0.1, None], pa.float32()),
            "n": pa.array([Decimal("-1.10"), None], pa.decimal128(38, 2)),
            "t": pa.array(["", None]),
            "x": pa.array([b"\x00\xff", None]),
            "day": pa.array([date(1999, 12, 31), None]),
            "at": pa.array([_NOON, None], pa.timestamp("us", "UTC")),
            "local": pa.array([_NOON.replace(tzinfo=None), None], pa.timestamp("us")),
            "ls": pa.array([[1, None], None], pa.list_(pa.int64())),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "st": pa.array([{"a": 1, "b": ["x", None]}, None], pair),
            "odd name`,": pa.array([1, 2]),
        }
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), quick="quick" in sys.argv)
