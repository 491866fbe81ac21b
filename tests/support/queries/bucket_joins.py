"""Joins of bucketed tables on any Spark, compared with Spark's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import windrow


def results(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    """Return the rows of a join by bucket and of Spark's join, and whether the first shuffles."""
    sides = {
        name: spark.range(60).selectExpr(f"int(id % {every}) AS k", f"id AS {name}")
        for name, every in (("bucketed_left", 5), ("bucketed_right", 4))
    }
    for name, rows in sides.items():
        location = folder / name
        location.mkdir()
        spec = {"columns": ["k"], "count": 4}
        columns = dict(rows.dtypes)
        client.register_table(
            name, str(location), columns=columns, partition_columns={}, bucket_spec=spec
        )
        client.write(rows, name)
    left, right = sides.values()
    ours = client.join_buckets(spark, *sides, how="full")
    return {
        "rows": _texts(ours),
        "expected": _texts(left.join(right, ["k"], "full")),
        "shuffles": "Exchange" in ours._jdf.queryExecution().executedPlan().toString(),
    }


def _texts(rows: DataFrame) -> list[str]:
    return sorted(map(repr, rows.collect()))
