"""Import tables of Hive's metastore, then again without changes, which takes less time.

    python benchmarks/metastore.py [--quick] [--tables 50] [--partitions 5000] [--json FILE]

An embedded metastore (Derby, in the JVM's memory) has the tables, whose partitions have a small
Parquet file each. A coordinator in this process imports and refreshes them, then imports them again
in two ways: with everything that the metastore knows about partitions, and with only their names
(`trust_partitions`). Times are CPU times of Spark's JVM with the metastore, of this process, and of
the processes that read footers. With --quick, Spark's own catalog in memory replaces the metastore.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from common import Result, arguments, console, write_json
from cpu import tree_cpu_seconds
from pyspark.sql import SparkSession

from windrow.client import Client
from windrow.connecting import embedded
from windrow_core.cards import seconds_text
from windrow_demo.local_session import local_session

NAME = "metastore"
_METASTORE = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
}


def main() -> None:
    """Run the benchmark."""
    parser = arguments(str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=int, default=50, help="number of tables")
    parser.add_argument(
        "--partitions", type=int, default=5_000, help="number of partitions of all tables together"
    )
    args = parser.parse_args()
    tables, partitions = (3, 12) if args.quick else (args.tables, args.partitions)
    with TemporaryDirectory(prefix="windrow-metastore-") as name:
        folder = Path(name)
        conf = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
        if not args.quick:
            home = {"spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}"}
            conf = {**conf, **_METASTORE, **home}
        with (
            local_session("windrow metastore", folder / "spark.log", conf=conf) as spark,
            embedded(folder / "state", allowed_locations=[name]) as client,
        ):
            generate(spark, folder, tables, partitions // tables)
            took = measured(spark, client, tables, 1 if args.quick else args.runs)
        shutil.rmtree(folder / "warehouse", ignore_errors=True)
    count = tables * (partitions // tables)
    console.print(f"{tables:,} tables with {count:,} partitions")
    first = took.pop("first")
    console.print(f"first: {seconds_text(first)} of CPU time")
    for kind, seconds in took.items():
        console.print(f"{kind}: {seconds_text(seconds)}, {seconds / first:.0%} of the first")
    case = f"{tables} tables with {count} partitions"
    results = [
        Result(case=case, metric=kind, unit="s", windrow=took[kind], peer="first", peer_value=first)
        for kind in took
    ]
    if args.json:
        write_json(args.json, NAME, results)


def generate(spark: SparkSession, folder: Path, tables: int, partitions: int) -> None:
    """Make tables with partitions of one small file each."""
    spark.sql("CREATE DATABASE sales")
    rows = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{at}" for at in range(10)]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    content = sink.getvalue().to_pybytes()
    for table in range(tables):
        location = folder / "tables" / f"t{table}"
        spark.sql(
            f"CREATE TABLE sales.t{table} (id BIGINT, name STRING, ds STRING) USING parquet "
            f"PARTITIONED BY (ds) LOCATION '{location}'"
        )
        days = [f"2026-{day:05}" for day in range(partitions)]
        for day in days:
            (location / f"ds={day}").mkdir(parents=True)
            (location / f"ds={day}/part-0.parquet").write_bytes(content)
        for start in range(0, len(days), 500):
            specs = " ".join(f"PARTITION (ds='{day}')" for day in days[start : start + 500])
            spark.sql(f"ALTER TABLE sales.t{table} ADD {specs}")


def measured(spark: SparkSession, client: Client, tables: int, runs: int) -> dict[str, float]:
    """Return the CPU seconds of each kind of import; the kinds without changes take turns."""
    took = {"first": _timed(spark, client, tables, "created", trust=False)}
    again: dict[str, list[float]] = {"again": [], "again by names": []}
    for _ in range(runs):
        for kind, times in again.items():
            times.append(_timed(spark, client, tables, "unchanged", trust=kind == "again by names"))
    return took | {kind: statistics.median(times) for kind, times in again.items()}


def _timed(spark: SparkSession, client: Client, tables: int, state: str, *, trust: bool) -> float:
    began = tree_cpu_seconds()
    done = client.import_tables(spark, "sales.*", trust_partitions=trust)
    took = tree_cpu_seconds() - began
    outcomes = Counter(one.outcome for one in done)
    if outcomes != {state: tables}:
        sys.exit(f"expected {tables} tables {state}, got {dict(outcomes)}")
    return took


if __name__ == "__main__":
    main()
