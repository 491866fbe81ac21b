"""Unchanged queries of Spark's tables and paths, asked with acceleration and without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import windrow

QUERIES = {
    "all": "SELECT * FROM quick.{t}",
    "function": "SELECT count(*), sum(id) FROM quick.{t} WHERE day(day) = 2",
    "grouped": "SELECT day, count(*), max(name) FROM QUICK.{t} x GROUP BY day",
    "subquery": "SELECT id FROM quick.{t} WHERE day = (SELECT max(day) FROM quick.{t})",
    "join": "SELECT a.id, b.name FROM quick.{t} a JOIN quick.{t} b USING (id) WHERE a.id < 9",
    "file names": "SELECT id, input_file_name() f FROM quick.{t}",
    "limit": "SELECT count(*) FROM (SELECT * FROM quick.{t} LIMIT 7)",
}
_COLUMNS = "id BIGINT, name STRING"

# On a busy machine, a coordinator may take longer to answer than queries should wait.
accelerate = partial(windrow.accelerate, wait_s=60.0)


def problems(
    spark: SparkSession, client: windrow.Client, folder: Path, hows: dict[str, str]
) -> dict[str, Any]:
    """Return what is not as it must be; empty if all is well.

    Args:
        spark: A session with a catalog.
        client: A coordinator that may read the folder.
        folder: Where the tables are made.
        hows: By name of a table, the clause of `CREATE TABLE` that says its format.
    """
    spark.sql(f"CREATE DATABASE quick LOCATION '{folder}/quick'")
    unlike: dict[str, Any] = {}
    for name, how in hows.items():
        # Hive wants partition columns without their types among the others.
        by = "day DATE" if how.startswith("STORED") else "day"
        columns = _COLUMNS if how.startswith("STORED") else f"{_COLUMNS}, day DATE"
        partition = f"PARTITIONED BY ({by})"
        clauses = f"{partition} {how}" if how.startswith("STORED") else f"{how} {partition}"
        spark.sql(f"CREATE TABLE quick.{name} ({columns}) {clauses}")
        _insert(spark, name, 0, 20)
    imports = client.import_tables(spark, "quick.*")
    unlike |= {one.name: one.reason for one in imports if one.outcome != "created"}
    for name in hows:
        for label, text in QUERIES.items():
            # Spark writes them differently for Hive's own tables.
            if label == "file names" and how == "STORED AS TEXTFILE":
                continue
            query = partial(spark.sql, text.format(t=name))
            unlike |= _unlike(spark, client, f"{name} {label}", query)
        unlike |= _own_writes(spark, client, name)
    path = f"{folder}/plain"
    spark.table(f"quick.{next(iter(hows))}").write.partitionBy("day").parquet(path)
    client.register_table("quick_path", path)
    reads: dict[str, Callable[[], DataFrame]] = {
        "path": lambda: spark.read.parquet(path),
        "load": lambda: spark.read.format("parquet").load(path).where("day(day) = 1"),
        "SQL of a path": lambda: spark.sql(f"SELECT * FROM parquet.`{path}`"),
    }
    for label, read in reads.items():
        unlike |= _unlike(spark, client, label, read)
    with accelerate(spark, client) as acceleration:
        matches = spark.read.option("pathGlobFilter", "*").parquet(path)
        reasons = acceleration.explain(matches)
        if is_ours(matches) or "its option pathglobfilter" not in str(reasons):
            unlike["option"] = reasons
    return unlike


def is_ours(rows: DataFrame) -> bool:
    """Return whether Spark's plan of a query has our scan, and none of Spark's."""
    plan = str(rows._jdf.queryExecution().sparkPlan().toString())
    # A limit may take the first rows with a scan of Spark's over our files.
    return "windrow " in plan and "FileScan" not in plan.replace("FileScan windrow", "")


def _insert(spark: SparkSession, name: str, first: int, end: int) -> None:
    spark.sql(
        f"INSERT INTO quick.{name} SELECT id, concat('n', id), "
        f"date_add(DATE'2026-01-01', CAST(id % 3 AS INT)) FROM range({first}, {end})"
    )


def _unlike(
    spark: SparkSession, client: windrow.Client, label: str, query: Callable[[], DataFrame]
) -> dict[str, Any]:
    with accelerate(spark, client) as acceleration:
        rows = query()
        ours = is_ours(rows), rows.schema, sorted(map(repr, rows.collect()))
        reasons = acceleration.reasons()
    rows = query()
    theirs = is_ours(rows), rows.schema, sorted(map(repr, rows.collect()))
    if ours[0] and not theirs[0] and ours[1:] == theirs[1:]:
        return {}
    return {label: [repr(ours), repr(theirs), reasons]}


def _own_writes(spark: SparkSession, client: windrow.Client, name: str) -> dict[str, Any]:
    counts = []
    with accelerate(spark, client, max_staleness=3600) as acceleration:
        for first, session in ((20, spark), (23, spark.newSession())):
            counts.append((spark.table(f"quick.{name}").count(), acceleration.reasons()))
            _insert(session, name, first, first + 3)
        spark.sql(f"ALTER TABLE quick.{name} DROP PARTITION (day = DATE'2026-01-01')")
        rows = spark.newSession().table(f"quick.{name}")
        counts.append((rows.count(), acceleration.reasons()))
        ours = is_ours(rows)
    outcome: list[tuple[int, dict[str, str]]] = [(20, {}), (23, {}), (17, {})]
    return {} if ours and counts == outcome else {f"{name} writes": [ours, counts]}
