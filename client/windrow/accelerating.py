"""Acceleration of unchanged queries of Spark's own tables and paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.client import Client
    from windrow_spark.acceleration.accelerating import Acceleration


def accelerate(
    spark: SparkSession,
    client: Client,
    tables: str | Sequence[str] = "*",
    *,
    max_staleness: int = 300,
    wait_s: float = 5.0,
    writes: bool = False,
) -> Acceleration:
    """Plan unchanged queries of Spark's own tables and paths, wherever the rows are the same.

    ```python
    acceleration = windrow.accelerate(spark, client, tables="sales.*", max_staleness=300)
    spark.table("sales.events").where("ds = '2026-11-01'").count()
    spark.read.parquet("/data/events").count()
    acceleration.reasons()  # why Spark itself planned the others
    acceleration.off()
    ```

    This applies to all sessions of the application. Windrow plans a table of Spark's catalog, or a
    path, if a table of the coordinator has the same location. If it is not certain that the rows
    are the same, Spark plans as before; see `docs/how-to/accelerate.md`.

    Args:
        spark: A classic session.
        client: Plans the tables; keep it open as long as acceleration is on.
        tables: Which tables of the coordinator: a pattern such as `sales.*`, or several.
        max_staleness: Seconds. Queries see every file that existed this long ago; if the last
            refresh of a table is older, the table is refreshed first. The next query always sees
            what this application has written through Spark.
        wait_s: Seconds that a query waits for the coordinator, also for a refresh, before Spark
            plans it.
        writes: Whether `INSERT` and Spark's writers make planned writes of what they write to
            tables of Spark's catalog, wherever rows and partitions would be the same.

    Returns:
        The acceleration, which returns reasons, and which you can switch off. It replaces the
        last one.

    Raises:
        CoordinatorUnreachableError: The coordinator does not answer.
        RelationUnavailableError: This version of Spark lacks a class or method that is needed.
        SparkConnectError: The session is one of Spark Connect.
    """
    from windrow_spark.acceleration.accelerating import accelerate

    return accelerate(spark, client, tables, max_staleness, wait_s, writes=writes)
