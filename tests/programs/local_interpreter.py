"""The rows of each way to run Python tasks, or the one line that says why there are none.

`python -m tests.programs.local_interpreter LOCATION STATE BARE_PYTHON`
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
from windrow_spark.interpreter import tasks_interpreter

location, state, bare = sys.argv[1:]


def session(**conf: str) -> SparkSession:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    # The daemon of the other tests imports packages that the bare Python lacks.
    builder = builder.config("spark.python.daemon.module", "pyspark.daemon")
    for name, value in conf.items():
        builder = builder.config(name.replace("_", "."), value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def outcomes() -> dict[str, Any]:
    rows = client.read(spark, "a.table", reader="grouped")
    plan = client.plan("a.table")
    return {
        "read": outcome(lambda: [row.id for row in rows.collect()]),
        "read_plan": outcome(lambda: [row.id for row in client.read_plan(spark, plan).collect()]),
        "count": outcome(lambda: client.read_plan(spark, plan).count()),
        "job": outcome(lambda: publish_inventory(spark, client, "a.table").snapshot.file_count),
    }


spark = session()
with_python: dict[str, Any] = {}
with windrow.embedded(state, allowed_locations=(location,)) as client:
    client.register_table("a.table", location)
    client.refresh("a.table")
    with_python["unchosen"] = outcomes()
    with_python["users"] = (
        spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first()
    )
    os.environ["PYSPARK_PYTHON"] = bare
    with_python["chosen"] = outcomes()
    del os.environ["PYSPARK_PYTHON"]
spark.stop()
with_python["set"] = tasks_interpreter(session(spark_pyspark_python="/a/python").sparkContext)
print(json.dumps(with_python))
