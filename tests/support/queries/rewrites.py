"""Writes of tables from their own rows, and the unstable columns of every kind of DataFrame."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from windrow.spark import recent_scans
from windrow_core.models import WriteMode
from windrow_spark.writing.lineage import lineage_of

MODES: tuple[WriteMode, ...] = ("append", "overwrite", "overwrite_partitions")
_FIRST_DAY = date(2026, 11, 1)


def results(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    """Return the rows that each mode left, results of queries, and unstable columns of plans."""
    return {
        "rewritten": {mode: rewritten(spark, client, folder, mode) for mode in MODES},
        "queries": queried(spark, client),
        "unstable": unstable_of_plans(spark),
    }


def rewritten(
    spark: SparkSession, client: windrow.Client, folder: Path, mode: WriteMode
) -> list[tuple[int, str, str]]:
    """Write a table, read it, write its even rows back changed, and return its rows."""
    location = folder / f"events_{mode}"
    location.mkdir()
    name = f"events_{mode}"
    client.register_table(name, str(location), partition_columns={"ds": "date"})
    day = F.when(F.col("id") < 60, F.lit(_FIRST_DAY)).otherwise(F.lit(date(2026, 11, 2)))
    rows = spark.range(100).select("id", F.lit("old").alias("state"), day.alias("ds"))
    client.write(rows, name, target_rows=40)

    # Only the first day, so that overwriting partitions differs from overwriting everything.
    read = client.read(spark, name, columns=["id", "ds"], filter=f"ds = '{_FIRST_DAY}'")
    new_rows = read.where("id % 2 = 0").withColumn("state", F.lit("new"))
    client.write(new_rows, name, mode, target_rows=40)

    there = client.read(spark, name).collect()
    assert there
    return sorted((row.id, row.state, str(row.ds)) for row in there)


def expected(mode: WriteMode) -> list[tuple[int, str, str]]:
    """Return the rows that `rewritten` must leave, computed without Spark."""
    old = [(id_, "old", "2026-11-01" if id_ < 60 else "2026-11-02") for id_ in range(100)]
    new = [(id_, "new", "2026-11-01") for id_ in range(0, 60, 2)]
    old_rows = {"append": old, "overwrite": [], "overwrite_partitions": old[60:]}[mode]
    return sorted(old_rows + new)


def queried(spark: SparkSession, client: windrow.Client) -> dict[str, Any]:
    """Return the results of queries on the appended table of `rewritten`, and the columns read."""
    with warnings.catch_warnings():
        # A table that cannot plan each query says so in a warning.
        warnings.simplefilter("error")
        client.create_view(spark, "events_append", "events")
        windrow.register(spark, client)
    spark.sql("CREATE TEMPORARY VIEW days USING windrow OPTIONS (table 'events_append')")
    both = "SELECT count(*) AS n FROM events JOIN days USING (id) WHERE events.ds < '2026-11-02'"
    texts = {
        "pruned": "SELECT max(id) AS n FROM events WHERE state = 'new' AND id <> 58",
        "joined": both,
        "formatted": "SELECT count(*) AS n FROM days WHERE id <=> 3",
    }
    counts: dict[str, Any] = {name: spark.sql(text).collect()[0].n for name, text in texts.items()}
    counts["columns"] = sorted(recent_scans("events_append")[0].columns)
    return counts


def unstable_of_plans(spark: SparkSession) -> dict[str, dict[str, str]]:
    """Return the unstable columns of many kinds of DataFrames, with reasons."""
    rows = spark.range(10).selectExpr("id", "id % 3 AS key")
    return {
        name: {
            column: column_state.reason
            for column, column_state in lineage_of(plan(rows)).unstable.items()
        }
        for name, plan in PLANS.items()
    }


def _batches(batches: Iterable[Any]) -> Iterator[Any]:
    yield from batches


def _frame(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def _first_frame(frame: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    return frame


def _table(table: pa.Table) -> pa.Table:
    return table


def _in_arrow_groups(rows: DataFrame) -> DataFrame:
    groups = rows.groupBy("key")
    # New in Spark 4.0.
    apply = getattr(groups, "applyInArrow", None)
    return (
        groups.applyInPandas(_frame, rows.schema) if apply is None else apply(_table, rows.schema)
    )


def _of_cogroups(rows: DataFrame) -> DataFrame:
    groups = rows.groupBy("key")
    return groups.cogroup(rows.groupBy("key")).applyInPandas(_first_frame, rows.schema)


_CODE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "mapInArrow": lambda rows: rows.mapInArrow(_batches, rows.schema),
    "mapInPandas": lambda rows: rows.mapInPandas(_batches, rows.schema),
    "applyInPandas": lambda rows: rows.groupBy("key").applyInPandas(_frame, rows.schema),
    "applyInArrow": _in_arrow_groups,
    "cogroup": _of_cogroups,
    "udf": lambda rows: rows.select(
        *(F.udf(lambda number: number, "bigint")(name).alias(name) for name in rows.columns)
    ),
    "pandas_udf": lambda rows: rows.select(
        *(F.pandas_udf(lambda column: column, "bigint")(name).alias(name) for name in rows.columns)
    ),
}
_ROWS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "rdd": lambda rows: rows.rdd.toDF(rows.schema),
    "list": lambda rows: rows.sparkSession.createDataFrame([(1, 2)], rows.schema),
    "cache": lambda rows: rows.cache(),
    "local checkpoint": lambda rows: rows.localCheckpoint(),
    "sample": lambda rows: rows.distinct().sample(0.5, 7),
    "repartition": lambda rows: rows.repartition(3, "key").hint("rebalance").coalesce(2),
    "melt": lambda rows: rows.unpivot("id", "key", "what", "key").selectExpr("id", "key"),
    "rollup": lambda rows: rows.rollup("key", "id").count().selectExpr("id", "key"),
    "except": lambda rows: rows.exceptAll(rows.where("id = 3")),
    "intersect": lambda rows: rows.intersectAll(rows),
    "observe": lambda rows: rows.observe("seen", F.count("*")),
    "values": lambda rows: rows.sparkSession.sql("SELECT * FROM VALUES (1, 2) AS v(id, key)"),
    "fill": lambda rows: rows.na.fill(0).dropna(),
    "offset": lambda rows: rows.orderBy("id").offset(1).limit(3),
}
PLANS = _CODE | _ROWS
# The columns of these are made by code that Spark cannot look into; all others are stable.
OPAQUE = frozenset(_CODE)
