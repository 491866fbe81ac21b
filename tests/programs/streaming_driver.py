"""A driver whose stream writes batches to a table, until it is killed or has written enough.

    python -m tests.programs.streaming_driver JSON

Batch n has the rows `[n * rows, (n + 1) * rows)`, in 24 partitions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windrow
from tests.support.faults.writers import STEPS, at_step, die
from windrow_spark.streaming.stream import Stream
from windrow_spark.streaming.waiting import StagedRows, WaitingFolder

# Steps of a stream at which a driver may die, besides those of its writes' commits.
STREAM_STEPS = {
    "batch written": (StagedRows, "of", "before"),
    "batch renamed": (WaitingFolder, "keep", "after"),
    "batches gathered": (Stream, "_write", "before"),
    "batches written": (Stream, "_write", "after"),
    "batches removed": (WaitingFolder, "remove_up_to", "after"),
}
_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def session(master: str = "local[2]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session, by default a local one."""
    builder = SparkSession.builder.master(master)
    for name, value in (_CONF | dict(conf or {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def start(spark: SparkSession, task: dict[str, Any]) -> Any:
    """Start the stream of a task: to the table `task["table"]`, or by Spark to a folder."""
    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", task["rows"])
        .option("numPartitions", 1)
        .load()
        .selectExpr("value AS id", "current_timestamp() AS at", "CAST(value % 24 AS INT) AS hour")
    )
    writer = rows.writeStream.option("checkpointLocation", task["checkpoint"])
    writer = writer.trigger(processingTime="0 seconds").options(**task.get("options", {}))
    if "folder" in task:
        return writer.format("parquet").partitionBy("hour").start(task["folder"])
    return writer.format("windrow").start(task["table"])


def batches_of(query: Any) -> int:
    """Return the number of batches that Spark has committed."""
    progress = query.lastProgress
    if progress is None:
        return 0
    # A dictionary before Spark 4.0.
    number = progress["batchId"] if isinstance(progress, dict) else progress.batchId
    return int(number) + 1


def write_batches(spark: SparkSession, task: dict[str, Any]) -> int:
    """Write batches until there are `task["batches"]`, and none waits; return their number."""
    query = start(spark, task)
    while batches_of(query) < task["batches"]:
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        time.sleep(0.05)
    number = batches_of(query)
    query.stop()
    waiting = Path(task.get("location", "/dev/null"), "_windrow", "streams")
    while any(waiting.glob("*/*/batch.json")):
        time.sleep(0.05)
    return number


def main() -> None:
    """Run the task that the argument is."""
    task = json.loads(sys.argv[1])
    spark = session(task.get("master", "local[2]"), task.get("conf"))
    spark.sparkContext.setLogLevel("OFF")
    if "step" in task:
        STEPS.update(STREAM_STEPS)
        at_step(task["step"], task.get("nth", 1), die)
    with windrow.connect(task["url"]) as client:
        windrow.register(spark, client)
        write_batches(spark, task)


if __name__ == "__main__":
    main()
