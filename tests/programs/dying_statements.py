"""A driver that carries out statements, and may die at a step of the last one.

`python -m tests.programs.dying_statements JSON`

It prints the rows of each of the task's queries, as lists in one line, before the statements.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack

from pyspark.sql import SparkSession

import windrow
from tests.support.faults.writers import STEPS, at_step, die
from windrow_spark.acceleration.cataloged import CatalogPartitions

# Steps of a statement on a table of Spark's catalog, besides those of its commit.
CATALOG_STEPS = {
    "files written": (CatalogPartitions, "add", "before"),
    "catalog changed": (CatalogPartitions, "_list", "before"),
    "list changed": (CatalogPartitions, "_list", "after"),
    "partitions kept": (CatalogPartitions, "drop", "before"),
}
_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}


def main() -> None:
    """Carry out the task that the argument is."""
    task = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]")
    for setting, value in (_CONF | task["conf"]).items():
        builder = builder.config(setting, value)
    if task["hive"]:
        builder = builder.enableHiveSupport()
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with windrow.connect(task["url"]) as client, ExitStack() as stack:
        windrow.register(spark, client)
        rows = [[list(row) for row in spark.sql(one).collect()] for one in task["queries"]]
        sys.stdout.write("\n" + json.dumps(rows) + "\n")
        sys.stdout.flush()
        if task["table"] is not None:
            client.import_tables(spark, task["table"])
            stack.enter_context(
                windrow.accelerate(spark, client, task["table"], wait_s=60.0, writes=True)
            )
        for statement in task["statements"][:-1]:
            spark.sql(statement)
        if task["step"] is not None:
            name, nth = task["step"]
            at_step(name, nth, die)
        for statement in task["statements"][-1:]:
            spark.sql(statement)


if __name__ == "__main__":
    STEPS.update(CATALOG_STEPS)
    main()
