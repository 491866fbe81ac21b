"""A Spark driver that dies at a step of its commit.

`python -m tests.programs.crashing_driver URL STEP`
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import windrow
from tests.support.faults.writers import at_step, die

url, step = sys.argv[1:]
conf = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
builder = SparkSession.builder.master("local[2]")
for name, value in conf.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.sql(
    "SELECT 100 + id AS id, concat('name-', id) AS name, "
    "date_add(DATE'2026-11-03', CAST(id % 3 AS INT)) AS ds FROM range(30)"
)
at_step(step, 1, die)
with windrow.connect(url) as client:
    client.write(rows, "events", target_rows=4)
