"""A table on an HDFS with Kerberos: a program, since credentials are those of a process.

`python -m tests.programs.on_kerberos FOLDER LOCATION [spark]`, with credentials in the environment

The last line printed has what is read without Spark: a number of rows, or the error. With `spark`,
it has the numbers of rows that Spark reads before and after a write and a compaction.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.servers import embedded
from tests.support.spark.quick_spark import jvm_options
from windrow.client import Client
from windrow.spark import recent_scans
from windrow_calls.errors import WindrowError
from windrow_jobs.compact import compact

TABLE = "sales.events"


def main(folder: Path, location: str, *, on_spark: bool) -> None:
    """Use the table, and print the result."""
    with embedded.client(folder / "state", allowed_locations=(location,)) as client:
        client.register_table(TABLE, location)
        try:
            client.refresh(TABLE)
            result = _on_spark(client) if on_spark else client.scan(TABLE).to_table().num_rows
        except WindrowError as error:
            result = str(error)
    sys.stdout.write("\n" + json.dumps(result) + "\n")


def _on_spark(client: Client) -> list[int]:
    options = f"{jvm_options()} -Djava.security.krb5.conf={os.environ['KRB5_CONFIG']}"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
    counts = []
    for reader in ("grouped", "native"):
        counts.append(len(client.read(spark, TABLE, reader=reader).collect()))
        counts.append(recent_scans()[0].native_files)
    client.write(client.read(spark, TABLE).where("id < 5"), TABLE)
    counts.append(client.read(spark, TABLE).count())
    done = compact(lambda: spark, client, TABLE, readers_may_see_both=True)
    counts += [done.files_after, len(client.read(spark, TABLE).collect())]
    spark.stop()
    return counts


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], on_spark=sys.argv[3:] == ["spark"])
