"""What a driver sees of executors that start on demand, and of executors whose Python is no good.

`python -m tests.programs.elastic_cluster ELSEWHERE LOCATION STATE BROKEN_PYTHON SETTINGS`
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

import windrow
from tests.programs.outcomes import outcome
from windrow_jobs.inventory import publish_inventory
from windrow_spark.placement import hosts_to_prefer, placed
from windrow_tables.groups.descriptors import Descriptor

elsewhere, location, state, broken_python, conf = sys.argv[1:]
output = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
builder = SparkSession.builder.master("local-cluster[1,1,600]")
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def look(*hosts: str) -> list[Any]:
    usable = hosts_to_prefer(spark)
    hosts_to_wait_for = hosts_to_prefer(spark, awaited=True)
    rows = placed(spark, [Descriptor(content=b"", hosts=(host,)) for host in hosts]).collect()
    return [sorted(usable or ()), hosts_to_wait_for, len(rows)]


def outcomes() -> dict[str, Any]:
    rows = client.read(spark, "a.table", reader="grouped")
    return {
        "read": outcome(lambda: [row.id for row in rows.collect()]),
        "job": outcome(lambda: publish_inventory(spark, client, "a.table").snapshot.file_count),
    }


looks = [look(elsewhere, elsewhere)]
# The executor runs on the driver's host, by a name that Spark finds by itself.
host = next(iter(hosts_to_prefer(spark) or ()))
looks.append(look(host, elsewhere, elsewhere))

with_python = {}
with windrow.embedded(state, allowed_locations=(location,)) as client:
    client.register_table("a.table", location)
    client.refresh("a.table")
    with_python["bare"] = outcomes()
    os.environ["PYSPARK_PYTHON"] = "/no/such/python"
    with_python["absent"] = outcomes()
    os.environ["PYSPARK_PYTHON"] = broken_python
    with_python["broken"] = outcomes()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with_python["good"] = outcomes()
    # What the driver says of itself; the check is that of Spark's worker.
    spark.sparkContext.pythonVer = "3.1"
    with_python["other version"] = outcomes()
print(json.dumps({"host": host, "looks": looks, "outcomes": with_python}), file=output, flush=True)
spark.stop()
