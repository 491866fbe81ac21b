"""Jobs and a grouped read on YARN: a program, since it needs a session of its own.

`python -m tests.programs.on_yarn FOLDER LOCATION`, with the cluster in `HADOOP_CONF_DIR`

The last line printed has the rows of a table and where each was read, before its compaction and
after it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from tests.support.servers import embedded
from tests.support.servers.hdfs import HOSTS
from tests.support.servers.yarn import EXECUTOR_MB, MASTER_MB
from tests.support.spark.quick_spark import jvm_options
from windrow.client import Client
from windrow_jobs.compact import compact
from windrow_jobs.inventory import publish_inventory

TABLE = "sales.events"
_SPARK = Path(pyspark.__file__).parent
_OVERHEAD_MB = 384
_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Every host has the jars at the same path.
    "spark.yarn.jars": f"local:{_SPARK / 'jars'}/*",
    "spark.yarn.am.memory": "256m",
    "spark.yarn.am.memoryOverhead": str(MASTER_MB - 256),
    "spark.executor.instances": str(len(HOSTS)),
    "spark.executor.cores": "1",
    "spark.executor.memory": f"{EXECUTOR_MB - _OVERHEAD_MB}m",
    "spark.executor.memoryOverhead": str(_OVERHEAD_MB),
    "spark.executor.extraJavaOptions": jvm_options(),
    # Tasks begin once there is an executor on each host, and wait for their own.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.locality.wait": "300s",
}


def main(folder: Path, location: str) -> None:
    """Run the jobs, and print what was read."""
    archives = ",".join(f"local:{path}" for path in sorted((_SPARK / "python/lib").glob("*.zip")))
    os.environ["PYSPARK_ARCHIVES_PATH"] = archives
    builder = SparkSession.builder.master("yarn")
    for name, value in _CONF.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with embedded.client(folder / "state", allowed_locations=(location,)) as client:
        client.register_table(TABLE, location)
        publish_inventory(spark, client, TABLE)
        before = _rows(spark, client)
        compact(lambda: spark, client, TABLE, readers_may_see_both=True)
        publish_inventory(spark, client, TABLE)
        after = _rows(spark, client)
    spark.stop()
    sys.stdout.write("\n" + json.dumps([before, after]) + "\n")


def _rows(spark: SparkSession, client: Client) -> list[Any]:
    """Return of each row its id, its file and the host of its task."""
    rows = client.read(spark, TABLE, reader="grouped", parallelism=6)

    def placed(rows: Iterator[Any]) -> Iterator[Any]:
        # NodeManagers name themselves to their containers.
        return ((row["id"], row["file_path"], os.environ["NM_HOST"]) for row in rows)

    return sorted(rows.select("id", "_metadata.file_path").rdd.mapPartitions(placed).collect())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
