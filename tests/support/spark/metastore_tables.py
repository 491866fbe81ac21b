"""Tables of a Hive metastore, imported and read; `on_hive` runs this in its session."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windrow
from tests.support.queries import accelerations
from tests.support.servers.coordinators import free_port
from tests.support.spark import metastore_writes
from windrow_jobs.sync import run

_TEXT = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
DATABASE = "jdbc:derby:memory:metastore;create=true"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "America/New_York",
}
TABLES = {
    "parquet_": "(Id BIGINT, n STRING) PARTITIONED BY (d DATE, k STRING) STORED AS PARQUET",
    "orc_": "(id BIGINT, n STRING) PARTITIONED BY (p INT) STORED AS ORC",
    "text_": "(id BIGINT, n STRING, a ARRAY<INT>) PARTITIONED BY (p STRING) ROW FORMAT DELIMITED "
    "FIELDS TERMINATED BY '|' COLLECTION ITEMS TERMINATED BY ',' NULL DEFINED AS '-' "
    "STORED AS TEXTFILE",
    "csv_": "(a STRING, b STRING) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' "
    "WITH SERDEPROPERTIES ('separatorChar' = ';') STORED AS TEXTFILE",
    "flat_": "(id BIGINT) STORED AS PARQUET",
    "hashed_": "(id BIGINT, n STRING) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS PARQUET",
    "sequence_": "(a STRING) STORED AS SEQUENCEFILE",
    "mixed_": "(a INT) PARTITIONED BY (p INT) STORED AS PARQUET",
    "widened_": "(a INT) PARTITIONED BY (p INT) STORED AS TEXTFILE",
}


def differences(spark: SparkSession, client: windrow.Client, name: str) -> list[str]:
    """Return how the columns, rows or counts of Spark and Windrow differ; empty if they agree."""
    spark_table, table = spark.table(name), client.read(spark, name)
    if {field.name: field.dataType for field in spark_table.schema} != {
        field.name: field.dataType for field in table.schema
    }:
        return [f"columns: {spark_table.schema.simpleString()} {table.schema.simpleString()}"]
    theirs = sorted(map(repr, spark_table.collect()))
    ours = sorted(map(repr, table.select(*spark_table.columns).collect()))
    if theirs == ours:
        # Counting reads no columns.
        counts = spark_table.count(), table.count()
        return [] if counts[0] == counts[1] == len(ours) else [f"counts: {counts}"]
    return [f"spark: {theirs}", f"windrow: {ours}"]


def found_on_metastore(spark: SparkSession, url: str, folder: Path) -> dict[str, Any]:
    """Create tables, import them, and return what was found; the session is stopped.

    Args:
        spark: A session with a metastore in this JVM's memory, `DATABASE`.
        url: URL of a coordinator.
        folder: Folder that tables may be in.
    """
    with windrow.connect(url) as client:
        results = _found(spark, client, folder)
        results["accelerated"] = accelerations.problems(
            spark,
            client,
            folder / "quick",
            {"a": "STORED AS PARQUET", "b": "STORED AS TEXTFILE"},
        )
        results["serdes"] = _of_serdes(spark, client)
        results["written"] = metastore_writes.problems(spark, client, folder)
        metastore = _served(spark, folder)
        # The job starts a session that knows only the metastore's address.
        spark.stop()
        SparkSession.builder._options.clear()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            fine = run(
                ["sales.parquet_", "sales.bad_"],
                client,
                metastore=metastore,
                settings=_SETTINGS,
                master="local[1]",
            )
    return {**results, "remote": [fine, output.getvalue()]}


def _found(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    spark.sql("CREATE DATABASE sales")
    for name, how in TABLES.items():
        spark.sql(f"CREATE TABLE sales.{name} {how}")
    for row in ("1, 'a', DATE'2026-01-01', 'x y/z'", "2, 'b', NULL, '%41'", "3, NULL, NULL, NULL"):
        spark.sql(f"INSERT INTO sales.parquet_ VALUES ({row})")
    spark.sql("INSERT INTO sales.orc_ VALUES (1, 'a', 1), (2, NULL, 2)")
    spark.sql("INSERT INTO sales.text_ VALUES (1, 'a', array(1, 2), 'p'), (2, NULL, NULL, 'q=r')")
    spark.sql("INSERT INTO sales.csv_ VALUES ('a;b', '\"'), ('', 'c')")
    spark.sql("INSERT INTO sales.flat_ VALUES (1), (NULL)")
    spark.sql("INSERT INTO sales.hashed_ VALUES (1, 'a'), (2, 'b')")
    for p, table in ((1, "orc_"), (2, "text_"), (3, "mixed_"), (4, "widened_")):
        spark.sql(
            f"ALTER TABLE sales.{table} ADD PARTITION (p={p}0) LOCATION '{folder}/out/{table}'"
        )
    spark.sql("INSERT INTO sales.orc_ PARTITION (p=10) VALUES (7, 'outside')")
    spark.sql("INSERT INTO sales.text_ PARTITION (p='20') VALUES (8, 'outside', array(3))")
    spark.sql(f"ALTER TABLE sales.mixed_ PARTITION (p=30) SET SERDE '{_TEXT}'")
    (folder / "out/widened_").mkdir(parents=True, exist_ok=True)
    # The partition keeps a single column.
    (folder / "out/widened_/part-0").write_text("1\x012\n")
    spark.sql("ALTER TABLE sales.widened_ ADD COLUMNS (b INT)")
    spark.sql("CREATE TABLE sales.bad_ (a INT) STORED AS PARQUET")
    (folder / "warehouse/sales.db/bad_/part-0.parquet").write_text("no Parquet")
    spark.sql("CREATE VIEW sales.view_ AS SELECT 1 a")
    first = _imported(spark, client)
    read = [info.name for info in client.tables() if info.current_snapshot]
    unlike = {name: differences(spark, client, name) for name in read}
    again = client.import_tables(spark, "sales.*")
    trusting = client.import_tables(spark, "sales.*", trust_partitions=True)
    spark.sql("ALTER TABLE sales.orc_ DROP PARTITION (p=10)")
    spark.sql("ALTER TABLE sales.orc_ ADD COLUMNS (added DECIMAL(9,3))")
    spark.sql("INSERT INTO sales.orc_ VALUES (9, 'new', 1.5, 3)")
    reimport = _imported(spark, client, "sales.orc_")
    return {
        "first": first,
        "unlike": unlike,
        "again": sorted({one.outcome for one in again}),
        "trusting": sorted({one.outcome for one in trusting}),
        "changed": reimport,
        "then": differences(spark, client, "sales.orc_"),
    }


def _of_serdes(spark: SparkSession, client: windrow.Client) -> dict[str, Any]:
    """Return why Spark reads tables of Hive's SerDes, by query; the text is empty for ours."""
    queries = {
        "csv_": "SELECT * FROM sales.csv_",
        "text_": "SELECT p, sum(id), max(a[0]) FROM sales.text_ GROUP BY p",
        "names": "SELECT id, input_file_name() FROM sales.text_ WHERE id > 1",
        "sequence_": "SELECT * FROM sales.sequence_",
        "altered": "SELECT * FROM sales.csv_ WHERE a > ''",
    }
    outcomes: dict[str, Any] = {}
    with accelerations.accelerate(spark, client) as acceleration:
        for label, query in queries.items():
            if label == "altered":
                spark.sql("ALTER TABLE sales.csv_ SET SERDEPROPERTIES ('quoteChar' = '|')")
            rows = []
            for value in ("false", "true"):
                spark.conf.set("spark.windrow.accelerate", value)
                rows.append(sorted(map(repr, spark.sql(query).collect())))
            (reason,) = acceleration.explain(spark.sql(query)).values()
            outcomes[label] = reason if rows[0] == rows[1] else f"other rows: {rows}; {reason}"
    return outcomes


def _imported(spark: SparkSession, client: windrow.Client, *names: str) -> dict[str, str]:
    done = client.import_tables(spark, *(names or ("sales.*",)))
    return {
        one.name: "; ".join(filter(None, [one.reason, *one.changes, *one.notes])) for one in done
    }


def _served(spark: SparkSession, folder: Path) -> str:
    """Serve the metastore to other processes, by Hive's own server; return its URI."""
    jvm: Any = spark.sparkContext._jvm
    port = free_port()
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
    conf.set("javax.jdo.option.ConnectionURL", DATABASE)
    conf.set("hive.metastore.warehouse.dir", str(folder / "warehouse"))
    conf.set("hive.metastore.schema.verification", "false")
    bridge = jvm.org.apache.hadoop.hive.shims.ShimLoader.getHadoopThriftAuthBridge()
    store = jvm.org.apache.hadoop.hive.metastore.HiveMetaStore
    threading.Thread(target=store.startMetaStore, args=(port, bridge, conf), daemon=True).start()
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.2)
    return f"thrift://127.0.0.1:{port}"
