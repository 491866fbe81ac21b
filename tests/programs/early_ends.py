"""A program whose queries stop reading a table early, and then read a damaged file of it.

`python -m tests.programs.early_ends URL FOLDER`

One line of JSON on stdout has the version of Spark and the results. What Spark's Python workers
print is on stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import windrow
from windrow.spark import TaskFailedError, plain_errors

_FILES, _ROWS = 12, 40_000


def main(url: str, folder: Path) -> None:
    """Run the queries, and print the results."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "600m")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    location = folder / "table"
    location.mkdir()
    with windrow.connect(url) as client:
        # Rows as `packing.py` packs them, and in Arrow's form, which nested columns need.
        for name, nested in (("packed", False), ("nested", True)):
            _write(location / name, nested)
            client.register_table(name, str(location / name))
            client.refresh(name)
        counts = {
            name: _counts(spark, client.read(spark, name, reader="grouped"))
            for name in ("packed", "nested")
        }
        failure = _failure(client.read(spark, "packed", reader="grouped"), location / "packed")
    report = {"version": spark.version, "counts": counts, "failure": failure}
    sys.stdout.write("\n" + json.dumps(report) + "\n")
    sys.stdout.flush()
    # Workers may still be printing when the last query ends; this waits for them.
    spark.stop()


def _write(location: Path, nested: bool) -> None:
    location.mkdir()
    for file in range(_FILES):
        ids = np.arange(_ROWS) + file * _ROWS
        columns: dict[str, Any] = {"id": ids, "value": ids * 0.5}
        if nested:
            columns["pair"] = pa.StructArray.from_arrays([pa.array(ids)], ["a"])
        pq.write_table(pa.table(columns), location / f"{file}.parquet", row_group_size=2_000)


def _counts(spark: SparkSession, rows: DataFrame) -> list[int]:
    """Return how many rows each query gets."""
    rows.createOrReplaceTempView("t")
    rows.show(2)
    return [
        len(rows.take(3)),
        len([rows.first()]),
        len(rows.head(5)),
        int(not rows.isEmpty()),
        len(spark.sql("SELECT * FROM t LIMIT 7").collect()),
        len(rows.where("id % 7 = 3").take(20)),
        rows.limit(5_000).count(),
    ]


def _failure(rows: DataFrame, location: Path) -> str | None:
    """Return the error of a query that reads damaged files of the planned size and time."""
    for file in location.iterdir():
        status = file.stat()
        file.write_bytes(b"x" * status.st_size)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    try:
        with plain_errors():
            rows.take(3)
    except TaskFailedError as error:
        return str(error)
    return None


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
