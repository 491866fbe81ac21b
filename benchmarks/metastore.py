"""Import tables of Hive's metastore twice: nothing changes the second time, and it takes less.

    python benchmarks/metastore.py [--quick] [--tables 50] [--partitions 5000] [--json FILE]

An embedded metastore (Derby, in the JVM's memory) has the tables, whose partitions have a small
Parquet file each. They are imported and refreshed by a coordinator in this process; then imported
again twice: with all that the metastore knows of partitions, and with their names alone
(`trust_partitions`). With --quick, Spark's own catalog in memory stands for the metastore.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from common import Result, arguments, console, write_json
from pyspark.sql import SparkSession

from windrow.client import Client
from windrow.connecting import embedded
from windrow.terminal.local_session import local_session
from windrow.terminal.render import seconds_text

NAME = "metastore"
_METASTORE = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
}


def main() -> None:
    """Run the benchmark."""
    parser = arguments(str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=int, default=50, help="number of tables")
    parser.add_argument("--partitions", type=int, default=5_000, help="partitions of all of them")
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
            first, again, names = measured(spark, client, tables)
        shutil.rmtree(folder / "warehouse", ignore_errors=True)
    count = tables * (partitions // tables)
    console.print(f"{tables:,} tables with {count:,} partitions")
    for what, took in (("first", first), ("again", again), ("again, by names", names)):
        console.print(f"{what}: {seconds_text(took)}, {took / first:.0%} of the first")
    case = f"{tables} tables with {count} partitions"
    results = [
        Result(case=case, metric=metric, unit="s", windrow=took, peer="first", peer_value=first)
        for metric, took in (("again", again), ("again by names", names))
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


def measured(spark: SparkSession, client: Client, tables: int) -> tuple[float, float, float]:
    """Return the seconds of the three imports."""
    took = []
    for expected, trust in (("created", False), ("unchanged", False), ("unchanged", True)):
        began = time.perf_counter()
        done = client.import_tables(spark, "sales.*", trust_partitions=trust)
        took.append(time.perf_counter() - began)
        outcomes = Counter(one.outcome for one in done)
        if outcomes != {expected: tables}:
            sys.exit(f"expected {tables} tables {expected}, got {dict(outcomes)}")
    first, again, names = took
    return first, again, names


if __name__ == "__main__":
    main()
