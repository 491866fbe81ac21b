"""The benchmark's queries, on Spark and on engines without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow_demo.measuring import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows = tuple[tuple[Any, ...], ...]
Ask = Callable[[Path, str], Rows]

AGGREGATE, SHUFFLE = "aggregate", "shuffle"


def queries() -> tuple[Query, ...]:
    """Return the queries: one with sums only, and one with a shuffle."""
    from pyspark.sql import functions as F

    def aggregate(table: DataFrame) -> DataFrame:
        return table.agg(F.count(F.lit(1)), F.sum("amount"), F.max("score"))

    def shuffle(table: DataFrame) -> DataFrame:
        return table.groupBy("region").agg(F.countDistinct("customer"), F.sum("amount"))

    return (
        Query(name=AGGREGATE, title="plain aggregate", columns=("amount", "score"), ask=aggregate),
        Query(
            name=SHUFFLE,
            title="with a shuffle",
            columns=("region", "customer", "amount"),
            ask=shuffle,
        ),
    )


def ask_duckdb(folder: Path, query: str) -> Rows:
    """Run a query with DuckDB, including its listing."""
    import duckdb

    source = f"read_parquet('{folder}/*/*.parquet', hive_partitioning = true)"
    sql = {
        AGGREGATE: f"SELECT count(*), sum(amount), max(score) FROM {source}",
        SHUFFLE: (
            f"SELECT region, count(DISTINCT customer), sum(amount) FROM {source} GROUP BY region"
        ),
    }[query]
    with duckdb.connect() as connection:
        return normal(connection.execute(sql).fetchall())


def ask_polars(folder: Path, query: str) -> Rows:
    """Run a query with Polars, including its listing."""
    import polars as pl

    table = pl.scan_parquet(f"{folder}/*/*.parquet", hive_partitioning=True)
    if query == AGGREGATE:
        answer = table.select(pl.len(), pl.col("amount").sum(), pl.col("score").max())
    else:
        answer = table.group_by("region").agg(
            pl.col("customer").n_unique().alias("customers"), pl.col("amount").sum()
        )
    return normal(answer.collect().rows())


ENGINES: dict[str, Ask] = {"duckdb": ask_duckdb, "polars": ask_polars}


def timed_answer(ask: Ask, folder: Path, query: str) -> tuple[Rows, float]:
    """Return an engine's answer and its time in seconds."""
    began = time.perf_counter()
    rows = ask(folder, query)
    return rows, time.perf_counter() - began


def normal(rows: Any) -> Rows:
    """Return rows in a fixed order, so that answers can be compared."""
    return tuple(sorted((tuple(row) for row in rows), key=repr))
