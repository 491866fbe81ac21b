"""What lets the JVMs that tests start begin sooner: most of them live for seconds.

    python -m tests.support.quick_spark

writes the classes that Spark loads, as they are once loaded, into a file of the virtual
environment. A JVM that finds it there starts in half the processor time; one of another Spark or
Java, or without the file, starts as ever.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

_CLASSES = Path(sys.prefix) / "spark.jsa"
# Few JVMs live long enough for a thorough compiler to pay, and none should take both processors.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def jvm_options() -> str:
    """Return what a JVM of Spark is started with."""
    if not _CLASSES.exists():
        return _BRIEF
    return f"{_BRIEF} -XX:SharedArchiveFile={_CLASSES} -Xlog:cds=off"


def set_up(environment: MutableMapping[str, str]) -> None:
    """Let drivers, masters and workers that start in this environment begin sooner."""
    environment["SPARK_SUBMIT_OPTS"] = environment["SPARK_DAEMON_JAVA_OPTS"] = jvm_options()
    environment["SPARK_LAUNCHER_OPTS"] = _BRIEF


def main() -> None:
    """Do a little of everything that tests do, and write down what was loaded for it."""
    from pyspark.sql import SparkSession

    _CLASSES.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_BRIEF} -XX:ArchiveClassesAtExit={_CLASSES} -Xlog:cds=off"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def same(batches: Iterator[Any]) -> Iterator[Any]:
        return batches

    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(100).selectExpr("id", "string(id) AS name", "id % 2 AS p")
        rows.repartition(2, "p").write.partitionBy("p").parquet(f"{folder}/rows")
        written = spark.read.parquet(f"{folder}/rows")
        written.mapInArrow(same, written.schema).where("p = 1").groupBy("p").count().collect()
        rows.rdd.map(len).collect()
    spark.stop()
    jvm = spark.sparkContext._gateway.proc
    # It ends when nobody writes to it any more, and then writes the file.
    jvm.stdin.close()
    jvm.wait()


if __name__ == "__main__":
    main()
