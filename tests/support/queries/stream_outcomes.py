"""What streams to and from a table do on a release of Spark, and what they are refused with."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.queries import streams
from tests.support.queries.streams import Feed
from windrow.spark import plain_errors
from windrow_calls.errors import WindrowError
from windrow_jobs.compact import compact

NAME = "sales.streams"
REFUSALS = {
    "outputMode complete": "output mode append, not complete",
    "outputMode update": "output mode append, not update",
    "partitionBy": "partitioned by day, country, not by id",
    "an option that does not exist": "max_delai",
    "a column that the table lacks": "the table has no column 'more'",
    "a lost checkpoint": "replaces_query",
    "files that are gone": "'removedFiles', 'ignore'",
}
_TIMEOUT_S = 120.0


def outcomes(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, str]:
    """Return the outcome of each use: `same` rows as were given, `refused`, or something else.

    Args:
        spark: A classic session whose format `windrow` has the tables of the client.
        client: A client of a coordinator.
        folder: A folder for files of the table and of streams.
    """
    location = folder / "streams-table"
    location.mkdir()
    client.register_table(
        NAME,
        str(location),
        columns={"id": "bigint", "amount": "double"},
        partition_columns={"day": "date", "country": "string"},
    )
    client.refresh(NAME)
    feed = Feed(folder / "streams-feed")
    results = _written(spark, client, feed, folder / "streams-written")
    return results | _read(spark, client, feed, location, folder / "streams-read")


def _written(
    spark: SparkSession, client: windrow.Client, feed: Feed, checkpoint: Path
) -> dict[str, str]:
    def compared() -> str:
        ids = sorted(row.id for row in client.read(spark, NAME).select("id").collect())
        return "same" if ids == feed.ids else f"{len(ids)} rows of {len(feed.ids)}"

    def run(rows: DataFrame | None = None, options: Any = None, **more: Any) -> None:
        streams.run(rows or feed.stream(spark), NAME, checkpoint, options, **more)

    def start(mode: str) -> Any:
        counts = feed.stream(spark).groupBy("country", "day").agg(F.max("id").alias("id"))
        writer = counts.writeStream.format("windrow").outputMode(mode)
        return writer.option("checkpointLocation", str(checkpoint)).start(NAME)

    results = {}
    refusals: dict[str, Callable[[], Any]] = {
        "outputMode complete": lambda: start("complete"),
        "outputMode update": lambda: start("update"),
        "partitionBy": lambda: run(partition_columns=["id"]),
        "an option that does not exist": lambda: run(options={"max_delai": "1h"}),
    }
    for name, use in refusals.items():
        results[name] = _refusal(name, use)
    feed.add(20)
    feed.add(1)
    run()
    results["each batch a write"] = compared()
    # Spark knows of no batch that was written, as after a kill before its commit.
    shutil.rmtree(checkpoint / "commits")
    feed.add(7)
    run()
    results["a batch that Spark repeats"] = compared()
    query = streams.start(feed.stream(spark), NAME, checkpoint, {"max_delay": "1h"})
    for _ in range(2):
        feed.add(5)
        query.processAllAvailable()
    before = compared()
    query.stop()
    _until(lambda: compared() == "same")
    results["batches that wait for each other"] = (
        compared() if before == "28 rows of 38" else f"{before} before the end"
    )
    feed.add(3)
    name = "a column that the table lacks"
    results[name] = _refusal(name, lambda: run(feed.stream(spark).withColumn("more", F.lit(1))))
    run()
    shutil.rmtree(checkpoint)
    results["a lost checkpoint"] = _refusal("a lost checkpoint", run)
    results["all of them"] = compared()
    return results


def _read(
    spark: SparkSession, client: windrow.Client, feed: Feed, location: Path, checkpoint: Path
) -> dict[str, str]:
    results: dict[str, str] = {}

    def run(**options: Any) -> list[int]:
        sizes: list[int] = []

        def take(rows: DataFrame, _: int) -> None:
            batch = [row.id for row in rows.select("id").collect()]
            sizes.append(len(batch))
            ids.extend(batch)

        rows = spark.readStream.format("windrow").options(**options).load(NAME)
        writer = rows.writeStream.option("checkpointLocation", str(checkpoint))
        with plain_errors():
            writer.trigger(availableNow=True).foreachBatch(take).start().awaitTermination()
        return sizes

    def compared() -> str:
        return "same" if sorted(ids) == feed.ids else f"{len(ids)} rows of {len(feed.ids)}"

    def add(rows: int) -> None:
        new = feed.add(rows)
        rows_of_it = feed.rows(spark).where(F.col("id").isin(new))
        client.write(rows_of_it, NAME)

    ids: list[int] = []
    sizes = run(maxFilesPerTrigger=4)
    results["the whole table, a few files at a time"] = compared() if len(sizes) > 1 else str(sizes)
    add(4)
    run()
    results["what a write adds"] = compared()
    compact(lambda: spark, client, NAME)
    add(6)
    sizes = [one for one in run() if one]
    results["what follows a compaction"] = compared() if sizes == [6] else str(sizes)
    next(location.glob("day=*/country=*/*.parquet")).unlink()
    client.refresh(NAME)
    results["files that are gone"] = _refusal("files that are gone", run)
    return results


def _until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + _TIMEOUT_S
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.1)


def _refusal(name: str, use: Callable[[], Any]) -> str:
    try:
        with plain_errors():
            use()
    except (WindrowError, PySparkException, Py4JError) as error:
        return "refused" if REFUSALS[name] in str(error) else f"another error: {error}"
    return "not refused"
