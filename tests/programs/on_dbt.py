"""dbt models of `docs/how-to/dbt.md`, run twice by its start file, with a coordinator.

`python -m tests.programs.on_dbt FOLDER`

The files of the page are in FOLDER; the last line printed is a list with what there is after each
run: the rows of each model, the planned writes, and why Spark planned anything itself.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

import windrow
from windrow.spark import recent_writes
from windrow_spark.acceleration.accelerating import Acceleration

_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}


def reasons_of_run(start_file: Path) -> tuple[int, dict[str, str]]:
    """Run the start file; return its exit code, and why Spark planned anything itself."""
    reasons: dict[str, str] = {}
    off = Acceleration.off

    def note_first(acceleration: Acceleration) -> None:
        reasons.update(acceleration.reasons())
        off(acceleration)

    with patch.object(Acceleration, "off", note_first):
        try:
            runpy.run_path(str(start_file), run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0), reasons
    raise AssertionError("the start file does not tell how dbt has ended")


def report(spark: SparkSession, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run the start file, and return what there is then."""
    sys.argv = [
        "run_dbt.py",
        *arguments,
        "--project-dir",
        str(folder),
        "--profiles-dir",
        str(folder),
    ]
    code, reasons = reasons_of_run(folder / "run_dbt.py")
    models = {path.stem: f"analytics.{path.stem}" for path in (folder / "models").glob("*.sql")}
    return {
        "code": code,
        "reasons": reasons,
        "writes": [write.table for write in recent_writes()],
        "models": {
            name: sorted(list(row) for row in spark.table(table).collect())
            for name, table in models.items()
        },
        "partitions": [row[0] for row in spark.sql("SHOW PARTITIONS analytics.daily").collect()],
    }


def add_orders(spark: SparkSession, first: int, end: int, days: int) -> None:
    """Add orders of the first days of November."""
    spark.sql(
        f"INSERT INTO raw.orders SELECT id, concat('c', id % 3), id, "
        f"concat('2026-11-0', 1 + id % {days}) FROM range({first}, {end})"
    )


def main(folder: Path) -> None:
    """Run the models on two states of their source."""
    os.chdir(folder)
    # The start file gets this session, which does not need the minutes that Hive takes to start.
    builder = SparkSession.builder.master("local[2]")
    for name, value in (_CONF | {"spark.sql.warehouse.dir": str(folder / "warehouse")}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("CREATE DATABASE raw")
    spark.sql(
        "CREATE TABLE raw.orders (id BIGINT, customer STRING, amount BIGINT, ds STRING) "
        "USING parquet PARTITIONED BY (ds)"
    )
    add_orders(spark, 0, 30, 3)
    reports = [report(spark, folder, "run")]
    add_orders(spark, 30, 40, 4)
    reports.append(report(spark, folder, "run"))
    sys.stdout.write("\n" + json.dumps(reports) + "\n")


if __name__ == "__main__":
    with windrow.embedded(Path(sys.argv[1]) / "state", allowed_locations=(sys.argv[1],)) as client:
        windrow.connect = lambda url: client  # type: ignore[assignment,misc]
        main(Path(sys.argv[1]))
