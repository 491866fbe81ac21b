"""Streams of a few rows at a time, from a folder of Parquet files to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "id bigint, amount double, day date, country string"


class Feed:
    """A folder of files, each of which becomes a batch of a stream.

    Attributes:
        folder: The folder.
        ids: The ids of all rows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids: list[int] = []
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, rows: int, days: int = 3) -> list[int]:
        """Add a file of new rows in some days and countries; return their ids."""
        first = len(self.ids)
        ids = list(range(first, first + rows))
        self.ids += ids
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "amount": pa.array([None if one % 7 == 0 else one / 8 for one in ids]),
                "day": pa.array([20_000 + one % days for one in ids], pa.int32()).cast(pa.date32()),
                "country": pa.array([[None, "SE", "a/b ü"][one % 3] for one in ids]),
            }
        )
        aside = self.folder / f".{first}"
        pq.write_table(table, aside)
        aside.rename(self.folder / f"{first:09d}.parquet")
        return ids

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return all rows, as Spark reads them."""
        return spark.read.schema(_SCHEMA).parquet(str(self.folder))

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a stream, one file a batch."""
        reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", "1")
        return reader.parquet(str(self.folder))


def start(
    rows: DataFrame,
    table: str,
    checkpoint: Path,
    options: Mapping[str, str] | None = None,
    name: str | None = None,
    partition_columns: Sequence[str] = (),
    **trigger: Any,
) -> Any:
    """Start a stream to a table; without a trigger, a batch begins when the last one ends."""
    writer = rows.writeStream.format("windrow").options(**(options or {}))
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(**(trigger or {"processingTime": "0 seconds"}))
    if name is not None:
        writer = writer.queryName(name)
    if partition_columns:
        writer = writer.partitionBy(*partition_columns)
    return writer.start(table)


def run(*arguments: Any, **options: Any) -> Any:
    """Write what there is, batch by batch, and return the query once it has ended."""
    query = start(*arguments, availableNow=True, **options)
    query.awaitTermination()
    return query
